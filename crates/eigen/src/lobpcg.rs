//! LOBPCG with a robust basis: the smallest or largest eigenvalues of `A x = λ B x`, Hermitian, `B` positive definite.
use crate::block::Block;
use crate::search::{self, Found, Goal, Search, Watching};
use crate::small::Small;
use lacuna_engine::{Error, Reason, Result, Scalar};

/// Iterations after which products with `A` and `B` are made anew.
const RENEWED: u64 = 32;
/// Iterations without progress after which the search ends.
const PATIENCE: u64 = 60;
/// The part of the goal below which a pair rests.
const RESTS: f64 = 0.5;
/// Sweeps of an orthogonalisation; two are usual.
const SWEEPS: usize = 6;
/// The least condition (smallest over largest eigenvalue of the Gram matrix) of a block that needs no further sweep.
const WELL: f64 = 1e-4;

/// Columns beside those that are wanted: with them, the last wanted ones converge as fast as the others.
pub(crate) fn guards(count: usize) -> usize {
    count.div_ceil(4).clamp(2, 6)
}

/// Searches by locally optimal block preconditioned conjugate gradients. The basis `[X P W]` is kept orthonormal, so that the small
/// problem is a standard one; columns that depend on others are dropped; what has converged rests and stays in `X`.
///
/// Reference: Knyazev 2001, doi:10.1137/S1064827500366124; Hetmaniuk and Lehoucq 2006, doi:10.1016/j.jcp.2006.02.007; Duersch, Shao,
/// Yang and Gu 2018, doi:10.1137/17M1129830.
pub(crate) fn lobpcg<T: Scalar>(search: &Search<'_, T>, watch: Watching<'_>) -> Result<Found<T>> {
    let n = search.a.shape().0;
    let wanted = search.count;
    let m = (wanted + guards(wanted)).max(search.start.len());
    if 3 * m > n {
        return Err(Error::Unsupported {
            operation: "lobpcg".into(),
            message: format!(
                "{wanted} eigenvalues need a basis of {} vectors of {n} elements; use `dense`",
                3 * m
            ),
        });
    }
    let mut this = Lobpcg {
        block: Block::new(search.dev, search.a, [search.b, search.m], m, 3 * m)?,
        search,
        m,
        values: Vec::new(),
        along: Small::zeros(0, 0),
    };
    this.begin()?;
    this.iterate(watch)
}

struct Lobpcg<'s, 'a, T: Scalar> {
    search: &'s Search<'a, T>,
    block: Block<'a, T>,
    m: usize,
    /// Ritz values, those that are wanted first; with the sign of the search.
    values: Vec<f64>,
    /// `Pᴴ A P`, with the sign of the search.
    along: Small<T::Wide>,
}

/// How an iteration ended.
struct Turn {
    residuals: Vec<f64>,
    /// Columns that do not rest.
    active: Vec<usize>,
}

impl<T: Scalar> Lobpcg<'_, '_, T> {
    /// An orthonormal `X`, from the starting vectors and hashed ones, and its Ritz values.
    fn begin(&mut self) -> Result<()> {
        let n = self.search.a.shape().0;
        let mut columns = 0;
        let mut drawn = 0;
        let start = self.search.start;
        while columns < self.m {
            for j in columns..self.m {
                match start.get(j).filter(|_| drawn == 0) {
                    Some(vector) => self.block.upload(j, vector)?,
                    None => {
                        let vector = search::drawn::<T>(n, self.search.seed, drawn * self.m + j);
                        self.block.upload(j, &vector)?;
                    }
                }
            }
            columns += self.orthonormalise(columns, self.m - columns)?;
            drawn += 1;
            if drawn > SWEEPS {
                let message = format!("no {} independent vectors were found to begin with", self.m);
                return Err(Error::Unsupported { operation: "lobpcg".into(), message });
            }
        }
        self.block.multiply(0, self.m)?;
        let gram = self.block.projected(self.m, 0, self.m)?;
        let gram = self.signed(gram);
        let (values, vectors) = gram.hermitian_part().hermitian_eigen()?;
        self.block.combine(&vectors)?;
        self.values = values;
        Ok(())
    }

    /// The matrix of the sought end of the spectrum as that of the smallest.
    fn signed(&self, gram: Small<T::Wide>) -> Small<T::Wide> {
        if self.search.largest {
            let (rows, cols) = gram.shape();
            Small::of(rows, cols, |i, j| -gram.at(i, j))
        } else {
            gram
        }
    }
    fn sign(&self) -> f64 {
        if self.search.largest { -1.0 } else { 1.0 }
    }

