//! Why a solve fell short, and what to try: one line each.
use super::continuation::Continuation;
use crate::name_of;
use lacuna_engine::{Reason, Scalar};

/// Rows whose largest entries differ by this factor are said to differ in scale.
const UNEVEN: f64 = 1e4;

/// Whether a residual relative to `‖b‖` is too large to consist of rounding errors, unless `x` is large.
pub(super) fn is_large<T: Scalar>(residual: f64) -> bool {
    residual > T::EPSILON.sqrt().sqrt()
}

/// What may be tried: a method and a preconditioner by name, of which an empty one stands for any, and what is said of them.
type Remedy = (&'static str, &'static str, &'static str);

const DIRECT: Remedy = ("", "direct", "`direct`");
const GMRES_ILUT: Remedy = ("gmres", "ilut", "`gmres` with `ilut`");
const MINRES: Remedy = ("minres", "", "`minres`");
const GMRES: Remedy = ("gmres", "", "`gmres`");
const BICGSTAB: Remedy = ("bicgstab", "", "`bicgstab`");
const LSMR: Remedy = ("lsmr", "", "`lsmr` (its misfit tells whether any x solves the system)");
/// What compares all that may suit.
const ADVISE: &str = "what `advise` finds";

impl<T: Scalar> Continuation<'_, T> {
    /// Says why the result falls short, and what to try, from what explains it and from the reason. Whether the matrix is Hermitian
    /// is said of that given and of that solved, in another order and scale.
    pub(super) fn diagnose(&mut self, found: &[String], [given, solved]: [bool; 2]) {
        let outcome = &*self.outcome;
        let residual = outcome.true_residual;
        let kind = T::KIND.name();
        let wider: &[&str] = if T::EPSILON > 1e-10 { &["double precision"] } else { &[] };
        let left = |remedies: &[Remedy], last: &[&str]| self.untried(remedies, last);
        let needs_hermitian = self.system.method.info().hermitian();
        let name = &self.system.chosen.method.name;
        // With these methods, complete factors fail for one reason alone.
        let fails_by_factors = ["gmres", "richardson"].iter().any(|method| outcome.used(method, DIRECT.1))
            && is_large::<T>(residual)
            && !matches!(outcome.reason, Reason::Limit | Reason::OutOfRange);
        let (why, advice) = match (found.first(), outcome.reason) {
            (Some(found), _) => {
                let (why, advice) = found.split_once("; ").unwrap_or((found, ""));
                let advice = if advice.is_empty() { "another right-hand side, or another matrix" } else { advice };
                (why.to_string(), advice.to_string())
            }
            (_, Reason::AccuracyAttained) if is_large::<T>(residual) => (
                format!("x grew until rounding errors of {kind} stopped it: A is singular or nearly so"),
                left(&[LSMR, DIRECT], wider),
            ),
            (_, Reason::AccuracyAttained) => {
                let attained = format!("a tolerance of {:.0e}", 2.0 * residual);
                (
                    format!("what is left of the residual is rounding error of {kind}"),
                    left(&[], &[&[&*attained], wider].concat()),
                )
            }
            (_, Reason::OutOfRange) => {
                (format!("the solution is out of the range of {kind}"), "other units".into())
            }
            _ if needs_hermitian && given && !solved => self.unsymmetric(name),
            _ if needs_hermitian && !given => {
                (format!("the matrix is not Hermitian, which {name} needs"), left(&[BICGSTAB, GMRES], &[]))
            }
            _ if fails_by_factors => (
                format!("even complete factors leave a residual of {residual:.1e} |b|: A is singular or nearly so"),
                left(&[LSMR], wider),
            ),
            (_, Reason::IndefiniteOperator) => {
                ("the matrix is not positive definite".into(), left(&[MINRES, GMRES, DIRECT], &[]))
            }
            (_, Reason::IndefinitePreconditioner) => {
                let name = outcome.ways.last().map_or("", |way| &way.preconditioner.name);
                let definite = [
                    ("", "jacobi", "`jacobi`"),
                    ("", "ic0", "`ic0`"),
                    ("", "ssor", "`ssor`"),
                    ("gmres", "", "`gmres` (it takes any)"),
                ];
                (
                    format!("the preconditioner {name} is not positive definite, which the method needs"),
                    left(&definite, &[]),
                )
            }
            (_, reason) => match (self.unevenness(), reason) {
                (uneven, _) if uneven > UNEVEN && self.system.matrix.order.scaling.is_none() => {
                    let by = if given { "symmetric" } else { "both" };
                    let scaling = format!("scaling (`--scale {by}`, `LinearSystem::scale`)");
                    let jacobi = ("", "jacobi", "`jacobi`");
                    let remedies = if given { &[DIRECT, jacobi][..] } else { &[DIRECT] };
                    (
                        format!("the rows of the matrix differ in scale by a factor of {uneven:.0e}"),
                        left(remedies, &[&scaling]),
                    )
                }
                (_, Reason::Limit) => (
                    match residual < 0.9 {
                        true => format!(
                            "{} iterations were too few: the residual fell to {residual:.1e} |b|",
                            outcome.iterations
                        ),
                        false => {
                            format!(
                                "in {} iterations the residual did not fall below |b|",
                                outcome.iterations
                            )
                        }
                    },
                    format!("more iterations, a stronger preconditioner, or {ADVISE}"),
                ),
                (_, Reason::Stagnated) => (
                    "what the method adds to x lowers the residual no more: A may be singular or nearly so, or the method \
                     does not suit it"
                        .into(),
                    left(&[DIRECT, GMRES_ILUT, LSMR], &[ADVISE]),
                ),
                (_, reason) => (reason.to_string(), left(&[DIRECT, GMRES_ILUT], &[ADVISE])),
            },
        };
        (self.outcome.why, self.outcome.advice) = (why, advice);
    }

    /// What is said if the matrix given is Hermitian and the one that is solved is not, which the method of this name needs.
    fn unsymmetric(&self, name: &str) -> (String, String) {
        let (order, left) = (&self.system.matrix.order, [BICGSTAB, GMRES]);
        let others = self.untried(&left, &[]);
        match &order.scaling {
            Some(scaling) => (
                format!("scaling `{}` made the matrix unsymmetric, which {name} cannot use", scaling.name),
                format!("`--scale symmetric`, which keeps it symmetric, or with this scaling {others}"),
            ),
            None => (
                format!(
                    "the order `{}` made the matrix unsymmetric, which {name} cannot use",
                    order.chosen.name
                ),
                format!("no such order, or with it {others}"),
            ),
        }
    }

    /// What is left to try of some remedies and then, whatever was tried, of some more, as one line.
    fn untried(&self, remedies: &[Remedy], more: &[&str]) -> String {
        // Only a preconditioner refuses a matrix.
        let refused = |method: &str, preconditioner: &str| {
            let first = self.system.unavailable.as_deref().map(|name| ("", name));
            let later = self.refused.iter().map(|way| (&*way.method.name, &*way.preconditioner.name));
            let is = |name: &str, asked: &str| asked.is_empty() || name_of(name) == asked;
            !preconditioner.is_empty()
                && first.into_iter().chain(later).any(|(by, name)| is(by, method) && is(name, preconditioner))
        };
        let left = |(method, preconditioner, _): &&Remedy| {
            !self.outcome.used(method, preconditioner) && !refused(method, preconditioner)
        };
        let left: Vec<_> =
            remedies.iter().filter(left).map(|(.., said)| *said).chain(more.iter().copied()).collect();
        match &*left {
            [] if self.outcome.used(LSMR.0, "") => ADVISE.into(),
            [] => LSMR.2.into(),
            [one] => (*one).into(),
            [others @ .., last] => format!("{} or {last}", others.join(", ")),
        }
    }

    /// The ratio of the largest to the smallest of the largest entries of the rows.
    fn unevenness(&self) -> f64 {
        let a = &self.system.matrix.a;
        let largest = |i: usize| a.row_slices(i).1.iter().map(|v| v.modulus()).fold(0.0, f64::max);
        let sizes = (0..a.rows()).map(largest).filter(|size| *size > 0.0);
        let (least, most) = sizes.fold((f64::INFINITY, 0.0f64), |(l, m), size| (l.min(size), m.max(size)));
        if least.is_finite() { most / least } else { 1.0 }
    }
}
