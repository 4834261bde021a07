//! When complete factors come before any iteration.
use super::Facts;
use super::multilevel::steps_across;
use super::pace::Pace;
use super::plan::{Candidate, Cost, DIRECT, Plan, When};
use super::rules::Chosen;
use crate::{Amg, Multigrid, name_of};
use lacuna_engine::Scalar;
use lacuna_formats::parallel;
use std::time::Duration;

/// Rows looked at by a thread at a time.
const GRAIN: usize = 4096;
/// Seconds in which an order is found and the factors are counted, per entry and per row of the matrix.
const COUNTING: [f64; 2] = [6e-8, 5e-8];
/// Iterations that a method is expected to take: in general; if the diagonal dominates in half of the rows; if it all but dominates
/// there, and no coupling is strong, or many are, as those of diffusion with very different coefficients; and `idr`, which is taken
/// if the diagonal has zeros or changes sign, and needs about as many as there are unknowns.
const USUAL: f64 = 100.0;
const FEW: f64 = 10.0;
const SMOOTH: f64 = 50.0;
const ROUGH: f64 = 300.0;
const MANY: f64 = 1000.0;
const MOST: f64 = 2000.0;
/// A row is dominated by its diagonal if the moduli of its couplings add up to at most this part of it.
const DOMINATED: f64 = 0.6;
/// It is all but dominated if its couplings `|a_ij| / √(|a_ii| |a_jj|)`, which do not depend on the scale of rows and columns, add up
/// to at most this.
const ALL_BUT: f64 = 1.1;
/// The strongest coupling of a row, so measured, is weak below the one, and strong above the other.
const WEAK: f64 = 0.45;
const STRONG: f64 = 0.6;

/// When complete factors come first, for people who have not chosen yet.
pub(super) fn condition() -> String {
    format!(
        "complete factors are expected to take no longer than the iterations would: {USUAL} in general, {FEW} if the diagonal \
         dominates in half of the rows, {SMOOTH} to {ROUGH} if it almost does, more the stronger couplings are, as many as a \
         diffusion that is not Hermitian needs to cross its graph, and {MANY} or {MOST} of `idr`; the method is then `richardson`, \
         which refines the solution"
    )
}

/// Seconds in which the factors of a matrix with so many rows and entries are counted.
pub fn seconds_of_counting((rows, nnz): (usize, usize)) -> f64 {
    let [entry, row] = COUNTING;
    entry * nnz as f64 + row * rows as f64
}

/// Iterations that the first method of a plan is expected to take: by the rows, and, unless it is `cg`, what a diffusion needs to cross
/// its graph, one step for each product. Where `b` is smooth, `cg` needs fewer.
fn expected<T: Scalar>(facts: &Facts<T>, method: &str) -> f64 {
    let by_rows = by_rows(facts, method);
    if by_rows == FEW || method == "cg" || !facts.is_diffusion() {
        return by_rows;
    }
    let products = if method == "bicgstab" { 2.0 } else { 1.0 };
    by_rows.max(steps_across(facts.matrix(), MANY as usize) as f64 / products)
}

/// Iterations by what most rows are like.
fn by_rows<T: Scalar>(facts: &Facts<T>, method: &str) -> f64 {
    let a = facts.matrix();
    let couplings = |i: usize| a.row_entries(i).filter(move |(j, _)| *j != i);
    let diagonal: Vec<f64> = a.diagonal().iter().map(|d| d.modulus()).collect();
    let half = |count: usize| 2 * count >= a.rows();
    let dominated =
        |i: &usize| couplings(*i).map(|(_, v)| v.modulus()).sum::<f64>() <= DOMINATED * diagonal[*i];
    let counts = parallel::map(a.row_shares(), |share| share.filter(dominated).count());
    if half(counts.into_iter().sum()) {
        return FEW;
    }
    match method {
        "idr" if facts.structure().pattern_symmetric || facts.structure().zero_diagonal == 0 => return MOST,
        // Rows in another order would take zeros from the diagonal of a pattern without symmetry, for `bicgstab`.
        "idr" => return MANY,
        _ => {}
    }
    // The sum of the couplings of a row, and the strongest.
    let scaled = |i: usize| {
        let coupling = |(j, v): (usize, T)| v.modulus() / (diagonal[i].sqrt() * diagonal[j].sqrt());
        couplings(i).map(coupling).fold((0.0, 0.0f64), |(sum, most), c| (sum + c, most.max(c)))
    };
    let rows: Vec<(f64, f64)> = parallel::collect(a.rows(), GRAIN, scaled);
    if !half(rows.iter().filter(|(sum, _)| *sum <= ALL_BUT).count()) {
        return USUAL;
    }
    match exceeded_by_a_tenth(rows.into_iter().map(|(_, strongest)| strongest).collect()) {
        ..WEAK => SMOOTH,
        STRONG.. => ROUGH,
        _ => USUAL,
    }
}

/// The number that a tenth of all exceeds.
fn exceeded_by_a_tenth(mut all: Vec<f64>) -> f64 {
    let Some(last) = all.len().checked_sub(1) else { return 0.0 };
    *all.select_nth_unstable_by(last - last / 10, f64::total_cmp).1
}

/// Puts complete factors first if they are expected to take less than the iterations would. They are counted before anything is
/// made for the device, unless that alone would take longer than the iterations.
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
    let first = name_of(&plan.first.method.name);
    let Pace { preparing, iteration } = Pace::of(first, a, facts.on_host());
    let iterations = expected(facts, first);
    let iterating = preparing + iterations * iteration;
    if seconds_of_counting((a.rows(), a.nnz())) > iterating {
        return plan;
    }
    // They complete a diagonal of their own: rows in another order change little.
    let counted = || facts.factors(iterating).map(|counted| counted.seconds);
    let known = facts.expected_factors().filter(|seconds| *seconds > iterating);
    let Some(seconds) = known.or_else(counted) else { return plan };
    plan.others[at].cost = Cost::Known(Duration::from_secs_f64(seconds));
    if seconds > iterating {
        return plan;
    }
    let why = format!(
        "complete factors are expected in {:.2} ms, {iterations} iterations of {first} in {:.2} ms",
        seconds * 1e3,
        iterating * 1e3
    );
    let direct = plan.others.remove(at);
    // Where pivots were replaced, refinement may fail, and a Krylov method needs a step for each.
    let krylov = Candidate { preconditioner: None, when: When::Failed, ..direct.clone() };
    let method = Chosen::new(
        "richardson",
        "complete factors nearly solve the system, and a few steps of refinement finish it",
    );
    let direct =
        Candidate { method, preconditioner: Some(Chosen::new(DIRECT, why)), when: When::First, ..direct };
    let former = std::mem::replace(&mut plan.first, direct);
    plan.others.retain(|other| other.when != When::Failed);
    let short = Candidate { when: When::Short, ..former.clone() };
    plan.others.splice(0..0, [Candidate { when: When::Refused, ..former }, krylov, short]);
    plan
}
