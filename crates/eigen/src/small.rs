//! Small dense matrices on the host: products, orthonormal columns, and the Hermitian eigenproblem.
//!
//! Everything is scalar arithmetic in the order that is written here, so that the bits are the same on every machine.
use lacuna_engine::{Double, Error, Result, Scalar};

/// QL steps for one eigenvalue, of which two or three are usual.
const MOST_STEPS: usize = 60;

/// A dense matrix, column by column.
#[derive(Clone, Debug, PartialEq)]
pub struct Small<W> {
    rows: usize,
    cols: usize,
    values: Vec<W>,
}

impl<W: Double> Small<W> {
    /// Zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Small { rows, cols, values: vec![W::zero(); rows * cols] }
    }
    /// The identity of `n` rows.
    pub fn identity(n: usize) -> Self {
        Self::of(n, n, |i, j| if i == j { W::one() } else { W::zero() })
    }
    /// The matrix of these entries.
    pub fn of(rows: usize, cols: usize, entry: impl Fn(usize, usize) -> W) -> Self {
        let entries = (0..cols).flat_map(|j| (0..rows).map(move |i| (i, j)));
        Small { rows, cols, values: entries.map(|(i, j)| entry(i, j)).collect() }
    }
    /// From numbers column by column.
    pub(crate) fn from_columns(rows: usize, values: Vec<W>) -> Self {
        Small { rows, cols: values.len().checked_div(rows).unwrap_or(0), values }
    }
    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }
    /// An entry.
    ///
    /// # Panics
    /// If there is none at that place.
    pub fn at(&self, i: usize, j: usize) -> W {
        self.column(j)[i]
    }
    /// Sets an entry.
    ///
    /// # Panics
    /// As [`Small::at`].
    pub fn set(&mut self, i: usize, j: usize, value: W) {
        self.column_mut(j)[i] = value;
    }
    /// A column.
    ///
    /// # Panics
    /// If there is none.
    pub fn column(&self, j: usize) -> &[W] {
        &self.values[j * self.rows..(j + 1) * self.rows]
    }
    pub(crate) fn column_mut(&mut self, j: usize) -> &mut [W] {
        &mut self.values[j * self.rows..(j + 1) * self.rows]
    }
    /// All numbers, column by column.
    pub(crate) fn values(&self) -> &[W] {
        &self.values
    }
    /// The columns of another matrix after those of this one.
    pub(crate) fn beside(mut self, other: Self) -> Self {
        self.values.extend(other.values);
        self.cols += other.cols;
        self
    }
    /// Some columns.
    pub(crate) fn columns(&self, which: impl IntoIterator<Item = usize>) -> Self {
        let values: Vec<W> = which.into_iter().flat_map(|j| self.column(j).iter().copied()).collect();
        let cols = values.len().checked_div(self.rows).unwrap_or(0);
        Small { rows: self.rows, cols, values }
    }
    /// `A B`
    pub fn times(&self, other: &Self) -> Self {
        let mut product = Small::zeros(self.rows, other.cols);
        for j in 0..other.cols {
            for (k, b) in other.column(j).iter().enumerate() {
                let column = product.column_mut(j).iter_mut().zip(self.column(k));
                column.for_each(|(sum, a)| *sum += *a * *b);
            }
        }
        product
    }
    /// `Aᴴ B`
    pub fn adjoint_times(&self, other: &Self) -> Self {
        Small::of(self.cols, other.cols, |i, j| dot(self.column(i), other.column(j)))
    }
    /// `(A + Aᴴ) / 2`
    pub(crate) fn hermitian_part(&self) -> Self {
        let half = W::from_real(0.5);
        Small::of(self.rows, self.cols, |i, j| half * (self.at(i, j) + self.at(j, i).conj()))
    }

    /// Orthonormal columns that span what these columns add to orthonormal `others`, by two Gram–Schmidt sweeps; columns of which less
    /// than `least` of their length is left are dropped.
    pub(crate) fn orthonormal_beside(&self, others: &Self, least: f64) -> Self {
        let mut kept: Vec<W> = Vec::new();
        for j in 0..self.cols {
            let mut column = self.column(j).to_vec();
            let before = length(&column);
            for _ in 0..2 {
                for against in others.values.chunks(self.rows).chain(kept.chunks(self.rows)) {
                    let part = dot(against, &column);
                    column.iter_mut().zip(against).for_each(|(v, a)| *v -= *a * part);
                }
            }
            let left = length(&column);
            if left > least * before && left > 0.0 {
                kept.extend(column.iter().map(|v| v.quotient(W::from_real(left))));
            }
        }
        Small::from_columns(self.rows, kept)
    }

    /// The eigenvalues of a Hermitian matrix, from the smallest on, and orthonormal eigenvectors: Householder's reduction to
    /// tridiagonal form, and QL steps with implicit shifts. The entries above the diagonal are not read.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a matrix that is not finite.
    ///
    /// Reference: Golub and Van Loan 2013, Matrix Computations, Algorithms 8.3.1 and 8.3.2; Dubrulle, Martin and Wilkinson 1968,
    /// doi:10.1007/BF02165404.
    pub fn hermitian_eigen(mut self) -> Result<(Vec<f64>, Self)> {
        let n = self.rows;
        if !self.values.iter().all(|v| v.finite()) {
            return Err(not_finite());
        }
        if n == 0 || self.values.iter().all(|v| *v == W::zero()) {
            return Ok((vec![0.0; n], Small::identity(n)));
        }
        let exponent = self.scale_to_one();
        let (mut diagonal, mut below, mut vectors) = self.tridiagonal();
        if !ql(&mut diagonal, &mut below, &mut vectors) {
            return Err(not_finite());
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|i, j| diagonal[*i].total_cmp(&diagonal[*j]));
        let values = order.iter().map(|i| diagonal[*i].scale_by_power_of_two(exponent)).collect();
        Ok((values, vectors.columns(order)))
    }

    /// Divides by a power of two, so that squares neither overflow nor underflow; returns its exponent.
    pub(crate) fn scale_to_one(&mut self) -> i32 {
        let largest = self.values.iter().map(|v| v.re().abs().max(v.im().abs())).fold(0.0, f64::max);
        let exponent = if largest == 0.0 { 0 } else { exponent_of(largest) };
        self.values.iter_mut().for_each(|v| *v = v.scale_by_power_of_two(-exponent));
        exponent
    }

    /// A real tridiagonal matrix `T = Qᴴ A Q`: its diagonal, the entries beside it, and `Q`.
    fn tridiagonal(mut self) -> (Vec<f64>, Vec<f64>, Self) {
        let n = self.rows;
        let mut q = Small::identity(n);
        let mut below = vec![W::zero(); n.saturating_sub(1)];
        for (k, below) in below.iter_mut().enumerate().take(n.saturating_sub(2)) {
            let mut v = self.column(k)[k + 1..].to_vec();
            let first = v[0];
            if v[1..].iter().all(|v| *v == W::zero()) {
                *below = first;
                continue;
            }
            let (norm, size) = (length(&v), length(&v[..1]));
            let phase = if size == 0.0 { W::one() } else { first.quotient(W::from_real(size)) };
            let image = -(phase * W::from_real(norm));
            v[0] = first - image;
            let twice = W::from_real(1.0 / (norm * (norm + size)));
            self.reflect(k + 1, &v, twice);
            // Q ← Q (I − 2 v vᴴ / vᴴv)
            let mut image_of_v = vec![W::zero(); n];
            for (j, v) in v.iter().enumerate() {
                image_of_v.iter_mut().zip(q.column(k + 1 + j)).for_each(|(sum, q)| *sum += *q * *v);
            }
            for (j, v) in v.iter().enumerate() {
                let by = twice * v.conj();
                q.column_mut(k + 1 + j).iter_mut().zip(&image_of_v).for_each(|(q, w)| *q -= *w * by);
            }
            *below = image;
        }
        if n > 1 {
            below[n - 2] = self.at(n - 1, n - 2);
        }
        // Phases that make the entries beside the diagonal real.
        let mut phase = W::one();
        let beside = below.iter().enumerate().map(|(k, entry)| {
            let size = length(&[*entry]);
            if size > 0.0 {
                phase *= entry.quotient(W::from_real(size));
            }
            q.column_mut(k + 1).iter_mut().for_each(|v| *v *= phase);
            size
        });
        let beside = beside.collect();
        ((0..n).map(|i| self.at(i, i).re()).collect(), beside, q)
    }

    /// `A ← H A H` for the rows and columns from `first` on, with the reflection `H = I − twice · v vᴴ`; below the diagonal alone.
    fn reflect(&mut self, first: usize, v: &[W], twice: W) {
        let count = v.len();
        let at = |a: &Self, i: usize, j: usize| {
            if i >= j { a.at(first + i, first + j) } else { a.at(first + j, first + i).conj() }
        };
        let mut w: Vec<W> = (0..count)
            .map(|i| {
                twice * (0..count).map(|j| at(self, i, j) * v[j]).fold(W::zero(), |sum, term| sum + term)
            })
            .collect();
        let half = twice * W::from_real(0.5) * dot(v, &w);
        w.iter_mut().zip(v).for_each(|(w, v)| *w -= half * *v);
        for j in 0..count {
            let (wj, vj) = (w[j].conj(), v[j].conj());
            let column = self.column_mut(first + j)[first..].iter_mut().enumerate().skip(j);
            column.for_each(|(i, a)| *a = *a - v[i] * wj - w[i] * vj);
        }
    }

    /// `L` with `A = L Lᴴ`; `None` unless the matrix is positive definite. The entries above the diagonal are not read.
    pub(crate) fn cholesky(mut self) -> Option<Self> {
        for j in 0..self.cols {
            for k in 0..j {
                let by = self.at(j, k).conj();
                for i in j..self.rows {
                    let less = self.at(i, k) * by;
                    let entry = self.at(i, j) - less;
                    self.set(i, j, entry);
                }
            }
            let pivot = self.at(j, j).re();
            if !(pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            let root = W::from_real(pivot.sqrt());
            for i in 0..self.rows {
                let entry = if i < j { W::zero() } else { self.at(i, j).quotient(root) };
                self.set(i, j, entry);
            }
        }
        Some(self)
    }
    /// `B ← L⁻¹ B` for a lower triangle.
    pub(crate) fn solve_lower(&self, b: &mut Self) {
        for j in 0..b.cols {
            let column = b.column_mut(j);
            for k in 0..self.rows {
                column[k] = column[k].quotient(self.at(k, k));
                let by = column[k];
                let below = column[k + 1..].iter_mut().zip(&self.column(k)[k + 1..]);
                below.for_each(|(v, l)| *v -= *l * by);
            }
        }
    }
    /// `B ← L⁻ᴴ B` for a lower triangle.
    pub(crate) fn solve_lower_adjoint(&self, b: &mut Self) {
        for j in 0..b.cols {
            let column = b.column_mut(j);
            for k in (0..self.rows).rev() {
                let known = dot(&self.column(k)[k + 1..], &column[k + 1..]);
                column[k] = (column[k] - known).quotient(self.at(k, k).conj());
            }
        }
    }
    /// `Aᴴ`
    pub(crate) fn adjoint(&self) -> Self {
        Small::of(self.cols, self.rows, |i, j| self.at(j, i).conj())
    }
}

