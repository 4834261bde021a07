//! The automatic choice of a method and a preconditioner, with its reasons.
use lacuna_engine::Scalar;
use lacuna_engine::compiled_here;
use lacuna_formats::parallel::find_first;
use lacuna_formats::{Csr, Structure};

/// Rows looked at by a thread at a time.
const GRAIN: usize = 4096;

/// A choice by name, with the reason in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The name, as in [`crate::METHODS`] and [`crate::PRECONDITIONERS`].
    pub name: String,
    /// The reason.
    pub why: String,
}

impl Chosen {
    /// A choice with its reason.
    pub fn new(name: &str, why: impl Into<String>) -> Self {
        Chosen { name: name.into(), why: why.into() }
    }

    /// The name and the reason, as one line.
    pub fn sentence(&self, what: &str) -> String {
        format!("{what} {}: {}", self.name, self.why)
    }
}

/// The method for a matrix of this structure.
///
/// Not square: `lsmr`. Hermitian with a positive diagonal, as every positive definite matrix has: `cg`; with
/// a negative diagonal: `cg` on `−A`. Any other Hermitian matrix: `minres`. Any other matrix: `idr` if the
/// diagonal has zeros or negative entries, or if the matrix is symmetric or complex and so may be indefinite,
/// since these stop `bicgstab` early; otherwise `bicgstab`, whose cost per iteration does not grow.
pub fn choose_method(s: &Structure, complex: bool) -> Chosen {
    let symmetry = if complex { "Hermitian" } else { "symmetric" };
    if s.rows != s.cols {
        return Chosen::new("lsmr", "the matrix is not square: least squares");
    }
    if s.hermitian && s.diagonal_positive {
        return Chosen::new("cg", format!("the matrix is {symmetry} with a positive diagonal"));
    }
    if s.hermitian && s.diagonal_negative {
        let why =
            format!("the matrix is {symmetry} with a negative diagonal: its negative is solved instead");
        return Chosen::new("cg", why);
    }
    if s.diagonally_dominant && s.zero_diagonal == 0 {
        let what = match s.hermitian {
            true => "has a diagonal that changes sign".into(),
            false => format!("is not {symmetry}"),
        };
        return Chosen::new("bicgstab", format!("the matrix {what}, and its diagonal dominates"));
    }
    if s.hermitian {
        return Chosen::new("minres", format!("the matrix is {symmetry} and its diagonal is not positive"));
    }
    if s.zero_diagonal > 0 {
        let why = format!("the matrix is not {symmetry} and has {}", zeros(s.zero_diagonal));
        return Chosen::new("idr", why);
    }
    if s.symmetric {
        return Chosen::new("idr", "the matrix is symmetric, not Hermitian, and may be indefinite");
    }
    if complex {
        return Chosen::new("idr", "the matrix is complex, not Hermitian, and may be indefinite");
    }
    if !s.diagonal_positive {
        return Chosen::new("idr", "the matrix is not symmetric and its diagonal changes sign");
    }
    Chosen::new("bicgstab", "the matrix is not symmetric, with a positive diagonal")
}

/// The preconditioner for a matrix under a method: `jacobi` if every diagonal entry has a reciprocal and not
/// all are equal, so that it has an effect. Under a method for Hermitian matrices the entries must be
/// positive too.
pub fn choose_preconditioner<T: Scalar>(a: &Csr<T>, s: &Structure, hermitian: bool) -> Chosen {
    compiled_here!(T, |a: &Csr<T>, s: &Structure, hermitian: bool| -> Chosen {
        if s.rows != s.cols {
            return Chosen::new("none", "least squares; column-scaling evens out columns of different norms");
        }
        if let Some(row) = s.first_zero_diagonal {
            let why = format!("the matrix has {}, the first in row {row} (from 0)", zeros(s.zero_diagonal));
            return Chosen::new("none", why);
        }
        let diagonal = |i: usize| a.get(i, i).unwrap_or(T::zero());
        let first = |test: &(dyn Fn(T) -> bool + Sync)| find_first(a.rows(), GRAIN, |i| test(diagonal(i)));
        if first(&|d| d != diagonal(0)).is_none() {
            return Chosen::new("none", "the diagonal is constant, so jacobi would change nothing");
        }
        if let Some(row) = first(&|d| !T::one().quotient(d).finite()) {
            return Chosen::new(
                "none",
                format!("the diagonal entry of row {row} (from 0) has no reciprocal"),
            );
        }
        if s.weakest_diagonal < T::EPSILON.sqrt() {
            let why = format!(
                "a diagonal entry is {:.0e} of the rest of its row: jacobi would divide by almost zero",
                s.weakest_diagonal
            );
            return Chosen::new("none", why);
        }
        if hermitian && !(s.diagonal_positive || s.diagonal_negative) {
            return Chosen::new("none", "the diagonal is not positive, and the method needs a positive one");
        }
        Chosen::new("jacobi", "the diagonal has no zero and is not constant; it costs no sweep of its own")
    })(a, s, hermitian)
}

fn zeros(count: usize) -> String {
    if count == 1 { "a zero on its diagonal".into() } else { format!("{count} zeros on its diagonal") }
}