    fn iterate(mut self, watch: Watching<'_>) -> Result<Found<T>> {
        let (mut directions, mut iterations, mut history) = (0, 0, Vec::new());
        let (mut best, mut since) = (f64::INFINITY, 0);
        let reason = loop {
            let mut turn = self.look(iterations > 0 && iterations % RENEWED == 0)?;
            if self.has_converged(&turn) {
                // Only what products made anew say is believed.
                turn = self.look(true)?;
                if self.has_converged(&turn) {
                    break Reason::Converged;
                }
            }
            let worst = self.worst(&turn);
            history.push(worst);
            if worst < 0.9 * best {
                (best, since) = (worst, iterations);
            }
            if self.search.is_enough(self.sign() * self.values[0], turn.residuals[0]) {
                break Reason::Converged;
            }
            if iterations >= self.search.limit {
                break Reason::Limit;
            }
            let converged = self.goals().zip(&turn.residuals).filter(|(goal, left)| *left <= goal).count();
            if watch(iterations, converged, worst).is_break() {
                break Reason::Cancelled;
            }
            let left = if turn.active.is_empty() { None } else { self.step(&turn, directions)? };
            match left {
                Some(kept) if iterations - since < PATIENCE => directions = kept,
                _ => break Reason::Stagnated,
            }
            iterations += 1;
        };
        self.found(reason, iterations, history)
    }

    fn goals(&self) -> impl Iterator<Item = f64> + '_ {
        self.values.iter().take(self.search.count).map(|value| self.search.goal.of(*value))
    }
    fn has_converged(&self, turn: &Turn) -> bool {
        self.goals().zip(&turn.residuals).all(|(goal, left)| *left <= goal)
    }
    /// The largest residual over its goal.
    fn worst(&self, turn: &Turn) -> f64 {
        self.goals().zip(&turn.residuals).map(|(goal, left)| left / goal).fold(0.0, f64::max)
    }
    /// Residuals of all columns.
    fn look(&mut self, anew: bool) -> Result<Turn> {
        if anew {
            self.block.multiply(0, self.m)?;
            self.block.weigh(0, self.m)?;
        }
        let values: Vec<f64> = self.values.iter().map(|value| self.sign() * value).collect();
        let residuals = self.block.residuals(&values)?;
        if let Some(j) = residuals.iter().position(|left| !left.is_finite()) {
            return Err(Error::Unsupported {
                operation: "lobpcg".into(),
                message: format!(
                    "the residual of pair {j} is not finite: scale the matrix, or take another preconditioner"
                ),
            });
        }
        let goal = |j: usize| self.search.goal.of(self.values[j]);
        let active = (0..self.m).filter(|j| residuals[*j] > RESTS * goal(*j)).collect();
        Ok(Turn { residuals, active })
    }

    /// One step with `directions` columns `P` behind `X`. Returns their number afterwards; `None` if nothing new was found.
    fn step(&mut self, turn: &Turn, directions: usize) -> Result<Option<usize>> {
        let (m, kept) = (self.m, self.m + directions);
        self.block.precondition(&turn.active, kept)?;
        let new = self.orthonormalise(kept, turn.active.len())?;
        if new == 0 {
            return Ok(None);
        }
        self.block.multiply(kept, new)?;
        let all = kept + new;
        let beside = self.block.projected(all, kept, new)?;
        let beside = self.signed(beside);
        // X and P are those of the last small problem, by which they are known: X has the Ritz values, and P nothing with X.
        let entry = |i: usize, j: usize| match (i < kept, j < kept) {
            (true, true) if i >= m && j >= m => self.along.at(i - m, j - m),
            (true, true) if i == j => scalar::<T>(self.values[i]),
            (true, true) => scalar::<T>(0.0),
            (_, false) => beside.at(i, j - kept),
            (false, true) => beside.at(j, i - kept).conj(),
        };
        let projected = Small::of(all, all, entry).hermitian_part();
        let (values, vectors) = projected.clone().hermitian_eigen()?;
        let x = vectors.columns(0..m);
        // The new directions: what the active columns gained outside of the former X.
        let outside = |i: usize, j: usize| {
            if i < m { scalar::<T>(0.0) } else { x.at(i, turn.active[j]) }
        };
        let p = Small::of(all, turn.active.len(), outside).orthonormal_beside(&x, T::EPSILON.sqrt());
        let directions = p.shape().1;
        self.along = p.adjoint_times(&projected.times(&p)).hermitian_part();
        self.block.combine(&x.beside(p))?;
        self.values = values[..m].to_vec();
        Ok(Some(directions))
    }

    /// Makes the columns from `first` on orthonormal to those before and among themselves; returns how many are left.
    fn orthonormalise(&mut self, first: usize, count: usize) -> Result<usize> {
        let dropped = 64.0 * T::EPSILON;
        let mut count = count;
        self.block.weigh(first, count)?;
        for sweep in 0..SWEEPS {
            let [along, own] = self.block.gram(first, count)?;
            if let Some(j) = (0..count).find(|j| !own.at(*j, *j).re().is_finite()) {
                let message = format!("column {j} of the basis is not finite: scale the matrix");
                return Err(Error::Unsupported { operation: "lobpcg".into(), message });
            }
            if self.search.b.is_some() && (0..count).any(|j| own.at(j, j).re() < 0.0) {
                return Err(Error::Unsupported {
                    operation: "lobpcg".into(),
                    message: "the mass matrix is not positive definite".into(),
                });
            }
            // What is left of W beside the columns before it.
            let projected = along.adjoint_times(&along);
            let rest = Small::of(count, count, |i, j| own.at(i, j) - projected.at(i, j)).hermitian_part();
            let left = |j: usize| rest.at(j, j).re().max(0.0);
            let roughly = sweep == 0 && first > 0;
            let (inner, well) = if roughly {
                // Too much may cancel: only lengths are taken from this.
                let length = |j: usize| {
                    let whole = own.at(j, j).re();
                    if left(j) > dropped * whole { left(j).sqrt() } else { whole.sqrt() }
                };
                let used: Vec<usize> = (0..count).filter(|j| own.at(*j, *j).re() > 0.0).collect();
                let scale = |i: usize, j: usize| {
                    if i == used[j] { scalar::<T>(1.0 / length(i)) } else { scalar::<T>(0.0) }
                };
                (Small::of(count, used.len(), scale), false)
            } else {
                independent(&rest, dropped)?
            };
            let new = inner.shape().1;
            if new == 0 {
                count = 0;
                break;
            }
            // W ← (W − S (Sᴴ B W)) inner
            let outer = along.times(&inner);
            let outer = Small::of(first, new, |i, j| -outer.at(i, j));
            self.block.replace(first, [&outer, &inner])?;
            count = new;
            if well && sweep > 0 {
                break;
            }
        }
        self.block.settle(first, count)?;
        Ok(count)
    }

    fn found(self, reason: Reason, iterations: u64, history: Vec<f64>) -> Result<Found<T>> {
        let values = self.values.iter().map(|value| self.sign() * value).collect();
        let vectors = (0..self.m).map(|j| self.block.download(j)).collect::<Result<_>>()?;
        let [products, preconditionings] = self.block.count;
        let (restarts, interval, orthogonal) = (0, None, products);
        Ok(Found {
            reason,
            values,
            vectors,
            iterations,
            restarts,
            products,
            orthogonal,
            preconditionings,
            history,
            interval,
        })
    }
}

