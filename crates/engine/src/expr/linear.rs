//! Decomposition of formulas: updates into terms over vectors, cell formulas into instructions.
use crate::expr::cells::{Binary, Instr, Unary};
use crate::ir::lower::{Cells, Coefficient, Term};
use crate::{Expr, Scalar, Vector};

/// The terms of an update, merged where they share their vectors, or the reason why it is not linear.
/// Instructions that compute their coefficients are appended to `code`.
pub(crate) fn terms<T: Scalar>(
    expr: &Expr<T>,
    cells: &mut dyn Cells<T>,
    code: &mut Vec<Instr>,
) -> Result<Vec<Term<T>>, &'static str> {
    Ok(merge(linear(expr)?).into_iter().map(|term| term.resolve(cells, code)).collect())
}

/// A term whose coefficient is still a formula.
struct Open<T> {
    coefficient: Expr<T>,
    factor: Option<Vector<T>>,
    vector: Vector<T>,
}

impl<T: Scalar> Open<T> {
    fn resolve(self, cells: &mut dyn Cells<T>, code: &mut Vec<Instr>) -> Term<T> {
        let coefficient = match &self.coefficient {
            Expr::Value(v) if *v == T::one() => Coefficient::One,
            Expr::Value(v) if *v == -T::one() => Coefficient::MinusOne,
            formula => Coefficient::Cell(operand(formula, cells, code)),
        };
        Term { coefficient, factor: self.factor, vector: self.vector }
    }
    fn map(self, f: impl Fn(Expr<T>) -> Expr<T>) -> Self {
        Open { coefficient: f(self.coefficient), ..self }
    }
}

/// `a · b`, with constants ±1 folded.
fn times<T: Scalar>(a: Expr<T>, b: Expr<T>) -> Expr<T> {
    match (a, b) {
        (Expr::Value(a), Expr::Value(b)) => Expr::Value(a * b),
        (Expr::Value(one), e) | (e, Expr::Value(one)) if one == T::one() => e,
        (Expr::Value(minus), e) | (e, Expr::Value(minus)) if minus == -T::one() => negative(e),
        (a, b) => Expr::Mul(Box::new(a), Box::new(b)),
    }
}

fn negative<T: Scalar>(e: Expr<T>) -> Expr<T> {
    match e {
        Expr::Value(v) => Expr::Value(-v),
        Expr::Neg(inner) => *inner,
        e => Expr::Neg(Box::new(e)),
    }
}

/// The terms of a formula that is linear in its vectors, or the reason why it is not.
fn linear<T: Scalar>(expr: &Expr<T>) -> Result<Vec<Open<T>>, &'static str> {
    let scaled =
        |terms: Vec<Open<T>>, by: &dyn Fn(Expr<T>) -> Expr<T>| terms.into_iter().map(|t| t.map(by)).collect();
    if is_scalar(expr) {
        return match expr {
            Expr::Value(v) if *v == T::zero() => Ok(Vec::new()),
            _ => Err("it adds a number to every element; expected a sum of vectors"),
        };
    }
    Ok(match expr {
        Expr::Vector(v) => vec![Open { coefficient: Expr::Value(T::one()), factor: None, vector: *v }],
        Expr::Neg(a) => scaled(linear(a)?, &negative),
        Expr::Add(a, b) => [linear(a)?, linear(b)?].into_iter().flatten().collect(),
        Expr::Sub(a, b) => [linear(a)?, scaled(linear(b)?, &negative)].into_iter().flatten().collect(),
        Expr::Mul(a, b) if is_scalar(a) => scaled(linear(b)?, &|c| times((**a).clone(), c)),
        Expr::Mul(a, b) if is_scalar(b) => scaled(linear(a)?, &|c| times(c, (**b).clone())),
        Expr::Mul(a, b) => match (&**a, &**b) {
            (Expr::Vector(factor), other) | (other, Expr::Vector(factor)) => {
                let mut terms = linear(other)?;
                for term in &mut terms {
                    if term.factor.replace(*factor).is_some() {
                        return Err("it multiplies three vectors; expected at most two in a term");
                    }
                }
                terms
            }
            _ => return Err("it multiplies two sums of vectors; expected a vector times a sum"),
        },
        Expr::Div(a, b) if is_scalar(b) => scaled(linear(a)?, &|c| Expr::Div(Box::new(c), b.clone())),
        Expr::Div(..) => return Err("it divides by a vector; expected a factor (store the reciprocals)"),
        Expr::Conj(_) => return Err("it conjugates a vector"),
        Expr::Sqrt(_) => return Err("it takes the root of a vector"),
        Expr::Max(..) => return Err("it takes the maximum of vectors"),
        Expr::Value(_) | Expr::Cell(_) => Vec::new(),
    })
}

