//! Krylov–Schur: eigenvalues at one end of the spectrum of a matrix that need not be Hermitian, in complex numbers.
use super::schur::Schur;
use crate::lanczos::EXHAUSTED;
use crate::programs::{Programs, execute};
use crate::search::{self, Watching};
use crate::small::{Small, length};
use lacuna_engine::{
    Basis, Cells, Complex64, Device, Error, LinOp, Owned, Pass, Reason, Recorder, Result, Scalar,
};

/// Cycles without progress after which the search ends.
const PATIENCE: u64 = 100;

/// Whether an eigenvalue comes before another.
pub(super) type Before<'a> = &'a dyn Fn(Complex64, Complex64) -> bool;

/// A search for one end of the spectrum.
pub(super) struct Search<'a> {
    pub(super) dev: &'a Device,
    pub(super) a: &'a dyn LinOp<Complex64>,
    pub(super) count: usize,
    pub(super) before: Before<'a>,
    /// The residual at which a pair has converged, for its value.
    pub(super) goal: &'a dyn Fn(Complex64) -> f64,
    pub(super) limit: u64,
    pub(super) seed: u32,
    /// A vector to begin with.
    pub(super) start: Option<&'a [Complex64]>,
}

/// What a search found, those that come first first.
pub(super) struct Found {
    pub(super) reason: Reason,
    pub(super) values: Vec<Complex64>,
    pub(super) vectors: Vec<Vec<Complex64>>,
    pub(super) products: u64,
    pub(super) restarts: u64,
    pub(super) history: Vec<f64>,
}

struct KrylovSchur<'s, 'a> {
    search: &'s Search<'a>,
    /// Columns of a cycle; one more is kept for the next.
    columns: usize,
    bases: [Owned<Basis<Complex64>>; 2],
    side: usize,
    /// The projections of each column, one for second ones, and the lengths.
    cells: Owned<Cells<Complex64>>,
    programs: Programs<[usize; 2]>,
    drawn: usize,
    products: u64,
    /// Lengths that are no more than rounding.
    floor: f64,
}

/// Searches by Arnoldi's method with full orthogonalisation, always twice, in cycles of a fixed number of columns; the leading part
/// of the Schur form of the small matrix, ordered, begins the next cycle. A vanishing new vector is replaced by a hashed one.
///
/// Reference: Stewart 2001, doi:10.1137/S0895479800371529.
pub(super) fn krylov_schur(search: &Search<'_>, watch: Watching<'_>) -> Result<Found> {
    let n = search.a.shape().0;
    let columns = (2 * search.count + 16).max(24).min(n);
    let dev = search.dev;
    let this = KrylovSchur {
        search,
        columns,
        bases: [dev.basis(n, columns + 1)?, dev.basis(n, columns + 1)?],
        side: 0,
        cells: dev.cells(columns * (columns + 2))?,
        programs: Programs::new(),
        drawn: 0,
        products: 0,
        floor: 0.0,
    };
    this.iterate(watch)
}