fn scalar<T: Scalar>(v: f64) -> T::Wide {
    <T::Wide as Scalar>::from_real(v)
}

/// Combinations of columns with this Gram matrix that are orthonormal, by the eigenvectors of the scaled matrix; what depends on
/// others is dropped. Also whether they were nearly orthonormal before.
fn independent<W: lacuna_engine::Double>(gram: &Small<W>, dropped: f64) -> Result<(Small<W>, bool)> {
    let count = gram.shape().0;
    let used: Vec<usize> = (0..count).filter(|j| gram.at(*j, *j).re() > 0.0).collect();
    let by: Vec<f64> = used.iter().map(|j| 1.0 / gram.at(*j, *j).re().sqrt()).collect();
    let scaled =
        Small::of(used.len(), used.len(), |i, j| gram.at(used[i], used[j]) * W::from_real(by[i] * by[j]));
    let (values, vectors) = scaled.hermitian_eigen()?;
    let largest = values.last().copied().unwrap_or(0.0);
    let kept: Vec<usize> = (0..values.len()).filter(|j| values[*j] > dropped * largest).collect();
    let well = kept.len() == count && values.first().is_some_and(|least| *least > WELL * largest);
    let entry = |i: usize, j: usize| match used.iter().position(|row| *row == i) {
        Some(row) => vectors.at(row, kept[j]) * W::from_real(by[row] / values[kept[j]].sqrt()),
        None => W::zero(),
    };
    Ok((Small::of(count, kept.len(), entry), well))
}

impl Goal {
    /// The residual at which a pair has converged.
    pub(crate) fn of(&self, value: f64) -> f64 {
        (self.relative * value.abs()).max(self.floor)
    }
}