fn not_finite() -> Error {
    Error::Unsupported {
        operation: "eigenvalues of a small matrix".into(),
        message: "it has entries that are not finite".into(),
    }
}

/// The exponent of the power of two at or below a positive number.
fn exponent_of(v: f64) -> i32 {
    let exponent = (v.to_bits() >> 52) as i32 - 1023;
    exponent.clamp(-1000, 1000)
}

/// `Σ conj(a_i) b_i`
pub(crate) fn dot<W: Scalar>(a: &[W], b: &[W]) -> W {
    a.iter().zip(b).fold(W::zero(), |sum, (a, b)| sum + a.conj() * *b)
}

/// The norm of numbers whose squares neither overflow nor underflow.
pub(crate) fn length<W: Scalar>(v: &[W]) -> f64 {
    v.iter().map(|v| v.re() * v.re() + v.im() * v.im()).sum::<f64>().sqrt()
}

/// Makes a real tridiagonal matrix diagonal; rotates the columns of `vectors` along. False if it does not come to an end.
fn ql<W: Double>(diagonal: &mut [f64], beside: &mut Vec<f64>, vectors: &mut Small<W>) -> bool {
    let n = diagonal.len();
    beside.push(0.0);
    for first in 0..n {
        let mut steps = 0;
        loop {
            let small =
                |i: &usize| beside[*i].abs() <= f64::EPSILON * (diagonal[*i].abs() + diagonal[*i + 1].abs());
            let last = (first..n - 1).find(small).unwrap_or(n - 1);
            if last == first {
                break;
            }
            if steps == MOST_STEPS {
                return false;
            }
            steps += 1;
            ql_step([first, last], diagonal, beside, vectors);
        }
    }
    true
}

