//! Solves for singular values: searches, checks, and searches again for what was missed.
use super::golub_kahan::{Found, Search, golub_kahan};
use super::{Extreme, Svd, SvdOutcome, SvdProblem};
use crate::outcome::Complete;
use crate::problem::{Check, EigenProgress};
use crate::search::{Beyond, Goal, Watching, placed};
use crate::shift::general;
use crate::small::{Small, dot, length};
use crate::trust::residual_and_angles;
use lacuna_engine::{
    Basis, Cells, Device, Error, LinOp, Owned, Pass, Reason, Recorder, Result, Scalar, Vector,
};
use lacuna_formats::Csr;
use lacuna_solvers::norm_bound;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Columns of the smaller side up to which all singular values are computed, and up to which they are if nothing else finds them.
const DENSE: usize = 200;
const MOST_DENSE: usize = 300;
/// Rows of the larger side up to which that is done.
const MOST_ROWS: usize = 2000;
/// The tolerance of values of an inverse, in units of [`Scalar::EPSILON`].
const INVERSE: f64 = 64.0;
/// Second starts after which the search ends, beside two for each value.
const MOST_STARTS: u64 = 10;

pub(super) fn solve<T: Scalar>(
    problem: SvdProblem<T>,
    dev: &Device,
    watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
) -> Result<Svd<T>> {
    let started = Instant::now();
    let (rows, cols) = (problem.a.rows(), problem.a.cols());
    let floor = 4.0 * (rows.max(cols) as f64).sqrt() * T::EPSILON * norm_bound(&problem.a);
    let goal = Goal { relative: problem.rtol, floor: floor.max(f64::MIN_POSITIVE) };
    let adjoint = Arc::new(problem.a.adjoint());
    let mut said = Said { choices: Vec::new(), notes: Vec::new() };
    let task = Task { problem: &problem, adjoint: &adjoint, dev, goal };
    let most = if problem.which == Extreme::Smallest && rows != cols { MOST_DENSE } else { DENSE };
    let (found, second_starts, complete, setup) = if rows.min(cols) <= most && rows.max(cols) <= MOST_ROWS {
        said.choices.push("method dense: the matrix is small".into());
        (task.dense()?, 0, Complete::All, Duration::ZERO)
    } else {
        match problem.which {
            Extreme::Largest => {
                said.choices.push("method golub-kahan: products alone find the largest".into());
                let [a, adjoint] = [placed(dev, &problem.a)?, placed(dev, &adjoint)?];
                let setup = started.elapsed();
                let (found, starts, complete) = task.completed([&a, &adjoint], goal, watch)?;
                (found, starts, complete, setup)
            }
            Extreme::Smallest => {
                said.choices.push("method golub-kahan: by factors of the matrix".into());
                let factors = task.factors()?;
                let setup = started.elapsed();
                let operator = factors.inverse(rows);
                let transposed = lacuna_engine::Adjoint(&operator);
                let inverse = Goal { relative: INVERSE * T::EPSILON, floor: 0.0 };
                let (mut found, starts, complete) =
                    task.completed([&operator, &transposed], inverse, watch)?;
                found.values.iter_mut().for_each(|value| *value = 1.0 / *value);
                // What is left of the inverse is right of the matrix.
                std::mem::swap(&mut found.left, &mut found.right);
                (found, starts, complete, setup)
            }
        }
    };
    task.finish(found, second_starts, complete, (started, setup), said)
}

/// What is reported.
struct Said {
    choices: Vec<String>,
    notes: Vec<String>,
}

struct Task<'a, T: Scalar> {
    problem: &'a SvdProblem<T>,
    adjoint: &'a Csr<T>,
    dev: &'a Device,
    goal: Goal,
}

/// Vectors as columns in double precision.
fn columns<T: Scalar>(vectors: &[Vec<T>]) -> Vec<Vec<T::Wide>> {
    vectors.iter().map(|v| v.iter().map(|v| v.wide()).collect()).collect()
}

