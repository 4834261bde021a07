//! Arithmetic on handles: `r + beta * (p - omega * v)` builds a formula that the device evaluates.
use crate::{Cell, Number, Scalar, Untyped, Vector};
use std::marker::PhantomData;

/// A formula of any number type.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Value(Number),
    /// A real number, rounded to the type of the formula when that is lowered.
    Real(f64),
    Cell(Cell),
    Vector(Vector),
    Neg(Box<Node>),
    Conj(Box<Node>),
    Sqrt(Box<Node>),
    Max(Box<Node>, Box<Node>),
    Add(Box<Node>, Box<Node>),
    Sub(Box<Node>, Box<Node>),
    Mul(Box<Node>, Box<Node>),
    Div(Box<Node>, Box<Node>),
}

/// A formula over vectors (element by element), cells and constants.
#[derive(Clone, Debug)]
pub struct Expr<T = Untyped> {
    pub(crate) node: Node,
    marker: PhantomData<fn() -> T>,
}

impl<T> Expr<T> {
    fn of(node: Node) -> Self {
        Expr { node, marker: PhantomData }
    }
}

impl<T: Scalar> Expr<T> {
    /// A constant.
    pub fn value(value: T) -> Self {
        Expr::of(Node::Value(Number::new(value)))
    }
}

impl<T> Expr<T> {
    /// A real constant, rounded to the number type.
    pub fn real(value: f64) -> Self {
        Expr::of(Node::Real(value))
    }
    /// The number with the larger real part.
    pub fn max(self, other: impl Into<Expr<T>>) -> Self {
        Expr::of(Node::Max(Box::new(self.node), Box::new(other.into().node)))
    }
    /// The principal square root.
    pub fn sqrt(self) -> Self {
        Expr::of(Node::Sqrt(Box::new(self.node)))
    }
    /// The complex conjugate.
    pub fn conj(self) -> Self {
        Expr::of(Node::Conj(Box::new(self.node)))
    }
}

/// A formula without vectors: the right-hand side for a cell.
#[derive(Clone, Debug)]
pub struct Formula<T = Untyped>(pub(crate) Expr<T>);

impl<T: Scalar> Formula<T> {
    /// A constant.
    pub fn value(value: T) -> Self {
        Formula(Expr::value(value))
    }
}

impl<T> Formula<T> {
    /// A real constant, rounded to the number type.
    pub fn real(value: f64) -> Self {
        Formula(Expr::real(value))
    }
    /// The formula with the larger real part.
    pub fn max(self, other: impl Into<Formula<T>>) -> Self {
        Formula(self.0.max(other.into().0))
    }
    /// The principal square root.
    pub fn sqrt(self) -> Self {
        Formula(self.0.sqrt())
    }
    /// The complex conjugate.
    pub fn conj(self) -> Self {
        Formula(self.0.conj())
    }
}

impl<T> Cell<T> {
    /// [`Scalar::EPSILON`](crate::Scalar::EPSILON) of its number type.
    pub fn epsilon(self) -> f64 {
        self.kind.epsilon()
    }
    /// [`Scalar::TINY`](crate::Scalar::TINY) of its number type.
    pub fn tiny(self) -> f64 {
        self.kind.tiny()
    }
    /// The number with the larger real part.
    pub fn max(self, other: impl Into<Formula<T>>) -> Formula<T> {
        Formula::from(self).max(other)
    }
    /// The principal square root.
    pub fn sqrt(self) -> Formula<T> {
        Formula::from(self).sqrt()
    }
    /// The complex conjugate.
    pub fn conj(self) -> Formula<T> {
        Formula::from(self).conj()
    }
    /// True if the real part of this is not above that of `bound`. False for NaN.
    pub fn le(self, bound: Cell<T>) -> Test<T> {
        Test::LessEqual(self, bound)
    }
    /// True if the real part of this is above that of `bound`. False for NaN.
    pub fn gt(self, bound: Cell<T>) -> Test<T> {
        Test::Greater(self, bound)
    }
    /// True unless the real part is above 0. True for NaN.
    pub fn not_positive(self) -> Test<T> {
        Test::NotPositive(self)
    }
    /// True if a part is infinite or NaN.
    pub fn not_finite(self) -> Test<T> {
        Test::NotFinite(self)
    }
    /// True if every part is 0.
    pub fn is_zero(self) -> Test<T> {
        Test::Zero(self)
    }
}

/// A test of cells, evaluated on the device.
#[derive(Clone, Copy, Debug)]
pub enum Test<T = Untyped> {
    /// `re(a) ≤ re(b)`
    LessEqual(Cell<T>, Cell<T>),
    /// `re(a) > re(b)`
    Greater(Cell<T>, Cell<T>),
    /// not `re(a) > 0`
    NotPositive(Cell<T>),
    /// a part of `a` is infinite or NaN
    NotFinite(Cell<T>),
    /// `a = 0`
    Zero(Cell<T>),
}

