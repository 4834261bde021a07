//! The rules by which the first method and the first preconditioner are chosen: what decides, the reasons, and what the help and
//! the guide say.
use super::Facts;
use super::multilevel::{AMG_PAYS, ELASTIC_PAYS, MULTIGRID_PAYS, amg_pays, multigrid_pays};
use super::plan::DIRECT;
use crate::{Amg, MethodInfo, Multigrid, Needs, name_of};
use lacuna_engine::Scalar;
use lacuna_formats::{Csr, parallel::find_first};

/// Rows looked at by a thread at a time.
const GRAIN: usize = 4096;
/// The choice of no preconditioner.
pub(super) const NONE: &str = "none";

/// A choice by name, with the reason in words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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

    /// Says that it stands for what has another name.
    pub(super) fn stands_for(&mut self, name: &str) {
        if name != name_of(&self.name) {
            self.why = format!("for {name}");
        }
    }

    /// The name and the reason, as one line.
    pub fn sentence(&self, what: &str) -> String {
        format!("{what} {}: {}", self.name, self.why)
    }
}

/// A rule: a name, and when it is chosen. The first rule of a list that applies decides.
struct Rule<Case: ?Sized> {
    name: &'static str,
    /// When it applies, for people who have not chosen yet.
    when: String,
    /// Why it applies to a case, if it does.
    why: fn(&Case) -> Option<String>,
}

impl<Case: ?Sized> Rule<Case> {
    fn new(name: &'static str, when: impl Into<String>, why: fn(&Case) -> Option<String>) -> Self {
        Rule { name, when: when.into(), why }
    }
}

/// The first rule that applies. The last of each list always does.
fn first<Case: ?Sized>(rules: impl IntoIterator<Item = Rule<Case>>, case: &Case) -> Chosen {
    let found = rules.into_iter().find_map(|rule| (rule.why)(case).map(|why| Chosen::new(rule.name, why)));
    found.unwrap_or_else(|| Chosen::new(NONE, "no rule applies"))
}

/// The method for a matrix by its structure.
pub(super) fn first_method<T: Scalar>(facts: &Facts<T>) -> Chosen {
    first(method_rules(), facts)
}

/// The preconditioner for a matrix under a method, by structure and values.
pub(super) fn first_preconditioner<T: Scalar>(facts: &Facts<T>, method: &MethodInfo) -> Chosen {
    first(multilevel_rules().into_iter().chain(simple_rules()), &Under { facts, method })
}

/// The preconditioner that costs next to nothing to set up: `jacobi` if that has an effect.
pub(super) fn simple_preconditioner<T: Scalar>(facts: &Facts<T>, method: &MethodInfo) -> Chosen {
    first(simple_rules(), &Under { facts, method })
}

/// What `auto` takes as the method, and when: names and conditions, of which the first that holds decides.
pub fn method_conditions() -> Vec<(&'static str, String)> {
    method_rules::<f64>().into_iter().map(|rule| (rule.name, rule.when)).collect()
}

/// What `auto` takes as the preconditioner, and when: as [`method_conditions`].
pub fn preconditioner_conditions() -> Vec<(&'static str, String)> {
    let said = |rule: Rule<Under<'_, f64>>| (rule.name, rule.when);
    let factors = [(DIRECT, super::complete::condition())];
    multilevel_rules()
        .into_iter()
        .map(said)
        .chain(factors)
        .chain(simple_rules().into_iter().map(said))
        .collect()
}

fn symmetric<T: Scalar>() -> &'static str {
    if T::KIND.is_complex() { "Hermitian" } else { "symmetric" }
}

fn method_rules<T: Scalar>() -> [Rule<Facts<T>>; 7] {
    [
        Rule::new("lsmr", "the matrix is not square", |facts| {
            let s = facts.structure();
            (s.rows != s.cols).then(|| "the matrix is not square: least squares".into())
        }),
        Rule::new("cg", "it is Hermitian with a positive diagonal", |facts| {
            let s = facts.structure();
            let why = || format!("the matrix is {} with a positive diagonal", symmetric::<T>());
            (s.hermitian && s.diagonal_positive).then(why)
        }),
        Rule::new("cg", "it is Hermitian with a negative diagonal (its negative is solved)", |facts| {
            let s = facts.structure();
            let why = || {
                let kind = symmetric::<T>();
                format!("the matrix is {kind} with a negative diagonal: its negative is solved instead")
            };
            (s.hermitian && s.diagonal_negative).then(why)
        }),
        Rule::new("bicgstab", "its diagonal dominates", |facts| {
            let s = facts.structure();
            let why = || {
                let what = match s.hermitian {
                    true => "has a diagonal that changes sign".into(),
                    false => format!("is not {}", symmetric::<T>()),
                };
                format!("the matrix {what}, and its diagonal dominates")
            };
            (s.diagonally_dominant && s.zero_diagonal == 0).then(why)
        }),
        Rule::new("minres", "it is Hermitian", |facts| {
            let why = || format!("the matrix is {} and its diagonal is not positive", symmetric::<T>());
            facts.structure().hermitian.then(why)
        }),
        Rule::new(
            "idr",
            "its diagonal has zeros or changes sign, or it is symmetric or complex: it may be indefinite, which \
             stops bicgstab early",
            |facts| {
                let s = facts.structure();
                if s.zero_diagonal > 0 {
                    return Some(format!(
                        "the matrix is not {} and has {}",
                        symmetric::<T>(),
                        zeros(s.zero_diagonal)
                    ));
                }
                if s.symmetric {
                    return Some("the matrix is symmetric, not Hermitian, and may be indefinite".into());
                }
                if T::KIND.is_complex() {
                    return Some("the matrix is complex, not Hermitian, and may be indefinite".into());
                }
                let why = || "the matrix is not symmetric and its diagonal changes sign".into();
                (!s.diagonal_positive).then(why)
            },
        ),
        Rule::new("bicgstab", "otherwise", |_| {
            Some("the matrix is not symmetric, with a positive diagonal".into())
        }),
    ]
}

