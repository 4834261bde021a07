//! Thick-restart Lanczos: the extreme eigenvalues of a Hermitian operator.
mod filtering;

use crate::filter::Filter;
use crate::programs::Programs;
use crate::search::{self, Found, Search, Watching};
use crate::small::Small;
use filtering::Turn;
use lacuna_engine::{
    Basis, Cell, Cells, Device, Error, Owned, Pass, Reason, Recorder, Result, Scalar, Vector,
};

/// A norm of a new vector that is this small beside the largest value has found an invariant subspace, in units of
/// [`Scalar::EPSILON`].
pub(crate) const EXHAUSTED: f64 = 64.0;
/// Cycles without progress after which the search ends.
const PATIENCE: u64 = 200;
/// The least number of cycles by the operator alone, from which the interval of a filter is taken.
const PLAIN: u64 = 3;

/// Which values are sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Smallest,
    Largest,
    /// Of largest modulus.
    Modulus,
}

/// Searches by Lanczos' method with full orthogonalisation, always twice, in cycles of a fixed number of columns. A cycle runs on the
/// device; the host solves the small problem, and the best Ritz vectors begin the next one. A vanishing new vector is replaced by a
/// hashed one, so that multiple values of an operator with few distinct ones are found.
///
/// With `inverse`, the values are those of an inverse, and a pair has converged when its own residual is small beside them;
/// vectors are then improved by a product (Ericsson and Ruhe 1980). With a mass matrix `B` the operator is applied to `B x`, and
/// lengths and angles are those of `B`, which may be singular: the first vector is a product, so that no vector has a part that
/// the operator maps to 0 (Nour-Omid, Parlett, Ericsson and Jensen 1987).
///
/// A search in which nothing converges after three cycles goes on with a [`Filter`] in place of the operator, whose products cost less than to make
/// as many vectors orthogonal. Values and residuals are then those of the operator, by a product with each vector at the end of a cycle.
///
/// Reference: Wu and Simon 2000, doi:10.1137/S0895479898334605; Nour-Omid et al., doi:10.1090/S0025-5718-1987-0878698-9.
pub(crate) fn lanczos<T: Scalar>(
    search: &Search<'_, T>,
    end: End,
    inverse: bool,
    watch: Watching<'_>,
) -> Result<Found<T>> {
    let n = search.a.shape().0;
    let wanted = search.count;
    let columns = (2 * wanted + 12).max(24).min(n);
    if wanted >= n || columns < wanted + 2 {
        return Err(Error::Unsupported {
            operation: "lanczos".into(),
            message: format!("{wanted} of {n} eigenvalues; use `dense`"),
        });
    }
    let dev = search.dev;
    let this = Lanczos {
        search,
        end,
        inverse,
        columns,
        bases: [dev.basis(n, columns + 1)?, dev.basis(n, columns + 1)?],
        masses: match search.b {
            Some(_) => Some([dev.basis(n, columns + 1)?, dev.basis(n, columns + 1)?]),
            None => None,
        },
        side: 0,
        cells: dev.cells(columns * (columns + 3))?,
        programs: Programs::new(),
        filter: None,
        filters: 0,
        work: None,
        drawn: 0,
        products: 0,
        steps: 0,
    };
    this.iterate(watch)
}

struct Lanczos<'s, 'a, T: Scalar> {
    search: &'s Search<'a, T>,
    end: End,
    inverse: bool,
    /// Columns of a cycle; one more is kept for the next.
    columns: usize,
    bases: [Owned<Basis<T>>; 2],
    /// `B` times the columns, if there is a mass matrix.
    masses: Option<[Owned<Basis<T>>; 2]>,
    side: usize,
    /// Coefficients of a projection, of a second one, and the diagonal and the norms of a cycle; those of combinations.
    cells: Owned<Cells<T>>,
    programs: Programs<[usize; 3]>,
    /// What takes the place of the operator, and how many there have been.
    filter: Option<Filter<'s, T>>,
    filters: usize,
    /// Two vectors for its products.
    work: Option<[Owned<Vector<T>>; 2]>,
    /// Hashed vectors so far.
    drawn: usize,
    products: u64,
    /// Products of the operator or of the filter whose vectors were made orthogonal.
    steps: u64,
}

/// Values of the operator and the norms of their residuals.
struct Pairs {
    values: Vec<f64>,
    residuals: Vec<f64>,
}