impl<T> Test<T> {
    /// The same test with its number type as a value.
    pub(crate) fn untyped(self) -> Test {
        match self {
            Test::LessEqual(a, b) => Test::LessEqual(a.untyped(), b.untyped()),
            Test::Greater(a, b) => Test::Greater(a.untyped(), b.untyped()),
            Test::NotPositive(a) => Test::NotPositive(a.untyped()),
            Test::NotFinite(a) => Test::NotFinite(a.untyped()),
            Test::Zero(a) => Test::Zero(a.untyped()),
        }
    }
    /// The cells it tests.
    pub(crate) fn cells(self) -> impl Iterator<Item = Cell<T>> {
        let (a, b) = match self {
            Test::LessEqual(a, b) | Test::Greater(a, b) => (a, Some(b)),
            Test::NotPositive(a) | Test::NotFinite(a) | Test::Zero(a) => (a, None),
        };
        [a].into_iter().chain(b)
    }
}

impl<T> From<Cell<T>> for Expr<T> {
    fn from(cell: Cell<T>) -> Self {
        Expr::of(Node::Cell(cell.untyped()))
    }
}
impl<T> From<Vector<T>> for Expr<T> {
    fn from(vector: Vector<T>) -> Self {
        Expr::of(Node::Vector(vector.untyped()))
    }
}
impl<T> From<Formula<T>> for Expr<T> {
    fn from(formula: Formula<T>) -> Self {
        formula.0
    }
}
impl<T> From<Cell<T>> for Formula<T> {
    fn from(cell: Cell<T>) -> Self {
        Formula(Expr::from(cell))
    }
}
impl<T> From<f64> for Formula<T> {
    fn from(value: f64) -> Self {
        Formula::real(value)
    }
}

/// One operator for one pair of operand types.
macro_rules! operator {
    ($trait:ident $method:ident, $lhs:ty, $rhs:ty => $out:ty, $wrap:expr, $left:expr, $right:expr) => {
        impl<T> std::ops::$trait<$rhs> for $lhs {
            type Output = $out;
            fn $method(self, rhs: $rhs) -> $out {
                let (left, right): (Expr<T>, Expr<T>) = ($left(self), $right(rhs));
                $wrap(Expr::of(Node::$trait(Box::new(left.node), Box::new(right.node))))
            }
        }
    };
}
/// The four operators: between scalars they give a [`Formula`], with a vector an [`Expr`].
macro_rules! operators {
    ($($lhs:ty, $rhs:ty => $out:ty, $wrap:expr;)*) => {$(
        operator!(Add add, $lhs, $rhs => $out, $wrap, Expr::from, Expr::from);
        operator!(Sub sub, $lhs, $rhs => $out, $wrap, Expr::from, Expr::from);
        operator!(Mul mul, $lhs, $rhs => $out, $wrap, Expr::from, Expr::from);
        operator!(Div div, $lhs, $rhs => $out, $wrap, Expr::from, Expr::from);
    )*};
    (real $($type:ty => $out:ty, $wrap:expr;)*) => {$(
        operators!(@real $type => $out, $wrap; Add add Sub sub Mul mul Div div);
    )*};
    (@real $type:ty => $out:ty, $wrap:expr; $($trait:ident $method:ident)*) => {$(
        operator!($trait $method, $type, f64 => $out, $wrap, Expr::from, Expr::real);
        operator!($trait $method, f64, $type => $out, $wrap, Expr::real, Expr::from);
    )*};
}
operators! {
    Cell<T>, Cell<T> => Formula<T>, Formula;
    Cell<T>, Formula<T> => Formula<T>, Formula;
    Formula<T>, Cell<T> => Formula<T>, Formula;
    Formula<T>, Formula<T> => Formula<T>, Formula;
    Cell<T>, Vector<T> => Expr<T>, std::convert::identity;
    Cell<T>, Expr<T> => Expr<T>, std::convert::identity;
    Formula<T>, Vector<T> => Expr<T>, std::convert::identity;
    Formula<T>, Expr<T> => Expr<T>, std::convert::identity;
    Vector<T>, Cell<T> => Expr<T>, std::convert::identity;
    Vector<T>, Formula<T> => Expr<T>, std::convert::identity;
    Vector<T>, Vector<T> => Expr<T>, std::convert::identity;
    Vector<T>, Expr<T> => Expr<T>, std::convert::identity;
    Expr<T>, Cell<T> => Expr<T>, std::convert::identity;
    Expr<T>, Formula<T> => Expr<T>, std::convert::identity;
    Expr<T>, Vector<T> => Expr<T>, std::convert::identity;
    Expr<T>, Expr<T> => Expr<T>, std::convert::identity;
}
operators! { real
    Cell<T> => Formula<T>, Formula;
    Formula<T> => Formula<T>, Formula;
    Vector<T> => Expr<T>, std::convert::identity;
    Expr<T> => Expr<T>, std::convert::identity;
}
macro_rules! negation {
    ($($type:ty => $out:ty, $wrap:expr;)*) => {$(
        impl<T> std::ops::Neg for $type {
            type Output = $out;
            fn neg(self) -> $out {
                let inner: Expr<T> = self.into();
                $wrap(Expr::of(Node::Neg(Box::new(inner.node))))
            }
        }
    )*};
}
negation! {
    Cell<T> => Formula<T>, Formula;
    Formula<T> => Formula<T>, Formula;
    Vector<T> => Expr<T>, std::convert::identity;
    Expr<T> => Expr<T>, std::convert::identity;
}