impl KrylovSchur<'_, '_> {
    fn run(
        &mut self,
        key: (&'static str, [usize; 2]),
        record: impl FnOnce(&mut Recorder<'_, Complex64>),
    ) -> Result<()> {
        self.programs.run(self.search.dev, key, record)
    }
    fn basis(&self) -> Basis<Complex64> {
        *self.bases[self.side]
    }

    /// A hashed vector, or the given one, as a column that is orthonormal to those before it.
    fn draw(&mut self, j: usize) -> Result<()> {
        let (dev, v) = (self.search.dev, self.basis());
        let cells = dev.cells::<Complex64>(j + 1)?;
        let (h, norm, w) = (cells.take(j), cells.at(j), v.column(j));
        let mut k = Recorder::new(dev, "draw");
        for _ in 0..if j > 0 { 2 } else { 0 } {
            k.basis_dot(v, w, h);
            k.basis_axpy(v, h, w, Pass::nothing());
        }
        k.multi_axpy_dot(Pass::new("length").dot(norm, w, w).eval(norm, norm.sqrt()));
        k.multi_axpy_dot(Pass::new("normalise").set(w, w / norm));
        let mut plan = dev.plan(k.finish()?)?;
        for _ in 0..8 {
            match self.search.start.filter(|_| self.drawn == 0) {
                Some(start) => dev.upload(start, w)?,
                None => dev.upload(&search::drawn::<Complex64>(v.len, self.search.seed, self.drawn), w)?,
            }
            self.drawn += 1;
            execute(&mut plan)?;
            let left = dev.read(&[norm])?[0].re;
            if left.is_finite() && left > f64::EPSILON.sqrt() {
                return Ok(());
            }
        }
        let message = format!("no vector orthogonal to {j} others was found");
        Err(Error::Unsupported { operation: "krylov-schur".into(), message })
    }

    /// Columns of a cycle from `first` on: adds them to `h`, and returns the last length.
    fn cycle(&mut self, first: usize, h: &mut Small<Complex64>) -> Result<f64> {
        let m = self.columns;
        let (mut from, mut last) = (first, 0.0);
        while from < m {
            let (begun, cells, v, a) = (from, *self.cells, self.basis(), self.search.a);
            let (again, lengths) = (cells.part(m * m, m), cells.part(m * m + m, m));
            self.run(("cycle", [self.side, begun]), |k| {
                for j in begun..m {
                    let (h, again, w) = (cells.part(j * m, j + 1), again.take(j + 1), v.column(j + 1));
                    let norm = lengths.at(j);
                    k.spmv_dot(a, v.column(j), w, Pass::nothing());
                    k.basis_dot(v, w, h);
                    k.basis_axpy(v, h, w, Pass::nothing());
                    k.basis_dot(v, w, again);
                    let length = Pass::new("length").dot(norm, w, w).add_cells(h, again);
                    k.basis_axpy(v, again, w, length.eval(norm, norm.sqrt()));
                    k.multi_axpy_dot(Pass::new("normalise").set(w, w / norm));
                }
            })?;
            let lengths = self.search.dev.read_run(lengths.part(begun, m - begun))?;
            for j in begun..m {
                let column = self.search.dev.read_run(cells.part(j * m, j + 1))?;
                self.products += 1;
                from = j + 1;
                if !column.iter().all(|v| v.finite()) {
                    return Err(Error::Unsupported {
                        operation: "krylov-schur".into(),
                        message: format!("step {j} of a cycle is not finite: scale the matrix"),
                    });
                }
                last = lengths[j - begun].re;
                self.floor = self.floor.max(EXHAUSTED * f64::EPSILON * length(&column).max(last));
                column.iter().enumerate().for_each(|(i, v)| h.set(i, j, *v));
                let vanishes = last.is_nan() || last <= self.floor;
                if vanishes {
                    last = 0.0;
                }
                if j + 1 < m {
                    h.set(j + 1, j, last.into());
                }
                if vanishes {
                    if j + 1 < v.len {
                        self.draw(j + 1)?;
                    }
                    break;
                }
            }
        }
        Ok(last)
    }

    fn iterate(mut self, watch: Watching<'_>) -> Result<Found> {
        let (wanted, m, n) = (self.search.count, self.columns, self.basis().len);
        self.draw(0)?;
        let (mut kept, mut cycles, mut history) = (0, 0, Vec::new());
        let mut h = Small::<Complex64>::zeros(m, m);
        let (mut best, mut since) = (f64::INFINITY, 0);
        loop {
            let beta = self.cycle(kept, &mut h)?;
            cycles += 1;
            let mut schur = Schur::of(h)?;
            // Some more than are wanted: what is kept is among those that come first too.
            kept = (wanted + (m - wanted) / 3 + 1).min(m.saturating_sub(3)).max(1);
            schur.order(kept.max(wanted), self.search.before);
            let values = schur.values();
            let row = |j: usize| schur.vectors.at(m - 1, j) * beta;
            let pairs = schur.eigenvectors(wanted);
            let residual = |i: usize| {
                let sum = (0..=i).fold(Complex64::from(0.0), |sum, j| sum + row(j) * pairs.at(j, i));
                length(&[sum])
            };
            let left: Vec<f64> = (0..wanted).map(|i| residual(i) / (self.search.goal)(values[i])).collect();
            let converged = left.iter().take_while(|left| **left <= 1.0).count();
            let worst = left.iter().copied().fold(0.0, f64::max);
            history.push(worst);
            if worst < 0.9 * best {
                (best, since) = (worst, cycles);
            }
            let ended = if converged == wanted || m == n {
                Some(Reason::Converged)
            } else if self.products >= self.search.limit {
                Some(Reason::Limit)
            } else if watch(self.products, converged, worst).is_break() {
                Some(Reason::Cancelled)
            } else if cycles - since > PATIENCE {
                Some(Reason::Stagnated)
            } else {
                None
            };
            if let Some(reason) = ended {
                let combinations = schur.vectors.times(&pairs);
                self.combine(&combinations, "vectors")?;
                let mut vectors = vec![vec![Complex64::from(0.0); n]; wanted];
                for (j, vector) in vectors.iter_mut().enumerate() {
                    self.search.dev.download(self.basis().column(j), vector)?;
                }
                let values = values[..wanted].to_vec();
                let (products, restarts) = (self.products, cycles - 1);
                return Ok(Found { reason, values, vectors, products, restarts, history });
            }
            self.combine(&schur.vectors.columns(0..kept), "restart")?;
            let [from, to] = [1 - self.side, self.side].map(|side| *self.bases[side]);
            self.search.dev.copy(from.column(m), to.column(kept))?;
            let entry = |i: usize, j: usize| match (i, j) {
                (i, j) if i < kept && j < kept => schur.triangle.at(i, j),
                (i, j) if i == kept && j < kept => row(j),
                _ => 0.0.into(),
            };
            h = Small::of(m, m, entry);
        }
    }

    /// Combinations of the columns become those of the other basis, which is the one to go on with.
    fn combine(&mut self, c: &Small<Complex64>, name: &'static str) -> Result<()> {
        let (rows, count) = c.shape();
        let cells = self.cells.take(rows * count);
        self.search.dev.write_run(cells, c.values())?;
        let [from, to] = [self.side, 1 - self.side].map(|side| *self.bases[side]);
        self.run((name, [self.side, count]), |k| k.basis_combine(from.take(rows), cells, to.take(count)))?;
        self.side = 1 - self.side;
        Ok(())
    }
}
