//! The residual of a solution in twice the working precision, and a bound on the norm of a matrix.
use lacuna_engine::{Scalar, compiled_here};
use lacuna_formats::{Csr, parallel};

/// Rows whose squared residuals are summed by one thread, so that the sum does not depend on the number of
/// threads.
const ROWS: usize = 4096;
/// Blocks of rows whose column sums are computed in parallel.
const PARTS: usize = 8;

/// How far `A x` is from `b`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual {
    /// `‖b − A x‖`
    pub norm: f64,
    /// `‖b − A x‖_∞`, the largest `|b − A x|ᵢ`.
    pub largest: f64,
    /// The largest `|b − A x|ᵢ / (|A| |x| + |b|)ᵢ`: the smallest relative change of single entries of `A` and `b` that makes
    /// `x` exact (Oettli and Prager 1964, doi:10.1007/BF01386090).
    pub of_rows: f64,
}

/// `‖b − A x‖`: see [`residual`].
pub fn residual_norm<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T]) -> f64 {
    residual(a, b, x).norm
}

/// The residual, with each row summed in twice the precision of `f64` (Ogita, Rump and Oishi 2005, Algorithm
/// 5.3, doi:10.1137/030601818), and exactly where so much cancels that this is not enough (Shewchuk 1997,
/// doi:10.1007/PL00009321). The bits are the same on any number of threads.
///
/// The numbers should be near 1: products must neither overflow nor underflow. If `b` has another length than
/// `A` has rows, only the rows that both have are summed.
pub fn residual<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T]) -> Residual {
    compiled_here!(T, |a: &Csr<T>, b: &[T], x: &[T]| -> Residual {
        let of_rows = |rows: std::ops::Range<usize>| -> (f64, [f64; 2]) {
            let mut largest = [0.0f64; 2];
            let squares = rows.map(|i| {
                let ([re, im], size) = row_residual(a, b, x, i);
                if size > 0.0 {
                    largest[0] = largest[0].max((re.abs() + im.abs()) / size);
                }
                let square = re.powi(2) + im.powi(2);
                largest[1] = larger(largest[1], square);
                square
            });
            (squares.sum(), largest)
        };
        let parts = parallel::map(parallel::ranges(a.rows().min(b.len()), ROWS), of_rows);
        let of_rows = parts.iter().fold(0.0, |most: f64, (_, [of_rows, _])| most.max(*of_rows));
        let largest = parts.iter().fold(0.0, |most: f64, (_, [_, square])| larger(most, *square)).sqrt();
        Residual { norm: parts.into_iter().map(|(squares, _)| squares).sum::<f64>().sqrt(), largest, of_rows }
    })(a, b, x)
}

/// The larger of two numbers, NaN if one is.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || a >= b { a } else { b }
}

/// `b − A x`, rounded from what [`residual`] sums.
pub(crate) fn residuals<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T]) -> Vec<T> {
    compiled_here!(T, |a: &Csr<T>, b: &[T], x: &[T]| -> Vec<T> {
        parallel::collect(a.rows().min(b.len()), ROWS, |i| {
            let [re, im] = row_residual(a, b, x, i).0;
            T::from_parts(re, im)
        })
    })(a, b, x)
}

/// `√(‖A‖₁ ‖A‖_∞)`, an upper bound on `‖A‖₂` and on the 2-norm of the matrix of absolute values.
pub fn norm_bound<T: Scalar>(a: &Csr<T>) -> f64 {
    compiled_here!(T, |a: &Csr<T>| -> f64 {
        let rows = a.rows().div_ceil(PARTS).max(1);
        let parts = parallel::map_large(a.nnz(), parallel::ranges(a.rows(), rows), |rows| {
            let entries = &a.col_idx()[a.row_ptr()[rows.start] as usize..a.row_ptr()[rows.end] as usize];
            let (first, last) = entries.iter().fold((u32::MAX, 0), |(l, h), &j| (l.min(j), h.max(j + 1)));
            let first = first.min(last) as usize;
            let (mut columns, mut largest) = (vec![0.0; last as usize - first], 0.0f64);
            for i in rows {
                let mut row = 0.0;
                for (j, v) in a.row_entries(i) {
                    let modulus = v.modulus();
                    row += modulus;
                    columns[j - first] += modulus;
                }
                largest = largest.max(row);
            }
            (largest, first, columns)
        });
        let mut columns = vec![0.0; a.cols()];
        let mut largest = 0.0f64;
        for (row, first, sums) in parts {
            largest = largest.max(row);
            columns[first..].iter_mut().zip(sums).for_each(|(column, sum)| *column += sum);
        }
        largest.sqrt() * columns.into_iter().fold(0.0, f64::max).sqrt()
    })(a)
}