fn is_scalar<T>(expr: &Expr<T>) -> bool {
    match expr {
        Expr::Vector(_) => false,
        Expr::Value(_) | Expr::Cell(_) => true,
        Expr::Neg(a) | Expr::Conj(a) | Expr::Sqrt(a) => is_scalar(a),
        Expr::Max(a, b) | Expr::Add(a, b) | Expr::Sub(a, b) | Expr::Mul(a, b) | Expr::Div(a, b) => {
            is_scalar(a) && is_scalar(b)
        }
    }
}

/// Merges terms over the same vectors.
fn merge<T: Scalar>(terms: Vec<Open<T>>) -> Vec<Open<T>> {
    let mut merged: Vec<Open<T>> = Vec::new();
    for term in terms {
        match merged.iter_mut().find(|t| t.vector == term.vector && t.factor == term.factor) {
            Some(same) => {
                let sum = match (&same.coefficient, &term.coefficient) {
                    (Expr::Value(a), Expr::Value(b)) => Expr::Value(*a + *b),
                    (a, b) => Expr::Add(Box::new(a.clone()), Box::new(b.clone())),
                };
                same.coefficient = sum;
            }
            None => merged.push(term),
        }
    }
    merged
}

/// The cell that holds a formula's value; instructions that compute it are appended to `code` if needed.
fn operand<T: Scalar>(expr: &Expr<T>, cells: &mut dyn Cells<T>, code: &mut Vec<Instr>) -> u32 {
    match expr {
        Expr::Cell(c) => c.index,
        Expr::Value(v) => cells.constant(*v),
        _ => {
            let dst = cells.temporary();
            evaluate(expr, dst, cells, code);
            dst
        }
    }
}

/// Instructions that set cell `dst` to a formula, appended to `code`.
pub(crate) fn evaluate<T: Scalar>(expr: &Expr<T>, dst: u32, cells: &mut dyn Cells<T>, code: &mut Vec<Instr>) {
    let (unary, binary) = match expr {
        Expr::Value(_) | Expr::Cell(_) => (Some((Unary::Copy, expr)), None),
        Expr::Neg(a) => (Some((Unary::Neg, &**a)), None),
        Expr::Conj(a) => (Some((Unary::Conj, &**a)), None),
        Expr::Sqrt(a) => (Some((Unary::Sqrt, &**a)), None),
        Expr::Max(a, b) => (None, Some((Binary::Max, a, b))),
        Expr::Add(a, b) => (None, Some((Binary::Add, a, b))),
        Expr::Sub(a, b) => (None, Some((Binary::Sub, a, b))),
        Expr::Mul(a, b) => (None, Some((Binary::Mul, a, b))),
        Expr::Div(a, b) => (None, Some((Binary::Div, a, b))),
        Expr::Vector(_) => (None, None), // a Formula holds no vector, by construction
    };
    if let Some((op, a)) = unary {
        let a = operand(a, cells, code);
        code.push(Instr::Unary { op, dst, a });
    } else if let Some((op, a, b)) = binary {
        let (a, b) = (operand(a, cells, code), operand(b, cells, code));
        code.push(Instr::Binary { op, dst, a, b });
    }
}
