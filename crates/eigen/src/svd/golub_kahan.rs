//! Thick-restart Golub–Kahan: the largest singular values of an operator that knows its adjoint.
use crate::jacobi::SmallSvd;
use crate::lanczos::EXHAUSTED;
use crate::programs::{Programs, execute};
use crate::search::{self, Beyond, Goal, Watching};
use crate::small::Small;
use lacuna_engine::{
    Basis, Cell, Cells, Device, Error, LinOp, Owned, Pass, Reason, Recorder, Result, Scalar,
};

/// Cycles without progress after which the search ends.
const PATIENCE: u64 = 100;

/// A search for the largest singular values.
pub(super) struct Search<'a, T: Scalar> {
    pub(super) dev: &'a Device,
    /// `A` and `Aᴴ`.
    pub(super) operators: [&'a dyn LinOp<T>; 2],
    pub(super) count: usize,
    pub(super) goal: Goal,
    pub(super) limit: u64,
    pub(super) seed: u32,
    /// Ends once the first value is surely below these.
    pub(super) beyond: Option<Beyond>,
}

/// What a search found, from the largest value on.
pub(super) struct Found<T> {
    pub(super) reason: Reason,
    pub(super) values: Vec<f64>,
    pub(super) left: Vec<Vec<T>>,
    pub(super) right: Vec<Vec<T>>,
    /// Products with `A` or `Aᴴ`.
    pub(super) products: u64,
    pub(super) restarts: u64,
    /// The largest residual over its goal, for each cycle.
    pub(super) history: Vec<f64>,
}

/// The left or the right vectors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// Where a cycle goes on: the column, and whether its left vector is there already.
type At = (usize, bool);

struct GolubKahan<'s, 'a, T: Scalar> {
    search: &'s Search<'a, T>,
    /// Columns of a cycle; one more is kept on the right for the next.
    columns: usize,
    left: [Owned<Basis<T>>; 2],
    right: [Owned<Basis<T>>; 2],
    side: usize,
    /// The projections of each column, those of a second time, and the lengths on both sides.
    cells: Owned<Cells<T>>,
    programs: Programs<[usize; 3]>,
    drawn: usize,
    products: u64,
    /// Lengths that are no more than rounding.
    floor: f64,
}

/// Searches by Golub and Kahan's bidiagonalisation with full orthogonalisation on both sides, always twice, in cycles of a fixed
/// number of columns. `A P = Q B` with an upper triangle `B`, and `Aᴴ Q = P Bᴴ + β p eᵀ`; the best singular triplets of `B` begin the
/// next cycle. A vanishing new vector is replaced by a hashed one.
///
/// Reference: Baglama and Reichel 2005, doi:10.1137/04060593X.
pub(super) fn golub_kahan<T: Scalar>(search: &Search<'_, T>, watch: Watching<'_>) -> Result<Found<T>> {
    let (rows, cols) = search.operators[0].shape();
    let (dev, least) = (search.dev, rows.min(cols));
    let columns = (2 * search.count + 12).max(24).min(least);
    if search.count > least || columns < 1 {
        return Err(Error::Unsupported {
            operation: "golub-kahan".into(),
            message: format!("{} of {least} singular values", search.count),
        });
    }
    let m = columns;
    let this = GolubKahan {
        search,
        columns,
        left: [dev.basis(rows, m)?, dev.basis(rows, m)?],
        right: [dev.basis(cols, m + 1)?, dev.basis(cols, m + 1)?],
        side: 0,
        cells: dev.cells(m * (m + 4))?,
        programs: Programs::new(),
        drawn: 0,
        products: 0,
        floor: 0.0,
    };
    this.iterate(watch)
}

/// `w ← w − V Vᴴ w`, twice, with the sum of both projections in `h`, and the length of what is left.
fn orthogonalise<T: Scalar>(
    k: &mut Recorder<'_, T>,
    v: Basis<T>,
    [h, again]: [Cells<T>; 2],
    w: lacuna_engine::Vector<T>,
    length: Cell<T>,
) {
    let measured = Pass::new("length").dot(length, w, w);
    if h.count > 0 {
        k.basis_dot(v, w, h);
        k.basis_axpy(v, h, w, Pass::nothing());
        k.basis_dot(v, w, again);
        k.basis_axpy(v, again, w, measured.add_cells(h, again).eval(length, length.sqrt()));
    } else {
        k.multi_axpy_dot(measured.eval(length, length.sqrt()));
    }
    k.multi_axpy_dot(Pass::new("normalise").set(w, w / length));
}