/// Combinations of vectors.
fn combined<W: lacuna_engine::Double, T: Scalar<Wide = W>>(
    vectors: &[Vec<W>],
    c: &Small<W>,
    count: usize,
) -> Vec<Vec<T>> {
    let n = vectors.first().map_or(0, Vec::len);
    let one = |j: usize| {
        let row = |i: usize| {
            let terms = vectors.iter().zip(c.column(j)).map(|(v, c)| v[i] * *c);
            terms.fold(W::zero(), |sum, term| sum + term).converted()
        };
        lacuna_formats::parallel::collect(n, 4096, row)
    };
    (0..count).map(one).collect()
}

/// Orthonormal vectors by Gram–Schmidt, twice, and the triangle `R` with `V = Q R`.
fn orthonormal<W: lacuna_engine::Double>(mut v: Vec<Vec<W>>) -> (Vec<Vec<W>>, Small<W>) {
    let mut r = Small::zeros(v.len(), v.len());
    for j in 0..v.len() {
        let (before, rest) = v.split_at_mut(j);
        let own = &mut rest[0];
        for _ in 0..2 {
            for (i, other) in before.iter().enumerate() {
                let part = dot(other, own);
                own.iter_mut().zip(other).for_each(|(v, o)| *v -= *o * part);
                r.set(i, j, r.at(i, j) + part);
            }
        }
        let left = length(own);
        r.set(j, j, W::from_real(left));
        if left > 0.0 {
            own.iter_mut().for_each(|v| *v = v.quotient(W::from_real(left)));
        }
    }
    (v, r)
}

