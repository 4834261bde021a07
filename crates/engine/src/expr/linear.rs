//! Decomposition of formulas: updates into terms over vectors, cell formulas into instructions.
use crate::expr::cells::{Binary, Instr, Unary};
use crate::expr::formula::Node;
use crate::ir::lower::{Cells, Coefficient, Term};
use crate::{Number, NumberType, Vector};

/// The terms of an update, merged where they share their vectors, or the reason why it is not linear.
/// Instructions that compute their coefficients are appended to `code`. Numbers are of the type `kind`.
pub(crate) fn terms(
    expr: &Node,
    kind: NumberType,
    cells: &mut dyn Cells,
    code: &mut Vec<Instr>,
) -> Result<Vec<Term>, &'static str> {
    let linear = Linear(kind);
    let terms = linear.merge(linear.terms(expr)?);
    Ok(terms.into_iter().map(|term| term.resolve(kind, cells, code)).collect())
}

/// The number that a formula is, if it is a constant.
fn number(expr: &Node, kind: NumberType) -> Option<Number> {
    match expr {
        Node::Value(v) => Some(*v),
        Node::Real(v) => Some(Number::real(kind, *v)),
        _ => None,
    }
}

/// A term whose coefficient is still a formula.
struct Open {
    coefficient: Node,
    factor: Option<Vector>,
    vector: Vector,
}

impl Open {
    fn resolve(self, kind: NumberType, cells: &mut dyn Cells, code: &mut Vec<Instr>) -> Term {
        let coefficient = match number(&self.coefficient, kind) {
            Some(v) if v.is(1.0) => Coefficient::One,
            Some(v) if v.is(-1.0) => Coefficient::MinusOne,
            _ => Coefficient::Cell(operand(&self.coefficient, kind, cells, code)),
        };
        Term { coefficient, factor: self.factor, vector: self.vector }
    }
    fn map(self, f: impl Fn(Node) -> Node) -> Self {
        Open { coefficient: f(self.coefficient), ..self }
    }
}

/// Takes formulas of a number type apart into terms.
#[derive(Clone, Copy)]
struct Linear(NumberType);

impl Linear {
    /// `a · b`, with constants ±1 folded.
    fn times(self, a: Node, b: Node) -> Node {
        let [one, other] = [&a, &b].map(|factor| number(factor, self.0));
        match (one, other) {
            (Some(a), Some(b)) => Node::Value(a.times(b)),
            (Some(v), None) if v.is(1.0) => b,
            (None, Some(v)) if v.is(1.0) => a,
            (Some(v), None) if v.is(-1.0) => self.negative(b),
            (None, Some(v)) if v.is(-1.0) => self.negative(a),
            _ => Node::Mul(Box::new(a), Box::new(b)),
        }
    }

    fn negative(self, e: Node) -> Node {
        match (number(&e, self.0), e) {
            (Some(v), _) => Node::Value(v.negative()),
            (None, Node::Neg(inner)) => *inner,
            (None, e) => Node::Neg(Box::new(e)),
        }
    }