/// A sum from which products are subtracted.
trait Sum {
    fn subtract_product(&mut self, a: f64, b: f64);
}

/// Row `i` of `b − A x`, the real and the imaginary part, and the sum of the moduli of its terms.
#[inline]
fn row_residual<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T], i: usize) -> ([f64; 2], f64) {
    let [re, im] = subtracted(a, x, i, [Twice::from(b[i].re()), Twice::from(b[i].im())]);
    let size = re.size + im.size;
    if !re.cancels() && !im.cancels() {
        return ([re.value(), im.value()], size);
    }
    let start = [Exact::from(b[i].re()), Exact::from(b[i].im())];
    (subtracted(a, x, i, start).map(|part| part.value()), size)
}

/// Row `i` of `b − A x`, the real and the imaginary part, from those of `b`.
#[inline]
fn subtracted<T: Scalar, S: Sum>(a: &Csr<T>, x: &[T], i: usize, mut sum: [S; 2]) -> [S; 2] {
    for (j, v) in a.row_entries(i) {
        let (v, x) = (v, x[j]);
        sum[0].subtract_product(v.re(), x.re());
        if T::KIND.is_complex() {
            sum[0].subtract_product(-v.im(), x.im());
            sum[1].subtract_product(v.re(), x.im());
            sum[1].subtract_product(v.im(), x.re());
        }
    }
    sum
}

/// An unevaluated sum of two numbers (double-double).
#[derive(Clone, Copy)]
struct Twice {
    high: f64,
    low: f64,
    /// The sum of the absolute values.
    size: f64,
}

/// Where less than this fraction of the absolute values is left, its digits may be those of rounding errors: double-double
/// numbers have 106 bits.
const LEFT: f64 = 1.0 / (1u128 << 90) as f64;

impl Twice {
    fn value(self) -> f64 {
        self.high + self.low
    }
    fn cancels(self) -> bool {
        self.value().abs() < LEFT * self.size
    }
}

impl From<f64> for Twice {
    fn from(high: f64) -> Self {
        Twice { high, low: 0.0, size: high.abs() }
    }
}

impl Sum for Twice {
    #[inline]
    fn subtract_product(&mut self, a: f64, b: f64) {
        let (product, error) = product(a, b);
        let (sum, lost) = sum(self.high, -product);
        self.low += lost - error;
        self.high = sum;
        self.size += product.abs();
    }
}

/// An exact sum: numbers that do not overlap, from the smallest to the largest.
struct Exact(Vec<f64>);

impl Exact {
    fn value(&self) -> f64 {
        self.0.iter().sum()
    }
    fn add(&mut self, mut number: f64) {
        self.0.retain_mut(|part| {
            let (high, low) = sum(number, *part);
            (number, *part) = (high, low);
            low != 0.0
        });
        self.0.push(number);
    }
}

impl From<f64> for Exact {
    fn from(number: f64) -> Self {
        Exact(vec![number])
    }
}

impl Sum for Exact {
    fn subtract_product(&mut self, a: f64, b: f64) {
        let (product, error) = product(a, b);
        self.add(-error);
        self.add(-product);
    }
}

/// A sum and its rounding error (Knuth).
#[inline]
fn sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let other = sum - a;
    (sum, (a - (sum - other)) + (b - other))
}

/// A product and its rounding error (Dekker 1971).
#[inline]
fn product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let ((ah, al), (bh, bl)) = (halves(a), halves(b));
    let error = ((ah * bh - product) + ah * bl + al * bh) + al * bl;
    // The halves of a number near the end of the range overflow.
    (product, if error.is_nan() { a.mul_add(b, -product) } else { error })
}

/// Splits `a` into two numbers of 26 bits whose sum is `a` (Veltkamp).
#[inline]
fn halves(a: f64) -> (f64, f64) {
    let scaled = 134_217_729.0 * a;
    let high = scaled - (scaled - a);
    (high, a - high)
}