/// A matrix under a method.
struct Under<'a, T: Scalar> {
    facts: &'a Facts<T>,
    method: &'a MethodInfo,
}

fn multilevel_rules<'a, T: Scalar>() -> [Rule<Under<'a, T>>; 2] {
    let [host, device] = MULTIGRID_PAYS;
    [
        Rule::new(
            Multigrid::NAME,
            format!(
                "the method is for positive definite matrices, and the matrix is a large diffusion with one stencil on a grid \
                 of at least {host} steps across ({device} on a GPU)"
            ),
            |under| under.method.positive_definite().then(|| multigrid_pays(under.facts)).flatten(),
        ),
        Rule::new(
            Amg::NAME,
            format!(
                "the method is for positive definite matrices, on the CPU, and the matrix is another diffusion, or maps constants \
                 nearly to 0, at least {AMG_PAYS} steps across, or the stiffness of an elastic body of at least {ELASTIC_PAYS} unknowns"
            ),
            |under| under.method.positive_definite().then(|| amg_pays(under.facts)).flatten(),
        ),
    ]
}

fn simple_rules<'a, T: Scalar>() -> [Rule<Under<'a, T>>; 3] {
    [
        Rule::new(NONE, "it is a least-squares problem", |under| match under.method.needs {
            Needs::Range => {
                Some("the method takes none, which would change the norm that it minimises".into())
            }
            Needs::Nothing => {
                Some("least squares; column-scaling evens out columns of different norms".into())
            }
            _ => None,
        }),
        Rule::new(
            NONE,
            "the diagonal is constant, or has entries that are 0, almost 0, or for a method for Hermitian matrices \
             not positive",
            |under| no_use_of_diagonal(under.facts, under.method.hermitian()),
        ),
        Rule::new("jacobi", "otherwise", |_| {
            Some("the diagonal has no zero and is not constant; applying it costs next to nothing".into())
        }),
    ]
}

/// Why the reciprocals of the diagonal are of no use, if they are not: an entry has none, or all are equal. For a
/// `hermitian` method they have to be positive too.
fn no_use_of_diagonal<T: Scalar>(facts: &Facts<T>, hermitian: bool) -> Option<String> {
    let (a, s) = (facts.matrix(), facts.structure());
    if s.rows != s.cols {
        return Some("least squares; column-scaling evens out columns of different norms".into());
    }
    if let Some(row) = s.first_zero_diagonal {
        return Some(format!(
            "the matrix has {}, the first in row {row} (counted from 0)",
            zeros(s.zero_diagonal)
        ));
    }
    let diagonal = |i: usize| a.get(i, i).unwrap_or(T::zero());
    let first = |test: &(dyn Fn(T) -> bool + Sync)| find_first(a.rows(), GRAIN, |i| test(diagonal(i)));
    if first(&|d| d != diagonal(0)).is_none() {
        return Some("the diagonal is constant, so jacobi would change nothing".into());
    }
    if let Some(row) = first(&|d| !T::one().quotient(d).finite()) {
        return Some(format!("the diagonal entry of row {row} (counted from 0) has no reciprocal"));
    }
    if s.weakest_diagonal < T::EPSILON.sqrt()
        && let Some((row, ratio)) = weak_diagonal(&**a)
    {
        return Some(format!(
            "the diagonal entry of row {row} (counted from 0) is {ratio:.0e} of an entry beside it, whatever the scale of rows and \
             columns: jacobi would divide by almost zero"
        ));
    }
    let signed = hermitian && !(s.diagonal_positive || s.diagonal_negative);
    signed.then(|| "the diagonal is not positive, and the method needs a positive one".into())
}

/// The first row with a diagonal entry that is all but 0 beside a coupling, and their ratio `√|a_ii a_jj| / √|a_ij a_ji|`, which does
/// not depend on the scale of rows and columns. Where `a_ji` is 0, `|a_ij|` is compared.
fn weak_diagonal<T: Scalar>(a: &Csr<T>) -> Option<(usize, f64)> {
    let size = |i: usize, j: usize| libm::log2(a.get(i, j).map_or(0.0, Scalar::modulus));
    let ratio = |i: usize| {
        let of = |(j, v): (usize, T)| {
            let (own, image) = (libm::log2(v.modulus()), size(j, i));
            let coupling = if image.is_finite() { (own + image) / 2.0 } else { own };
            (size(i, i) + size(j, j)) / 2.0 - coupling
        };
        a.row_entries(i).filter(|(j, v)| *j != i && *v != T::zero()).map(of).fold(f64::INFINITY, f64::min)
    };
    let row = find_first(a.rows(), GRAIN, |i| ratio(i) < libm::log2(T::EPSILON.sqrt()))?;
    Some((row, libm::exp2(ratio(row))))
}

fn zeros(count: usize) -> String {
    if count == 1 { "a zero on its diagonal".into() } else { format!("{count} zeros on its diagonal") }
}