impl<T: Scalar> Task<'_, T> {
    /// All singular values, of which those that are wanted are kept.
    fn dense(&self) -> Result<Found<T>> {
        let (a, wide) = (&self.problem.a, self.problem.a.rows() < self.problem.a.cols());
        let a = if wide { self.adjoint } else { a };
        let mut whole = Small::<T::Wide>::zeros(a.rows(), a.cols());
        a.entries().for_each(|(i, j, v)| whole.set(i, j, v.wide()));
        let svd = whole.svd()?;
        let n = svd.values.len();
        let order: Vec<usize> = match self.problem.which {
            Extreme::Largest => (0..self.problem.count).collect(),
            Extreme::Smallest => (n - self.problem.count..n).rev().collect(),
        };
        let of = |vectors: &Small<T::Wide>| -> Vec<Vec<T>> {
            order.iter().map(|j| vectors.column(*j).iter().map(|v| v.converted()).collect()).collect()
        };
        let (left, right) = (of(&svd.left), of(&svd.right));
        let (left, right) = if wide { (right, left) } else { (left, right) };
        Ok(Found {
            reason: Reason::Converged,
            values: order.iter().map(|j| svd.values[*j]).collect(),
            left,
            right,
            products: 0,
            restarts: 0,
            history: Vec::new(),
        })
    }

    /// Factors of a square matrix.
    fn factors(&self) -> Result<crate::shift::General<T>> {
        let refused =
            |message: String| Error::Unsupported { operation: "smallest singular values".into(), message };
        let a = &self.problem.a;
        if a.rows() != a.cols() {
            return Err(refused(format!(
                "of a matrix of {} x {} they are not found yet: up to {MOST_DENSE} on the shorter side all are computed, and of a square \
                 matrix they come from its factors",
                a.rows(),
                a.cols()
            )));
        }
        general(&**a).map_err(|error| match error {
            Error::Unsupported { message, .. } => {
                refused(format!("{message}; values at the level of rounding belong to the null space"))
            }
            other => other,
        })
    }

    /// A search for the largest values, and others for what it missed.
    fn completed(
        &self,
        operators: [&dyn LinOp<T>; 2],
        goal: Goal,
        watch: &mut dyn FnMut(EigenProgress) -> ControlFlow<()>,
    ) -> Result<(Found<T>, u64, Complete)> {
        let SvdProblem { count, max_iters: limit, seed, check, .. } = *self.problem;
        let search = Search { dev: self.dev, operators, count, goal, limit, seed, beyond: None };
        let mut tell = |what: &'static str, iterations: u64, converged: usize, worst: f64| {
            watch(EigenProgress { what, iterations, converged, of: count, worst })
        };
        let mut found = golub_kahan(&search, &mut |i, c, w| tell("search", i, c, w))?;
        let mut starts = 0;
        let complete = loop {
            if found.reason != Reason::Converged {
                break Complete::Unchecked("the search did not converge".into());
            }
            if check == Check::Off {
                break Complete::Unchecked("not asked for".into());
            }
            let (rows, cols) = operators[0].shape();
            if found.values.len() == rows.min(cols) {
                break Complete::All;
            }
            let last = found.values[count - 1];
            let other = self.other(&found, &search, &mut |i, c, w| tell("second start", i, c, w))?;
            found.products += other.products;
            if other.reason != Reason::Converged {
                let ended = other.reason.name().replace('_', " ");
                break Complete::Unchecked(format!("the second start ended as {ended}"));
            }
            if other.values[0] <= last + 4.0 * goal.of(last) {
                break Complete::Probed;
            }
            starts += 1;
            if starts > 2 * count as u64 + MOST_STARTS {
                break Complete::Missing(1);
            }
            join(operators, self.dev, &mut found, other)?;
        };
        found.values.truncate(count);
        found.left.truncate(count);
        found.right.truncate(count);
        Ok((found, starts, complete))
    }

    /// Searches from another vector for the largest value of `A − U Σ Vᴴ`.
    fn other(&self, found: &Found<T>, searched: &Search<'_, T>, watch: Watching<'_>) -> Result<Found<T>> {
        let (dev, count) = (self.dev, found.values.len());
        let uploaded = |vectors: &[Vec<T>], scaled: bool| -> Result<Owned<Basis<T>>> {
            let basis = dev.basis::<T>(vectors[0].len(), count)?;
            for (j, (v, value)) in vectors.iter().zip(&found.values).enumerate() {
                let by = if scaled { T::from_real(*value) } else { T::one() };
                dev.upload(&v.iter().map(|v| by * *v).collect::<Vec<_>>(), basis.column(j))?;
            }
            Ok(basis)
        };
        let [u, v] = [uploaded(&found.left, false)?, uploaded(&found.right, false)?];
        let [scaled_u, scaled_v] = [uploaded(&found.left, true)?, uploaded(&found.right, true)?];
        let cells = dev.cells::<T>(count)?;
        let [a, adjoint] = searched.operators;
        let less = Less { a, from: *v, to: *scaled_u, cells: *cells };
        let less_adjoint = Less { a: adjoint, from: *u, to: *scaled_v, cells: *cells };
        let again = Search {
            operators: [&less, &less_adjoint],
            count: 1,
            seed: searched.seed + 1 + count as u32,
            beyond: Some(Beyond([found.values[0], found.values[self.problem.count - 1]])),
            ..*searched
        };
        golub_kahan(&again, watch)
    }

    /// Checks the triplets and puts everything together.
    fn finish(
        &self,
        mut found: Found<T>,
        second_starts: u64,
        complete: Complete,
        (started, setup): (Instant, Duration),
        mut said: Said,
    ) -> Result<Svd<T>> {
        for (u, v) in found.left.iter_mut().zip(&mut found.right) {
            let square = |v: &T| v.re() * v.re() + v.im() * v.im();
            let largest = v
                .iter()
                .copied()
                .fold(T::zero(), |largest, v| if square(&v) > square(&largest) { v } else { largest });
            let size = square(&largest).sqrt();
            if size > 0.0 {
                let phase = T::from_parts(largest.re() / size, -largest.im() / size);
                u.iter_mut().chain(v.iter_mut()).for_each(|v| *v *= phase);
            }
        }
        let mut null = 0;
        for value in found.values.iter_mut().filter(|value| **value <= self.goal.floor) {
            (*value, null) = (0.0, null + 1);
        }
        if null > 0 {
            said.notes.push(format!(
                "{null} of the values are below the rounding of the matrix, {:.1e}: they are 0, and their vectors span a part of a \
                 null space",
                self.goal.floor
            ));
        }
        let values = &found.values;
        let of_a = residual_and_angles(&self.problem.a, values, &found.left, &found.right)?;
        let of_adjoint = residual_and_angles(self.adjoint, values, &found.right, &found.left)?;
        let residuals: Vec<[f64; 2]> =
            of_a.residuals.iter().zip(&of_adjoint.residuals).map(|(a, b)| [*a, *b]).collect();
        let met = |(value, left): (&f64, &[f64; 2])| left.iter().all(|left| *left <= self.goal.of(*value));
        let converged: Vec<bool> = values.iter().zip(&residuals).map(met).collect();
        let orthogonality = [of_adjoint.orthogonality, of_a.orthogonality];
        let orthogonal = if T::EPSILON < 1e-10 { 1e-12 } else { 1e-5 };
        let reason = match found.reason {
            Reason::Converged if matches!(complete, Complete::Missing(_)) => {
                Reason::Custom("singular values are missing among those found")
            }
            Reason::Converged
                if !converged.iter().all(|met| *met) || orthogonality.iter().any(|off| *off > orthogonal) =>
            {
                Reason::Stagnated
            }
            reason => reason,
        };
        let Said { choices, notes } = said;
        let outcome = SvdOutcome {
            reason,
            residuals,
            converged,
            complete,
            orthogonality,
            products: found.products,
            restarts: found.restarts,
            second_starts,
            history: found.history,
            setup,
            time: started.elapsed(),
            choices,
            notes,
        };
        Ok(Svd { values: found.values, left: found.left, right: found.right, outcome })
    }
}

