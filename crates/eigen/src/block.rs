//! The search space of a block method on a device: its columns, their products, and operations on all of them.
use crate::small::Small;
use lacuna_engine::{
    Basis, Cells, Device, Expr, History, LinOp, Owned, Pass, Plan, Recorder, Result, Run, Scalar, Vector,
};
use std::collections::HashMap;

/// One of the bases of a [`Block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Of {
    /// The columns.
    Columns,
    /// `A` times the columns.
    Products,
    /// `B` times the columns; the columns themselves without a mass matrix.
    Masses,
}

/// A basis that is read, and its twin that is written.
struct Pair<T: Scalar>([Owned<Basis<T>>; 2]);

impl<T: Scalar> Pair<T> {
    fn new(dev: &Device, n: usize, columns: usize) -> Result<Self> {
        Ok(Pair([dev.basis(n, columns)?, dev.basis(n, columns)?]))
    }
}

/// What tells a program from the others: its name, the side that is read, and the numbers of columns.
type Key = (&'static str, Of, usize, [usize; 3]);

/// Columns `S`, with `A S` and `B S`, on a device. Programs are recorded once for each number of columns.
pub(crate) struct Block<'a, T: Scalar> {
    dev: &'a Device,
    a: &'a dyn LinOp<T>,
    b: Option<&'a dyn LinOp<T>>,
    m: Option<&'a dyn LinOp<T>>,
    columns: Pair<T>,
    products: Pair<T>,
    masses: Option<Pair<T>>,
    /// `A x − λ B x`, and the input and the image of the preconditioner.
    residuals: Owned<Basis<T>>,
    side: usize,
    coefficients: Owned<Cells<T>>,
    plans: HashMap<Key, Plan>,
    /// Products with `A`, applications of the preconditioner.
    pub(crate) count: [u64; 2],
}

/// Runs a program that has no iterations.
pub(crate) fn execute(plan: &mut Plan) -> Result<()> {
    plan.execute(Run { limit: 1, history: &mut History::off(), watch: None }).map(drop)
}

impl<'a, T: Scalar> Block<'a, T> {
    /// Room for `most` columns, of which `values` are eigenvectors.
    pub(crate) fn new(
        dev: &'a Device,
        a: &'a dyn LinOp<T>,
        [b, m]: [Option<&'a dyn LinOp<T>>; 2],
        values: usize,
        most: usize,
    ) -> Result<Self> {
        let n = a.shape().0;
        Ok(Block {
            dev,
            a,
            b,
            m,
            columns: Pair::new(dev, n, most)?,
            products: Pair::new(dev, n, most)?,
            masses: b.map(|_| Pair::new(dev, n, most)).transpose()?,
            residuals: dev.basis(n, values + 2)?,
            side: 0,
            coefficients: dev.cells(most * most + most)?,
            plans: HashMap::new(),
            count: [0; 2],
        })
    }

    fn pair(&self, of: Of) -> &Pair<T> {
        match of {
            Of::Columns => &self.columns,
            Of::Products => &self.products,
            Of::Masses => self.masses.as_ref().unwrap_or(&self.columns),
        }
    }
    /// The basis that is read.
    fn basis(&self, of: Of) -> Basis<T> {
        *self.pair(of).0[self.side]
    }
    /// The basis that is written.
    fn other(&self, of: Of) -> Basis<T> {
        *self.pair(of).0[1 - self.side]
    }
    /// The bases with memory of their own.
    fn bases(&self) -> impl Iterator<Item = Of> + use<'a, T> {
        let masses = self.b.map(|_| Of::Masses);
        [Of::Columns, Of::Products].into_iter().chain(masses)
    }

