//! When complete factors come before any iteration.
use super::Facts;
use super::pace::seconds_of_iteration;
use super::plan::{Candidate, Cost, DIRECT, Plan, When};
use super::rules::Chosen;
use crate::{Amg, Multigrid, name_of};
use lacuna_engine::Scalar;
use lacuna_formats::parallel;
use std::time::Duration;

/// Seconds in which an order is found and the factors are counted, per entry and per row of the matrix.
const COUNTING: [f64; 2] = [7e-8, 7e-7];
/// Seconds of what iterations need besides a set-up: a format, vectors, a program.
const PREPARING: f64 = 6e-4;
/// Iterations that a method is expected to take: in general; if the diagonal dominates in half of the rows; and if the diagonal
/// has zeros or changes sign, which takes `idr` about as many as there are unknowns.
const USUAL: f64 = 100.0;
const FEW: f64 = 10.0;
const MANY: f64 = 2000.0;
/// A row is dominated by its diagonal if the moduli of its couplings add up to at most this part of it.
const DOMINATED: f64 = 0.6;
/// The part of those iterations in whose time the factors are counted.
const TO_COUNT: f64 = 0.25;
/// Vectors that an iteration reads or writes.
const VECTORS: usize = 10;

/// When complete factors come first, for people who have not chosen yet.
pub(super) fn condition() -> String {
    format!(
        "complete factors are expected to take no longer than {USUAL} iterations, than {FEW} if the diagonal dominates in half of \
         the rows, or than {MANY} of `idr`; the method is then `richardson`, which refines the solution"
    )
}

/// Seconds in which the factors of a matrix with so many rows and entries are counted.
pub(super) fn counting((rows, nnz): (usize, usize)) -> f64 {
    let [entry, row] = COUNTING;
    entry * nnz as f64 + row * rows as f64
}

/// Iterations that the first method of a plan is expected to take.
fn expected<T: Scalar>(facts: &Facts<T>, method: &str) -> f64 {
    let a = facts.matrix();
    let dominated = |i: usize| {
        let (mut diagonal, mut others) = (0.0, 0.0);
        for (j, v) in a.row_entries(i) {
            *if i == j { &mut diagonal } else { &mut others } += v.modulus();
        }
        others <= DOMINATED * diagonal
    };
    let counts = parallel::map(a.row_shares(), |run| run.filter(|&i| dominated(i)).count());
    match method {
        _ if 2 * counts.into_iter().sum::<usize>() >= a.rows() => FEW,
        "idr" => MANY,
        _ => USUAL,
    }
}

/// Puts complete factors first if they are expected to take less than the iterations would. They are counted before anything is
/// made for the device, unless that alone would take longer than a part of the iterations.
pub(super) fn considered<T: Scalar>(mut plan: Plan, facts: &Facts<T>) -> Plan {
    let Some(at) = plan.others.iter().position(|other| other.is_direct() && other.cost == Cost::Counted)
    else {
        return plan;
    };
    let is_multilevel = |name: &str| [Multigrid::NAME, Amg::NAME].contains(&name);
    if plan.first.preconditioner.as_ref().is_some_and(|chosen| is_multilevel(&chosen.name)) {
        return plan;
    }
    let a = facts.matrix();
    let bytes = a.nnz() * (size_of::<T>() + 4) + a.rows() * VECTORS * size_of::<T>();
    let iteration = seconds_of_iteration(bytes, facts.on_host());
    let iterations = expected(facts, name_of(&plan.first.method.name));
    if counting((a.rows(), a.nnz())) > PREPARING + TO_COUNT * iterations * iteration {
        return plan;
    }
    let Some(seconds) = facts.factors().map(|counted| counted.seconds) else { return plan };
    plan.others[at].cost = Cost::Known(Duration::from_secs_f64(seconds));
    if seconds > PREPARING + iterations * iteration {
        return plan;
    }
    let first = name_of(&plan.first.method.name);
    let why = format!(
        "complete factors are expected in {:.2} ms, {iterations} iterations of {first} in {:.2} ms",
        seconds * 1e3,
        iterations * iteration * 1e3
    );
    let direct = plan.others.remove(at);
    // Where pivots were replaced, refinement may fail, and a Krylov method needs a step for each.
    let krylov = Candidate { preconditioner: None, when: When::Failed, ..direct.clone() };
    let method =
        Chosen::new("richardson", "it refines the solution, of which complete factors leave little to do");
    let direct =
        Candidate { method, preconditioner: Some(Chosen::new(DIRECT, why)), when: When::First, ..direct };
    let former = std::mem::replace(&mut plan.first, direct);
    plan.others.retain(|other| other.when != When::Failed);
    let short = Candidate { when: When::Short, ..former.clone() };
    plan.others.splice(0..0, [Candidate { when: When::Refused, ..former }, krylov, short]);
    plan
}
