//! Decomposition of formulas: updates into terms over vectors, cell formulas into instructions.
use crate::expr::cells::{Binary, Instr, Unary};
use crate::expr::formula::Node;
use crate::ir::lower::{Cells, Coefficient, Term};
use crate::{Number, Vector};

/// The terms of an update, merged where they share their vectors, or the reason why it is not linear.
/// Instructions that compute their coefficients are appended to `code`.
pub(crate) fn terms(
    expr: &Node,
    cells: &mut dyn Cells,
    code: &mut Vec<Instr>,
) -> Result<Vec<Term>, &'static str> {
    Ok(merge(linear(expr)?).into_iter().map(|term| term.resolve(cells, code)).collect())
}

/// A term whose coefficient is still a formula.
struct Open {
    coefficient: Node,
    factor: Option<Vector>,
    vector: Vector,
}

impl Open {
    fn resolve(self, cells: &mut dyn Cells, code: &mut Vec<Instr>) -> Term {
        let coefficient = match &self.coefficient {
            Node::Value(v) if v.is(1.0) => Coefficient::One,
            Node::Value(v) if v.is(-1.0) => Coefficient::MinusOne,
            formula => Coefficient::Cell(operand(formula, cells, code)),
        };
        Term { coefficient, factor: self.factor, vector: self.vector }
    }
    fn map(self, f: impl Fn(Node) -> Node) -> Self {
        Open { coefficient: f(self.coefficient), ..self }
    }
}

/// `a · b`, with constants ±1 folded.
fn times(a: Node, b: Node) -> Node {
    match (a, b) {
        (Node::Value(a), Node::Value(b)) => Node::Value(a.times(b)),
        (Node::Value(one), e) | (e, Node::Value(one)) if one.is(1.0) => e,
        (Node::Value(minus), e) | (e, Node::Value(minus)) if minus.is(-1.0) => negative(e),
        (a, b) => Node::Mul(Box::new(a), Box::new(b)),
    }
}

fn negative(e: Node) -> Node {
    match e {
        Node::Value(v) => Node::Value(v.negative()),
        Node::Neg(inner) => *inner,
        e => Node::Neg(Box::new(e)),
    }
}

/// The terms of a formula that is linear in its vectors, or the reason why it is not.
fn linear(expr: &Node) -> Result<Vec<Open>, &'static str> {
    let scaled = |terms: Vec<Open>, by: &dyn Fn(Node) -> Node| terms.into_iter().map(|t| t.map(by)).collect();
    if is_scalar(expr) {
        return match expr {
            Node::Value(v) if v.is(0.0) => Ok(Vec::new()),
            _ => Err("it adds a number to every element; expected a sum of vectors"),
        };
    }
    Ok(match expr {
        Node::Vector(v) => {
            vec![Open { coefficient: Node::Value(Number::real(v.kind, 1.0)), factor: None, vector: *v }]
        }
        Node::Neg(a) => scaled(linear(a)?, &negative),
        Node::Add(a, b) => [linear(a)?, linear(b)?].into_iter().flatten().collect(),
        Node::Sub(a, b) => [linear(a)?, scaled(linear(b)?, &negative)].into_iter().flatten().collect(),
        Node::Mul(a, b) if is_scalar(a) => scaled(linear(b)?, &|c| times((**a).clone(), c)),
        Node::Mul(a, b) if is_scalar(b) => scaled(linear(a)?, &|c| times(c, (**b).clone())),
        Node::Mul(a, b) => match (&**a, &**b) {
            (Node::Vector(factor), other) | (other, Node::Vector(factor)) => {
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
        Node::Div(a, b) if is_scalar(b) => scaled(linear(a)?, &|c| Node::Div(Box::new(c), b.clone())),
        Node::Div(..) => return Err("it divides by a vector; expected a factor (store the reciprocals)"),
        Node::Conj(_) => return Err("it conjugates a vector"),
        Node::Sqrt(_) => return Err("it takes the root of a vector"),
        Node::Max(..) => return Err("it takes the maximum of vectors"),
        Node::Value(_) | Node::Cell(_) => Vec::new(),
    })
}

fn is_scalar(expr: &Node) -> bool {
    match expr {
        Node::Vector(_) => false,
        Node::Value(_) | Node::Cell(_) => true,
        Node::Neg(a) | Node::Conj(a) | Node::Sqrt(a) => is_scalar(a),
        Node::Max(a, b) | Node::Add(a, b) | Node::Sub(a, b) | Node::Mul(a, b) | Node::Div(a, b) => {
            is_scalar(a) && is_scalar(b)
        }
    }
}

/// Merges terms over the same vectors.
fn merge(terms: Vec<Open>) -> Vec<Open> {
    let mut merged: Vec<Open> = Vec::new();
    for term in terms {
        match merged.iter_mut().find(|t| t.vector == term.vector && t.factor == term.factor) {
            Some(same) => {
                let sum = match (&same.coefficient, &term.coefficient) {
                    (Node::Value(a), Node::Value(b)) => Node::Value(a.plus(*b)),
                    (a, b) => Node::Add(Box::new(a.clone()), Box::new(b.clone())),
                };
                same.coefficient = sum;
            }
            None => merged.push(term),
        }
    }
    merged
}

/// The cell that holds a formula's value; instructions that compute it are appended to `code` if needed.
fn operand(expr: &Node, cells: &mut dyn Cells, code: &mut Vec<Instr>) -> u32 {
    match expr {
        Node::Cell(c) => c.index,
        Node::Value(v) => cells.constant(*v),
        _ => {
            let dst = cells.temporary();
            evaluate(expr, dst, cells, code);
            dst
        }
    }
}

/// Instructions that set cell `dst` to a formula, appended to `code`.
pub(crate) fn evaluate(expr: &Node, dst: u32, cells: &mut dyn Cells, code: &mut Vec<Instr>) {
    let (unary, binary) = match expr {
        Node::Value(_) | Node::Cell(_) => (Some((Unary::Copy, expr)), None),
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
        let a = operand(a, cells, code);
        code.push(Instr::Unary { op, dst, a });
    } else if let Some((op, a, b)) = binary {
        let (a, b) = (operand(a, cells, code), operand(b, cells, code));
        code.push(Instr::Binary { op, dst, a, b });
    }
}