    /// Runs the program of a key, which is recorded the first time.
    fn run(&mut self, key: Key, record: impl FnOnce(&mut Recorder<'_, T>)) -> Result<()> {
        if !self.plans.contains_key(&key) {
            let mut k = Recorder::new(self.dev, key.0);
            record(&mut k);
            self.plans.insert(key, self.dev.plan(k.finish()?)?);
        }
        self.plans.get_mut(&key).map_or(Ok(()), execute)
    }

    /// Puts a vector in the place of a column.
    pub(crate) fn upload(&mut self, j: usize, numbers: &[T]) -> Result<()> {
        self.dev.upload(numbers, self.basis(Of::Columns).column(j))
    }
    /// A column.
    pub(crate) fn download(&self, j: usize) -> Result<Vec<T>> {
        let column = self.basis(Of::Columns).column(j);
        let mut numbers = vec![T::zero(); column.len];
        self.dev.download(column, &mut numbers)?;
        Ok(numbers)
    }

    /// `A S` for some columns.
    pub(crate) fn multiply(&mut self, first: usize, count: usize) -> Result<()> {
        self.count[0] += count as u64;
        self.product(Of::Products, self.a, first, count)
    }
    /// `B S` for some columns; nothing without a mass matrix.
    pub(crate) fn weigh(&mut self, first: usize, count: usize) -> Result<()> {
        self.b.map_or(Ok(()), |b| self.product(Of::Masses, b, first, count))
    }
    fn product(&mut self, to: Of, operator: &dyn LinOp<T>, first: usize, count: usize) -> Result<()> {
        let [x, y] = [Of::Columns, to].map(|of| self.basis(of).part(first, count));
        self.run(("product", to, self.side, [first, count, 0]), |k| k.spmm(operator, x, y))
    }

    /// `Sᴴ Y` for the first `rows` columns of `S`, and some columns of another basis.
    pub(crate) fn gram(&mut self, rows: usize, of: Of, first: usize, count: usize) -> Result<Small<T::Wide>> {
        let (s, y, cells) = (self.basis(Of::Columns).take(rows), self.basis(of), *self.coefficients);
        self.run(("gram", of, self.side, [rows, first, count]), |k| {
            for j in 0..count {
                k.basis_dot(s, y.column(first + j), cells.part(j * rows, rows));
            }
        })?;
        let read = self.dev.read(&(0..rows * count).map(|i| cells.at(i)).collect::<Vec<_>>())?;
        Ok(Small::from_columns(rows, read.into_iter().map(Scalar::wide).collect()))
    }

    fn write(&mut self, numbers: impl Iterator<Item = T>) -> Result<()> {
        let cells = *self.coefficients;
        numbers.enumerate().try_for_each(|(i, number)| self.dev.write(cells.at(i), number))
    }

    /// `S ← S C`, and the products likewise.
    pub(crate) fn combine(&mut self, c: &Small<T::Wide>) -> Result<()> {
        let (rows, count) = c.shape();
        self.write(c.values().iter().map(|v| v.converted()))?;
        let pairs: Vec<_> = self.bases().map(|of| (self.basis(of), self.other(of))).collect();
        let cells = *self.coefficients;
        self.run(("combine", Of::Columns, self.side, [rows, count, 0]), |k| {
            for (from, to) in pairs {
                (0..count).for_each(|j| combination(k, from, cells.part(j * rows, rows), to.column(j)));
            }
        })?;
        self.side = 1 - self.side;
        Ok(())
    }

    /// Replaces the last `count` columns, before their products with `A` are made, by combinations of all.
    pub(crate) fn replace(&mut self, c: &Small<T::Wide>, count: usize) -> Result<()> {
        let (rows, new) = c.shape();
        let first = rows - count;
        self.write(c.values().iter().map(|v| v.converted()))?;
        let bases = self.bases().filter(|of| *of != Of::Products);
        let pairs: Vec<_> = bases.map(|of| (self.basis(of), self.other(of))).collect();
        let cells = *self.coefficients;
        self.run(("replace", Of::Columns, self.side, [rows, count, new]), |k| {
            for (from, to) in &pairs {
                (0..new)
                    .for_each(|j| combination(k, *from, cells.part(j * rows, rows), to.column(first + j)));
            }
            for (from, to) in &pairs {
                for j in first..first + new {
                    k.multi_axpy_dot(Pass::new("back").set(from.column(j), Expr::from(to.column(j))));
                }
            }
        })
    }

    /// `A x − λ B x` of the first columns: their norms.
    pub(crate) fn residuals(&mut self, values: &[f64]) -> Result<Vec<f64>> {
        self.write(values.iter().map(|v| T::from_real(*v)))?;
        let (ax, bx) = (self.basis(Of::Products), self.basis(Of::Masses));
        let (r, cells) = (*self.residuals, *self.coefficients);
        let count = values.len();
        self.run(("residuals", Of::Products, self.side, [count, 0, 0]), |k| {
            for j in 0..count {
                let (value, square, r) = (cells.at(j), cells.at(count + j), r.column(j));
                let pass = Pass::new("residual").set(r, ax.column(j) - value * bx.column(j));
                k.multi_axpy_dot(pass.dot(square, r, r));
            }
        })?;
        let squares = self.dev.read(&(0..count).map(|j| cells.at(count + j)).collect::<Vec<_>>())?;
        Ok(squares.into_iter().map(|v| v.re().sqrt()).collect())
    }

    /// Puts the preconditioned residuals of some columns behind the first `rows` columns.
    pub(crate) fn precondition(&mut self, of: &[usize], rows: usize) -> Result<()> {
        let (r, s) = (*self.residuals, self.basis(Of::Columns));
        let Some(m) = self.m else {
            return of
                .iter()
                .enumerate()
                .try_for_each(|(i, j)| self.dev.copy(r.column(*j), s.column(rows + i)));
        };
        let [input, image] = [r.columns - 2, r.columns - 1].map(|j| r.column(j));
        for (i, j) in of.iter().enumerate() {
            self.dev.copy(r.column(*j), input)?;
            self.run(("precondition", Of::Columns, 0, [0; 3]), |k| {
                k.spmv_dot(m, input, image, Pass::nothing());
            })?;
            self.dev.copy(image, s.column(rows + i))?;
            self.count[1] += 1;
        }
        Ok(())
    }
}

/// `y ← V c`
pub(crate) fn combination<T: Scalar>(k: &mut Recorder<'_, T>, v: Basis<T>, c: Cells<T>, y: Vector<T>) {
    let count = c.count as usize;
    k.multi_axpy_dot(Pass::new("first").set(y, c.at(0) * v.column(0)));
    if count > 1 {
        k.basis_add(v.part(1, count - 1), c.part(1, count - 1), y, Pass::nothing());
    }
}