/// Puts another triplet beside those that were found: the singular triplets of the operator on the span of all right vectors.
fn join<T: Scalar>(
    [a, _]: [&dyn LinOp<T>; 2],
    dev: &Device,
    found: &mut Found<T>,
    other: Found<T>,
) -> Result<()> {
    found.right.extend(other.right.into_iter().take(1));
    let (right, _) = orthonormal(columns(&found.right));
    let count = right.len();
    let (rows, cols) = a.shape();
    let (x, y) = (dev.basis::<T>(cols, count)?, dev.basis::<T>(rows, count)?);
    for (j, v) in right.iter().enumerate() {
        dev.upload(&v.iter().map(|v| v.converted()).collect::<Vec<T>>(), x.column(j))?;
    }
    dev.spmm(a, *x, *y)?;
    let mut images = vec![vec![T::zero(); rows]; count];
    images.iter_mut().enumerate().try_for_each(|(j, image)| dev.download(y.column(j), image))?;
    let (left, triangle) = orthonormal(columns(&images));
    let svd = triangle.svd()?;
    found.left = combined(&left, &svd.left, count);
    found.right = combined(&right, &svd.right, count);
    found.values = svd.values;
    Ok(())
}

/// `A x − U Σ Vᴴ x`, with `U Σ` as columns.
struct Less<'a, T: Scalar> {
    a: &'a dyn LinOp<T>,
    from: Basis<T>,
    to: Basis<T>,
    /// As many cells as there are columns.
    cells: Cells<T>,
}

impl<T: Scalar> LinOp<T> for Less<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.shape()
    }
    fn apply(&self, k: &mut Recorder<'_, T>, x: Vector<T>, y: Vector<T>, then: Pass<T>) {
        k.spmv_dot(self.a, x, y, Pass::nothing());
        k.basis_dot(self.from, x, self.cells);
        k.basis_axpy(self.to, self.cells, y, then);
    }
}