#[cfg(test)]
mod tests {
    use super::{norm_bound, residual, residual_norm, residuals};
    use lacuna_engine::{Complex64, Scalar};
    use lacuna_formats::{Csr, Triplets};

    fn matrix<T: Scalar>(n: usize, entries: &[(usize, usize, T)]) -> Csr<T> {
        let mut triplets = Triplets::new(n, n);
        entries.iter().for_each(|&(i, j, v)| triplets.push(i, j, v));
        triplets.to_csr().unwrap()
    }

    #[test]
    fn what_cancels_leaves_its_rounding_errors() {
        // 1e16 · (1 + 2⁻⁵²) − 1e16 − 2.220446049250313 is the rounding error of the product alone.
        let x = [1.0 + f64::EPSILON, 1.0];
        let a = matrix(2, &[(0, 0, 1e16), (0, 1, -1e16)]);
        let exact = 1e16 * f64::EPSILON;
        let residual = residual_norm(&a, &[exact, 0.0], &x);
        assert!(residual <= 1e-15 * exact, "{residual:e}");
        assert_eq!(residual_norm(&a, &[exact, 3.0], &x), 3.0);
        assert_eq!(residuals(&a, &[exact, 3.0], &x)[1], 3.0);
        assert_eq!(residuals(&a, &[exact, 0.0], &x)[0].abs(), residual);
        let (small, large) = (2f64.powi(-1022), 1.5 * 2f64.powi(1022));
        assert_eq!(residual_norm(&matrix(1, &[(0, 0, small)]), &[1.75], &[large]), 0.25);
    }

    #[test]
    fn what_is_left_of_very_large_terms_is_exact() {
        let (large, odd) = (1e62, 0.1 + 1e60);
        let a = matrix(3, &[(0, 0, large), (0, 1, -large), (1, 0, odd), (1, 1, 3.0), (1, 2, -odd)]);
        assert_eq!(
            residual_norm(&a, &[0.5, 0.0, 0.0], &[0.3, 0.3, 0.3]),
            (0.25f64 + (3.0f64 * 0.3).powi(2)).sqrt()
        );
    }

    #[test]
    fn complex_products_have_four_parts() {
        let (v, x) = (Complex64::new(1.5, -2.0), Complex64::new(-0.25, 3.0));
        let a = matrix(1, &[(0, 0, v)]);
        assert_eq!(residual_norm(&a, &[v * x], &[x]), 0.0);
        assert_eq!(residual_norm(&a, &[v * x + Complex64::new(3.0, 4.0)], &[x]), 5.0);
    }

    #[test]
    fn the_largest_element_is_a_modulus() {
        let (v, x) = (Complex64::new(1.5, -2.0), Complex64::new(-0.25, 3.0));
        let a = matrix(2, &[(0, 0, v), (1, 1, v)]);
        let b = [v * x + Complex64::new(3.0, 4.0), v * x - 4.5];
        assert_eq!(residual(&a, &b, &[x, x]).largest, 5.0);
        assert!(residual(&a, &b, &[Complex64::new(f64::NAN, 0.0), x]).largest.is_nan());
    }

    #[test]
    fn a_row_is_compared_with_its_own_terms() {
        let a = matrix(3, &[(0, 0, 1e17), (1, 1, 2.0), (2, 2, 1.0)]);
        let found = residual(&a, &[1.0, 1.0, 0.0], &[1e-17, 0.25, 0.0]);
        assert_eq!(found.of_rows, 0.5 / 1.5);
        let units = Complex64::new(0.0, 1.0);
        let a = matrix(1, &[(0, 0, units)]);
        assert_eq!(residual(&a, &[units], &[Complex64::new(0.5, 0.0)]).of_rows, 0.5 / 1.5);
        assert_eq!(residual(&a, &[Complex64::new(0.0, 0.0)], &[Complex64::new(0.0, 0.0)]).of_rows, 0.0);
    }

    #[test]
    fn the_bound_is_that_of_rows_and_columns() {
        let a = matrix(20, &(0..20).map(|i| (i, 19, -2.0)).chain([(3, 0, 6.0)]).collect::<Vec<_>>());
        assert!((norm_bound(&a) - (8.0f64 * 40.0).sqrt()).abs() < 1e-13);
        assert_eq!(norm_bound(&matrix::<f64>(0, &[])), 0.0);
        assert_eq!(norm_bound(&matrix::<f64>(3, &[])), 0.0);
    }
}