impl<T: Scalar> GolubKahan<'_, '_, T> {
    fn run(
        &mut self,
        key: (&'static str, [usize; 3]),
        record: impl FnOnce(&mut Recorder<'_, T>),
    ) -> Result<()> {
        self.programs.run(self.search.dev, key, record)
    }
    /// The projections of column `j` on those before it.
    fn projections(&self, j: usize, count: usize) -> Cells<T> {
        self.cells.part(j * self.columns, count)
    }
    /// Room for second projections, the lengths on the left, and those on the right.
    fn others(&self) -> [Cells<T>; 3] {
        let (m, from) = (self.columns, self.columns * self.columns);
        [0, 1, 2].map(|k| self.cells.part(from + k * m, m))
    }
    /// Room for projections on the right.
    fn back(&self) -> Cells<T> {
        let m = self.columns;
        self.cells.part(m * (m + 3), m)
    }

    /// A hashed vector as a column of one of the bases, orthonormal to those before it.
    fn draw(&mut self, of: Side, j: usize) -> Result<()> {
        let dev = self.search.dev;
        let v = *self.bases(of)[self.side];
        // Rare, or the first: not worth keeping a program.
        let cells = dev.cells::<T>(2 * j + 1)?;
        let mut k = Recorder::new(dev, "draw");
        orthogonalise(&mut k, v, [cells.take(j), cells.part(j, j)], v.column(j), cells.at(2 * j));
        let mut plan = dev.plan(k.finish()?)?;
        for _ in 0..8 {
            dev.upload(&search::drawn::<T>(v.len, self.search.seed, self.drawn), v.column(j))?;
            self.drawn += 1;
            execute(&mut plan)?;
            let left = dev.read(&[cells.at(2 * j)])?[0].re();
            if left.is_finite() && left > T::EPSILON.sqrt() {
                return Ok(());
            }
        }
        let message = format!("no vector orthogonal to {j} others was found");
        Err(Error::Unsupported { operation: "golub-kahan".into(), message })
    }

    fn bases(&self, of: Side) -> &[Owned<Basis<T>>; 2] {
        match of {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }

    /// The operations of a cycle from a place on.
    fn record(&mut self, (begun, has_left): At) -> Result<()> {
        let (m, [a, adjoint]) = (self.columns, self.search.operators);
        let (q, p) = (*self.left[self.side], *self.right[self.side]);
        let [again, alphas, betas] = self.others();
        let h: Vec<Cells<T>> = (0..m).map(|j| self.projections(j, j)).collect();
        let back = self.back();
        self.run(("cycle", [self.side, begun, has_left.into()]), |k| {
            for (j, h) in h.iter().enumerate().skip(begun) {
                if j > begun || !has_left {
                    k.spmv_dot(a, p.column(j), q.column(j), Pass::nothing());
                    orthogonalise(k, q, [*h, again.take(j)], q.column(j), alphas.at(j));
                }
                k.spmv_dot(adjoint, q.column(j), p.column(j + 1), Pass::nothing());
                orthogonalise(k, p, [back.take(j + 1), again.take(j + 1)], p.column(j + 1), betas.at(j));
            }
        })
    }

    /// Runs the columns of a cycle from `first` on: adds them to `b`, and returns the last length on the right.
    fn cycle(&mut self, first: usize, b: &mut Small<T::Wide>) -> Result<f64> {
        let (m, least) = (self.columns, T::EPSILON * EXHAUSTED);
        let (mut at, mut last) = ((first, false), 0.0);
        while at.0 < m {
            let (begun, has_left) = at;
            self.record(at)?;
            let [_, alphas, betas] = self.others();
            let read = |cells: Cells<T>| self.search.dev.read_run(cells.part(begun, m - begun));
            let (alphas, betas) = (read(alphas)?, read(betas)?);
            for j in begun..m {
                let (mut alpha, beta) = (alphas[j - begun].re(), betas[j - begun].re());
                let known = j == begun && has_left;
                if known {
                    alpha = 0.0;
                } else {
                    self.products += 1;
                    let h = self.search.dev.read_run(self.projections(j, j))?;
                    if h.iter().any(|v| !v.finite()) || alpha.is_infinite() {
                        return Err(Error::Unsupported {
                            operation: "golub-kahan".into(),
                            message: format!("step {j} of a cycle is not finite: scale the matrix"),
                        });
                    }
                    h.iter().enumerate().for_each(|(i, v)| b.set(i, j, v.wide()));
                    let whole = h.iter().map(|v| v.re() * v.re() + v.im() * v.im()).sum::<f64>().sqrt();
                    self.floor = self.floor.max(least * whole.max(alpha));
                    if alpha.is_nan() || alpha <= self.floor {
                        // What `A` makes of this column is known: any other left vector goes with it.
                        b.set(j, j, <T::Wide as Scalar>::from_real(0.0));
                        self.draw(Side::Left, j)?;
                        at = (j, true);
                        break;
                    }
                }
                b.set(j, j, <T::Wide as Scalar>::from_real(alpha));
                self.products += 1;
                at = (j + 1, false);
                last = beta;
                if beta.is_nan() || beta <= self.floor {
                    last = 0.0;
                    if j + 1 < self.right[0].len {
                        self.draw(Side::Right, j + 1)?;
                    }
                    break;
                }
            }
        }
        Ok(last)
    }

    fn iterate(mut self, watch: Watching<'_>) -> Result<Found<T>> {
        let (wanted, m) = (self.search.count, self.columns);
        self.draw(Side::Right, 0)?;
        let (mut kept, mut cycles, mut history) = (0, 0, Vec::new());
        let mut b = Small::<T::Wide>::zeros(m, m);
        let (mut best, mut since) = (f64::INFINITY, 0);
        let (reason, svd) = loop {
            let beta = self.cycle(kept, &mut b)?;
            cycles += 1;
            let svd = b.clone().svd()?;
            let residual = |j: usize| beta * crate::small::length(&[svd.left.at(m - 1, j)]);
            let goal = |j: usize| self.search.goal.of(svd.values[j]);
            let converged = (0..wanted).take_while(|j| residual(*j) <= goal(*j)).count();
            let worst = (0..wanted).map(|j| residual(j) / goal(j)).fold(0.0, f64::max);
            history.push(worst);
            if worst < 0.9 * best {
                (best, since) = (worst, cycles);
            }
            let (rows, cols) = self.search.operators[0].shape();
            let beyond = |beyond: Beyond| beyond.has(svd.values[0], residual(0), true);
            let enough = self.search.beyond.is_some_and(beyond);
            if converged == wanted || m == rows.min(cols) || enough {
                break (Reason::Converged, svd);
            }
            if self.products >= self.search.limit {
                break (Reason::Limit, svd);
            }
            if watch(self.products, converged, worst).is_break() {
                break (Reason::Cancelled, svd);
            }
            if cycles - since > PATIENCE {
                break (Reason::Stagnated, svd);
            }
            kept = (wanted + converged / 2 + (m - wanted) / 3).min(m.saturating_sub(3)).max(1);
            self.restart(&svd, kept)?;
            let values = &svd.values;
            let entry = |i: usize, j: usize| match i == j && i < kept {
                true => <T::Wide as Scalar>::from_real(values[i]),
                false => <T::Wide as Scalar>::from_real(0.0),
            };
            b = Small::of(m, m, entry);
        };
        self.found(reason, &svd, cycles, history)
    }

    /// The first triplets begin the next cycle, and the vector on the right that would have come next follows them.
    fn restart(&mut self, svd: &SmallSvd<T::Wide>, kept: usize) -> Result<()> {
        let m = self.columns;
        self.combine(svd, kept)?;
        let [from, to] = [1 - self.side, self.side].map(|side| *self.right[side]);
        self.search.dev.copy(from.column(m), to.column(kept))
    }

    /// The singular vectors of the operator that belong to the first triplets of the small matrix, in the other bases.
    fn combine(&mut self, svd: &SmallSvd<T::Wide>, count: usize) -> Result<()> {
        let (m, side) = (self.columns, self.side);
        for (of, vectors) in [(Side::Left, &svd.left), (Side::Right, &svd.right)] {
            let cells = self.cells.take(m * count);
            let numbers: Vec<T> = vectors.values()[..m * count].iter().map(|v| v.converted()).collect();
            self.search.dev.write_run(cells, &numbers)?;
            let [from, to] = [side, 1 - side].map(|side| *self.bases(of)[side]);
            let name = if of == Side::Left { "restart on the left" } else { "restart on the right" };
            self.run((name, [side, count, 0]), |k| k.basis_combine(from.take(m), cells, to.take(count)))?;
        }
        self.side = 1 - side;
        Ok(())
    }

    fn found(
        mut self,
        reason: Reason,
        svd: &SmallSvd<T::Wide>,
        cycles: u64,
        history: Vec<f64>,
    ) -> Result<Found<T>> {
        let count = self.search.count;
        self.combine(svd, count)?;
        let columns = |of: Side| -> Result<Vec<Vec<T>>> {
            let basis = *self.bases(of)[self.side];
            let mut vectors = vec![vec![T::zero(); basis.len]; count];
            for (j, vector) in vectors.iter_mut().enumerate() {
                self.search.dev.download(basis.column(j), vector)?;
            }
            Ok(vectors)
        };
        let [left, right] = [columns(Side::Left)?, columns(Side::Right)?];
        let (products, values) = (self.products, svd.values[..count].to_vec());
        Ok(Found { reason, values, left, right, products, restarts: cycles - 1, history })
    }
}