/// A QL step on the rows from `first` to `last`, with Wilkinson's shift, from the bottom up.
fn ql_step<W: Double>(
    [first, last]: [usize; 2],
    diagonal: &mut [f64],
    beside: &mut [f64],
    vectors: &mut Small<W>,
) {
    let slope = (diagonal[first + 1] - diagonal[first]) / (2.0 * beside[first]);
    let root = (slope * slope + 1.0).sqrt();
    let mut g = diagonal[last] - diagonal[first] + beside[first] / (slope + root.copysign(slope));
    let (mut s, mut c, mut shift) = (1.0, 1.0, 0.0);
    for i in (first..last).rev() {
        let (f, b) = (s * beside[i], c * beside[i]);
        let r = (f * f + g * g).sqrt();
        beside[i + 1] = r;
        if r == 0.0 {
            // The matrix splits here.
            diagonal[i + 1] -= shift;
            beside[last] = 0.0;
            return;
        }
        (s, c) = (f / r, g / r);
        g = diagonal[i + 1] - shift;
        let r = (diagonal[i] - g) * s + 2.0 * c * b;
        shift = s * r;
        diagonal[i + 1] = g + shift;
        g = c * r - b;
        rotate(vectors, i, W::from_real(c), W::from_real(s));
    }
    diagonal[first] -= shift;
    beside[first] = g;
    beside[last] = 0.0;
}

/// Rotates columns `i` and `i + 1`.
fn rotate<W: Double>(vectors: &mut Small<W>, i: usize, c: W, s: W) {
    let rows = vectors.rows;
    let (left, right) = vectors.values[i * rows..(i + 2) * rows].split_at_mut(rows);
    for (a, b) in left.iter_mut().zip(right) {
        let before = *b;
        *b = s * *a + c * before;
        *a = c * *a - s * before;
    }
}