/// The eigenvalues of the small problem in the order sought, its vectors, and the norms of the residuals.
struct Ritz {
    values: Vec<f64>,
    vectors: Small<f64>,
    residuals: Vec<f64>,
    /// The norm of the vector that would come next.
    beta: f64,
}

impl<T: Scalar> Lanczos<'_, '_, T> {
    fn basis(&self) -> Basis<T> {
        *self.bases[self.side]
    }
    /// `B` times the columns; the columns themselves without a mass matrix.
    fn weighed(&self) -> Basis<T> {
        self.masses.as_ref().map_or(self.basis(), |masses| *masses[self.side])
    }
    fn run(
        &mut self,
        key: (&'static str, [usize; 3]),
        record: impl FnOnce(&mut Recorder<'_, T>),
    ) -> Result<()> {
        self.programs.run(self.search.dev, key, record)
    }
    fn dev(&self) -> &Device {
        self.search.dev
    }

    /// A hashed vector, or the first of the given ones, as column `j`, orthonormal to those before it.
    fn draw(&mut self, j: usize) -> Result<()> {
        let (v, bv, n) = (self.basis(), self.weighed(), self.basis().len);
        let (a, b) = (self.search.a, self.search.b);
        for _ in 0..8 {
            let vector = match self.search.start.first().filter(|_| self.drawn == 0) {
                Some(vector) => vector.clone(),
                None => search::drawn(n, self.search.seed, self.drawn),
            };
            self.drawn += 1;
            self.dev().upload(&vector, v.column(j))?;
            let (h, length) = (self.cells.take(j.max(1)), self.cells.at(self.columns));
            self.run(("orthogonalise", [self.side, j, 0]), |k| {
                let (w, bw) = (v.column(j), bv.column(j));
                let measured = || Pass::new("length").dot(length, w, bw).eval(length, length.sqrt());
                if let Some(b) = b {
                    k.spmv_dot(b, w, bw, Pass::nothing());
                    k.spmv_dot(a, bw, w, Pass::nothing());
                    k.spmv_dot(b, w, bw, measured());
                    normalised(k, [w, bw], length);
                }
                for _ in 0..if j > 0 { 2 } else { 0 } {
                    k.basis_dot(bv, w, h);
                    k.basis_axpy(v, h, w, Pass::nothing());
                }
                match b {
                    Some(b) => k.spmv_dot(b, w, bw, measured()),
                    None => k.multi_axpy_dot(measured()),
                }
                normalised(k, [w, bw], length);
            })?;
            let left = self.dev().read(&[length])?[0].re();
            if left.is_finite() && left > T::EPSILON.sqrt() {
                return Ok(());
            }
        }
        let message = format!("no vector orthogonal to {j} others was found");
        Err(Error::Unsupported { operation: "lanczos".into(), message })
    }

    /// Steps from column `first` to the end of the cycle: the diagonal of the small matrix, and the entries beside it.
    fn steps(&mut self, first: usize, floor: &mut f64) -> Result<(Vec<f64>, Vec<f64>)> {
        let (m, v, bv) = (self.columns, self.basis(), self.weighed());
        let (mut alpha, mut beta) = (vec![0.0; m], vec![0.0; m]);
        let mut from = first;
        while from < m {
            let cells = *self.cells;
            let (h, again) = (cells.part(0, m), cells.part(m, m));
            let (alphas, betas) = (cells.part(2 * m, m), cells.part(3 * m, m));
            let (filter, b) = (self.filter, self.search.b);
            let a = filter.as_ref().map_or(self.search.a, |filter| filter);
            let begun = from;
            self.run(("cycle", [self.side, begun, self.filters]), |k| {
                for j in begun..m {
                    let (h, again, norm) = (h.take(j + 1), again.take(j + 1), betas.at(j));
                    let (w, bw) = (v.column(j + 1), bv.column(j + 1));
                    k.spmv_dot(a, bv.column(j), w, Pass::nothing());
                    k.basis_dot(bv, w, h);
                    k.basis_axpy(v, h, w, Pass::nothing());
                    k.basis_dot(bv, w, again);
                    let length = Pass::new("length").dot(norm, w, bw).add_cells(h, again);
                    let length = length.eval(norm, norm.sqrt()).eval(alphas.at(j), h.at(j));
                    match b {
                        Some(b) => {
                            k.basis_axpy(v, again, w, Pass::nothing());
                            k.spmv_dot(b, w, bw, length);
                        }
                        None => k.basis_axpy(v, again, w, length),
                    }
                    normalised(k, [w, bw], norm);
                }
            })?;
            let read = |cells: Cells<T>| self.dev().read_run(cells.part(begun, m - begun));
            let (alphas, betas) = (read(alphas)?, read(betas)?);
            for (j, (a, b)) in (begun..m).zip(alphas.iter().zip(&betas)) {
                (alpha[j], beta[j]) = (a.re(), b.re());
                self.steps += 1;
                self.products += filter.map_or(1, |filter| u64::from(filter.interval.degree));
                from = j + 1;
                if !alpha[j].is_finite() {
                    return Err(Error::Unsupported {
                        operation: "lanczos".into(),
                        message: format!("step {j} of a cycle is not finite: scale the matrix"),
                    });
                }
                *floor = floor.max(EXHAUSTED * T::EPSILON * (alpha[j].abs() + beta[j]));
                if beta[j].is_nan() || beta[j] <= *floor {
                    beta[j] = 0.0;
                    if j + 1 < self.basis().len {
                        self.draw(j + 1)?;
                    }
                    break;
                }
            }
        }
        Ok((alpha, beta))
    }

    fn iterate(mut self, watch: Watching<'_>) -> Result<Found<T>> {
        let (wanted, m) = (self.search.count, self.columns);
        if let Some(interval) = self.search.interval {
            self.damp(interval)?;
        }
        self.draw(0)?;
        let (mut kept, mut ritz, mut cycles): (usize, Option<Ritz>, u64) = (0, None, 0);
        let (mut floor, mut history) = (0.0, Vec::new());
        let (mut best, mut since, mut converged) = (f64::INFINITY, 0, 0);
        let mut other_end = self.search.interval.map_or(0.0, |interval| interval.low());
        let (reason, last) = loop {
            let (alpha, beta) = self.steps(kept, &mut floor)?;
            cycles += 1;
            let projected = Small::of(m, m, |i, j| {
                let (low, high) = (i.min(j), i.max(j));
                match &ritz {
                    Some(ritz) if low == high && low < kept => ritz.values[low],
                    Some(ritz) if high == kept && low < kept => ritz.beta * ritz.vectors.at(m - 1, low),
                    _ if low == high => alpha[low],
                    _ if low + 1 == high && low >= kept => beta[low],
                    _ => 0.0,
                }
            });
            let now = self.ritz(projected, beta[m - 1])?;
            let keep = |converged: usize| (wanted + converged / 2 + (m - wanted) / 3).min(m - 3).max(1);
            kept = keep(converged);
            let pairs = match self.filter {
                None => Pairs { values: now.values.clone(), residuals: now.residuals.clone() },
                Some(_) => {
                    self.restart(&now, kept)?;
                    self.measured(kept)?
                }
            };
            let goal = |j: usize| self.goal(pairs.values[j]);
            let before = converged;
            converged = (0..wanted).take_while(|j| pairs.residuals[*j] <= goal(*j)).count();
            let worst = (0..wanted).map(|j| pairs.residuals[j] / goal(j)).fold(0.0, f64::max);
            history.push(worst);
            if worst < 0.9 * best {
                (best, since) = (worst, cycles);
            }
            let whole = m >= self.basis().len;
            if converged == wanted || whole || self.search.is_enough(pairs.values[0], pairs.residuals[0]) {
                break (Reason::Converged, (now, pairs));
            }
            if self.products >= self.search.limit {
                break (Reason::Limit, (now, pairs));
            }
            if watch(self.products, converged, worst).is_break() {
                break (Reason::Cancelled, (now, pairs));
            }
            if cycles - since > PATIENCE {
                break (Reason::Stagnated, (now, pairs));
            }
            if cycles == 1 && self.filter.is_none() {
                other_end = self.sign() * now.values[m - 1] - now.residuals[m - 1];
            }
            // What converges soon needs no filter.
            let soon = self.filter.is_none() && (cycles < PLAIN || converged > before);
            match if soon { Turn::Stay } else { self.turn(&pairs, other_end) } {
                Turn::Stay if self.filter.is_some() => {}
                Turn::Stay => {
                    kept = keep(converged);
                    self.restart(&now, kept)?;
                }
                turn => {
                    self.begin_again(&now, kept, turn)?;
                    (kept, ritz) = (0, None);
                    continue;
                }
            }
            ritz = Some(now);
        };
        self.found(reason, &last.0, last.1, cycles, history)
    }

    /// 1 if the largest values are sought, -1 if the smallest are: what is sought is then the largest of `±A`.
    fn sign(&self) -> f64 {
        if self.end == End::Smallest { -1.0 } else { 1.0 }
    }

    fn goal(&self, value: f64) -> f64 {
        if self.inverse { self.search.goal.relative * value.abs() } else { self.search.goal.of(value) }
    }
    /// The eigenpairs of the small matrix, those that are sought first.
    fn ritz(&self, projected: Small<f64>, beta: f64) -> Result<Ritz> {
        let m = self.columns;
        let (values, vectors) = projected.hermitian_eigen()?;
        let mut order: Vec<usize> = (0..m).collect();
        match self.end {
            _ if self.filter.is_some() => order.reverse(),
            End::Smallest => {}
            End::Largest => order.reverse(),
            End::Modulus => order.sort_by(|i, j| values[*j].abs().total_cmp(&values[*i].abs())),
        }
        let vectors = vectors.columns(order.iter().copied());
        let residuals = (0..m).map(|j| (beta * vectors.at(m - 1, j)).abs()).collect();
        let values = order.iter().map(|i| values[*i]).collect();
        Ok(Ritz { values, vectors, residuals, beta })
    }

    /// The first `kept` Ritz vectors begin the next cycle, and the vector that would have come next follows them.
    fn restart(&mut self, ritz: &Ritz, kept: usize) -> Result<()> {
        let m = self.columns;
        let coefficients = ritz.vectors.columns(0..kept);
        self.combine(&coefficients, m, "restart", kept)?;
        let from = 1 - self.side;
        self.dev().copy(self.bases[from].column(m), self.basis().column(kept))?;
        match &self.masses {
            Some(masses) => self.dev().copy(masses[from].column(m), self.weighed().column(kept)),
            None => Ok(()),
        }
    }

    /// Combinations of the first `rows` columns become those of the other basis, which is the one to go on with.
    fn combine(&mut self, c: &Small<f64>, rows: usize, name: &'static str, count: usize) -> Result<()> {
        let cells = *self.cells;
        let cells = cells.take(rows * count);
        self.dev().write_run(cells, &c.values().iter().map(|v| T::from_real(*v)).collect::<Vec<_>>())?;
        let pairs: Vec<_> = std::iter::once(&self.bases)
            .chain(&self.masses)
            .map(|sides| (sides[self.side].take(rows), sides[1 - self.side].take(count)))
            .collect();
        self.run((name, [self.side, rows, count]), |k| {
            pairs.iter().for_each(|(from, to)| k.basis_combine(*from, cells, *to));
        })?;
        self.side = 1 - self.side;
        Ok(())
    }

    fn found(
        mut self,
        reason: Reason,
        ritz: &Ritz,
        pairs: Pairs,
        cycles: u64,
        history: Vec<f64>,
    ) -> Result<Found<T>> {
        let m = self.columns;
        let mut order: Vec<usize> = (0..(self.search.count + 1).min(m)).collect();
        if self.filter.is_some() {
            order.sort_by(|i, j| {
                (self.sign() * pairs.values[*j]).total_cmp(&(self.sign() * pairs.values[*i]))
            });
        } else {
            let improved = self.inverse && ritz.beta > 0.0;
            let rows = if improved { m + 1 } else { m };
            let entry = |i: usize, j: usize| match i < m {
                true => ritz.vectors.at(i, j),
                false => ritz.beta * ritz.vectors.at(m - 1, j) / ritz.values[j],
            };
            self.combine(&Small::of(rows, order.len(), entry), rows, "vectors", order.len())?;
        }
        let download = |j: &usize| {
            let mut numbers = vec![T::zero(); self.basis().len];
            self.dev().download(self.basis().column(*j), &mut numbers).map(|()| numbers)
        };
        Ok(Found {
            reason,
            values: order.iter().map(|j| pairs.values[*j]).collect(),
            vectors: order.iter().map(download).collect::<Result<_>>()?,
            iterations: self.steps,
            restarts: cycles - 1,
            products: self.products,
            orthogonal: self.steps,
            preconditionings: 0,
            history,
            interval: self.filter.map(|filter| filter.interval),
        })
    }
}

/// Divides a vector, and `B` times it, by its length.
fn normalised<T: Scalar>(k: &mut Recorder<'_, T>, [w, bw]: [Vector<T>; 2], length: Cell<T>) {
    let pass = Pass::new("normalise").set(w, w / length);
    k.multi_axpy_dot(if w == bw { pass } else { pass.set(bw, bw / length) });
}
