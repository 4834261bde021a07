//! The search space of a block method on a device: its columns, their products, and operations on all of them.
use crate::programs::Programs;
use crate::small::Small;
use lacuna_engine::{Basis, Cells, Device, LinOp, Owned, Pass, Recorder, Result, Scalar};

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

/// What tells a program from others of its name: the side that is read, and the numbers of columns.
type Key = (Of, usize, [usize; 3]);

/// Columns `S`, with `A S` and `B S`, on a device. Programs are recorded once for each number of columns.
pub(crate) struct Block<'a, T: Scalar> {
    dev: &'a Device,
    a: &'a dyn LinOp<T>,
    b: Option<&'a dyn LinOp<T>>,
    m: Option<&'a dyn LinOp<T>>,
    columns: Pair<T>,
    products: Pair<T>,
    masses: Option<Pair<T>>,
    /// `A x − λ B x`
    residuals: Owned<Basis<T>>,
    side: usize,
    /// The side of the columns that are being made orthonormal.
    new_side: usize,
    coefficients: Owned<Cells<T>>,
    programs: Programs<Key>,
    /// Products with `A`, applications of the preconditioner.
    pub(crate) count: [u64; 2],
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
            residuals: dev.basis(n, values)?,
            side: 0,
            new_side: 0,
            coefficients: dev.cells(most * most + most)?,
            programs: Programs::new(),
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
    /// The basis of the columns that are being made orthonormal.
    fn new_basis(&self, of: Of) -> Basis<T> {
        *self.pair(of).0[self.new_side]
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

    /// Runs the program of a name and a key, which is recorded the first time.
    fn run(&mut self, key: (&'static str, Key), record: impl FnOnce(&mut Recorder<'_, T>)) -> Result<()> {
        self.programs.run(self.dev, key, record)
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
        self.run(("product", (to, self.side, [first, count, 0])), |k| k.spmm(operator, x, y))
    }

    /// `Sᴴ A S` for the first `rows` columns on the left and some columns on the right.
    pub(crate) fn projected(&mut self, rows: usize, first: usize, count: usize) -> Result<Small<T::Wide>> {
        let (s, y) = (self.basis(Of::Columns).take(rows), self.basis(Of::Products).part(first, count));
        let cells = self.coefficients.take(rows * count);
        self.run(("projected", (Of::Products, self.side, [rows, first, count])), |k| {
            k.basis_gram(s, y, cells)
        })?;
        self.small(rows, count, cells)
    }

    /// `Sᴴ B W` and `Wᴴ B W` for the columns `S` before `first` and the `count` columns `W` from there on.
    pub(crate) fn gram(&mut self, first: usize, count: usize) -> Result<[Small<T::Wide>; 2]> {
        let [s, w] = [self.basis(Of::Columns).take(first), self.new_basis(Of::Columns).part(first, count)];
        let bw = self.new_basis(Of::Masses).part(first, count);
        let along = self.coefficients.take(first * count);
        let own = self.coefficients.part(first * count, count * count);
        self.run(("gram", (Of::Masses, 2 * self.side + self.new_side, [first, count, 0])), |k| {
            if first > 0 {
                k.basis_gram(s, bw, along);
            }
            k.basis_gram(w, bw, own);
        })?;
        Ok([self.small(first, count, along)?, self.small(count, count, own)?])
    }

    /// The matrix that a run of cells holds.
    fn small(&self, rows: usize, cols: usize, cells: Cells<T>) -> Result<Small<T::Wide>> {
        let read = if rows > 0 { self.dev.read_run(cells)? } else { Vec::new() };
        Ok(Small::of(rows, cols, |i, j| read[j * rows + i].wide()))
    }

    /// Writes coefficients to the cells from `first` on.
    fn write(&mut self, first: usize, c: &Small<T::Wide>) -> Result<Cells<T>> {
        let numbers: Vec<T> = c.values().iter().map(|v| v.converted()).collect();
        let cells = self.coefficients.part(first, numbers.len());
        self.dev.write_run(cells, &numbers)?;
        Ok(cells)
    }

    /// `S ← S C`, and the products likewise.
    pub(crate) fn combine(&mut self, c: &Small<T::Wide>) -> Result<()> {
        let (rows, count) = c.shape();
        let cells = self.write(0, c)?;
        let pairs: Vec<_> = self.bases().map(|of| (self.basis(of), self.other(of))).collect();
        self.run(("combine", (Of::Columns, self.side, [rows, count, 0])), |k| {
            for (from, to) in pairs {
                k.basis_combine(from.take(rows), cells, to.take(count));
            }
        })?;
        self.side = 1 - self.side;
        self.new_side = self.side;
        Ok(())
    }

    /// `W ← S C + W D` for the columns `W` from `first` on, before their products with `A` are made. They are in the other basis
    /// then, until [`Block::settle`].
    pub(crate) fn replace(&mut self, first: usize, [c, d]: [&Small<T::Wide>; 2]) -> Result<()> {
        let (count, new) = d.shape();
        let (outer, inner) = (self.write(0, c)?, self.write(first * new, d)?);
        let bases = self.bases().filter(|of| *of != Of::Products);
        let sides = [self.side, self.new_side, 1 - self.new_side];
        let bases: Vec<_> = bases.map(|of| sides.map(|side| *self.pair(of).0[side])).collect();
        self.run(("replace", (Of::Columns, 2 * self.side + self.new_side, [first, count, new])), |k| {
            for [s, w, to] in bases {
                let (w, to) = (w.part(first, count), to.part(first, new));
                if first == 0 {
                    k.basis_combine(w, inner, to);
                } else {
                    k.basis_combine(s.take(first), outer, to);
                    k.basis_combine_add(w, inner, to);
                }
            }
        })?;
        self.new_side = 1 - self.new_side;
        Ok(())
    }

    /// Brings the columns from `first` on beside the others.
    pub(crate) fn settle(&mut self, first: usize, count: usize) -> Result<()> {
        if self.new_side != self.side {
            for of in self.bases().filter(|of| *of != Of::Products) {
                let (from, to) = (self.new_basis(of), self.basis(of));
                (first..first + count).try_for_each(|j| self.dev.copy(from.column(j), to.column(j)))?;
            }
            self.new_side = self.side;
        }
        Ok(())
    }

    /// `A x − λ B x` of the first columns: their norms.
    pub(crate) fn residuals(&mut self, values: &[f64]) -> Result<Vec<f64>> {
        let count = values.len();
        let numbers: Vec<T> = values.iter().map(|v| T::from_real(*v)).collect();
        let (cells, squares) = (self.coefficients.take(count), self.coefficients.part(count, count));
        self.dev.write_run(cells, &numbers)?;
        let (ax, bx, r) = (self.basis(Of::Products), self.basis(Of::Masses), *self.residuals);
        self.run(("residuals", (Of::Products, self.side, [count, 0, 0])), |k| {
            for j in 0..count {
                let (value, square, r) = (cells.at(j), squares.at(j), r.column(j));
                let pass = Pass::new("residual").set(r, ax.column(j) - value * bx.column(j));
                k.multi_axpy_dot(pass.dot(square, r, r));
            }
        })?;
        Ok(self.dev.read_run(squares)?.into_iter().map(|v| v.re().sqrt()).collect())
    }

    /// Puts the preconditioned residuals of some columns, in increasing order, behind the first `rows` columns.
    pub(crate) fn precondition(&mut self, of: &[usize], rows: usize) -> Result<()> {
        let (r, w) = (*self.residuals, self.basis(Of::Columns).part(rows, of.len()));
        let Some(m) = self.m else {
            let mut pairs = of.iter().enumerate();
            return pairs.try_for_each(|(i, j)| self.dev.copy(r.column(*j), w.column(i)));
        };
        // The columns that it takes lie side by side.
        let first = of.first().copied().unwrap_or(0);
        for (i, j) in of.iter().enumerate().filter(|(i, j)| first + i != **j) {
            self.dev.copy(r.column(*j), r.column(first + i))?;
        }
        let r = r.part(first, of.len());
        self.run(("precondition", (Of::Columns, self.side, [rows, first, of.len()])), |k| k.spmm(m, r, w))?;
        self.count[1] += of.len() as u64;
        Ok(())
    }
}