    /// The terms of a formula that is linear in its vectors, or the reason why it is not.
    fn terms(self, expr: &Node) -> Result<Vec<Open>, &'static str> {
        let scaled =
            |terms: Vec<Open>, by: &dyn Fn(Node) -> Node| terms.into_iter().map(|t| t.map(by)).collect();
        if is_scalar(expr) {
            return match number(expr, self.0) {
                Some(v) if v.is(0.0) => Ok(Vec::new()),
                _ => Err("it adds a number to every element; expected a sum of vectors"),
            };
        }
        let negative = |e| self.negative(e);
        Ok(match expr {
            Node::Vector(v) => {
                vec![Open { coefficient: Node::Value(Number::real(v.kind, 1.0)), factor: None, vector: *v }]
            }
            Node::Neg(a) => scaled(self.terms(a)?, &negative),
            Node::Add(a, b) => [self.terms(a)?, self.terms(b)?].into_iter().flatten().collect(),
            Node::Sub(a, b) => {
                [self.terms(a)?, scaled(self.terms(b)?, &negative)].into_iter().flatten().collect()
            }
            Node::Mul(a, b) if is_scalar(a) => scaled(self.terms(b)?, &|c| self.times((**a).clone(), c)),
            Node::Mul(a, b) if is_scalar(b) => scaled(self.terms(a)?, &|c| self.times(c, (**b).clone())),
            Node::Mul(a, b) => match (&**a, &**b) {
                (Node::Vector(factor), other) | (other, Node::Vector(factor)) => {
                    let mut terms = self.terms(other)?;
                    for term in &mut terms {
                        if term.factor.replace(*factor).is_some() {
                            return Err("it multiplies three vectors; expected at most two in a term");
                        }
                    }
                    terms
                }
                _ => return Err("it multiplies two sums of vectors; expected a vector times a sum"),
            },
            Node::Div(a, b) if is_scalar(b) => scaled(self.terms(a)?, &|c| Node::Div(Box::new(c), b.clone())),
            Node::Div(..) => return Err("it divides by a vector; expected a factor (store the reciprocals)"),
            Node::Conj(_) => return Err("it conjugates a vector"),
            Node::Sqrt(_) => return Err("it takes the root of a vector"),
            Node::Max(..) => return Err("it takes the maximum of vectors"),
            Node::Value(_) | Node::Real(_) | Node::Cell(_) => Vec::new(),
        })
    }

    /// Merges terms over the same vectors.
    fn merge(self, terms: Vec<Open>) -> Vec<Open> {
        let mut merged: Vec<Open> = Vec::new();
        for term in terms {
            match merged.iter_mut().find(|t| t.vector == term.vector && t.factor == term.factor) {
                Some(same) => {
                    let constants = [&same.coefficient, &term.coefficient].map(|c| number(c, self.0));
                    same.coefficient = match constants {
                        [Some(a), Some(b)] => Node::Value(a.plus(b)),
                        _ => {
                            let sum = [&same.coefficient, &term.coefficient].map(|c| Box::new(c.clone()));
                            let [a, b] = sum;
                            Node::Add(a, b)
                        }
                    };
                }
                None => merged.push(term),
            }
        }
        merged
    }
}

fn is_scalar(expr: &Node) -> bool {
    match expr {
        Node::Vector(_) => false,
        Node::Value(_) | Node::Real(_) | Node::Cell(_) => true,
        Node::Neg(a) | Node::Conj(a) | Node::Sqrt(a) => is_scalar(a),
        Node::Max(a, b) | Node::Add(a, b) | Node::Sub(a, b) | Node::Mul(a, b) | Node::Div(a, b) => {
            is_scalar(a) && is_scalar(b)
        }
    }
}

/// The cell that holds a formula's value; instructions that compute it are appended to `code` if needed.
fn operand(expr: &Node, kind: NumberType, cells: &mut dyn Cells, code: &mut Vec<Instr>) -> u32 {
    if let Some(constant) = number(expr, kind) {
        return cells.constant(constant);
    }
    match expr {
        Node::Cell(c) => c.index,
        _ => {
            let dst = cells.temporary();
            evaluate(expr, dst, kind, cells, code);
            dst
        }
    }
}

/// Instructions that set cell `dst` to a formula, appended to `code`.
pub(crate) fn evaluate(
    expr: &Node,
    dst: u32,
    kind: NumberType,
    cells: &mut dyn Cells,
    code: &mut Vec<Instr>,
) {
    let (unary, binary) = match expr {
        Node::Value(_) | Node::Real(_) | Node::Cell(_) => (Some((Unary::Copy, expr)), None),
        Node::Neg(a) => (Some((Unary::Neg, &**a)), None),
        Node::Conj(a) => (Some((Unary::Conj, &**a)), None),
        Node::Sqrt(a) => (Some((Unary::Sqrt, &**a)), None),
        Node::Max(a, b) => (None, Some((Binary::Max, a, b))),
        Node::Add(a, b) => (None, Some((Binary::Add, a, b))),
        Node::Sub(a, b) => (None, Some((Binary::Sub, a, b))),
        Node::Mul(a, b) => (None, Some((Binary::Mul, a, b))),
        Node::Div(a, b) => (None, Some((Binary::Div, a, b))),
        Node::Vector(_) => (None, None), // a Formula holds no vector, by construction
    };
    if let Some((op, a)) = unary {
        let a = operand(a, kind, cells, code);
        code.push(Instr::Unary { op, dst, a });
    } else if let Some((op, a, b)) = binary {
        let (a, b) = (operand(a, kind, cells, code), operand(b, kind, cells, code));
        code.push(Instr::Binary { op, dst, a, b });
    }
}
