//! The dense inverse of the coarsest matrix, or its pseudo-inverse if it is singular.
use lacuna_engine::{Double, Error, Result};
use lacuna_formats::algebra::build_rows;
use lacuna_formats::{Csr, parallel};

const OPERATION: &str = "inverse of the coarsest matrix";
/// From this many rows on, the work is shared among threads.
const SHARED: usize = 192;
/// Rows per task.
const RUN: usize = 32;
/// Rows that are eliminated, or multiplied, together.
const PANEL: usize = 8;
/// Columns of an inverse that are computed together.
const STRIP: usize = 16;

/// The inverse of a matrix made of values of precision `epsilon`, with all its entries stored, and the dimension of the null space.
///
/// # Errors
/// [`Error::Entry`] if an entry of the inverse is not finite.
pub(in crate::precond) fn inverse<W: Double>(
    preconditioner: &str,
    (a, epsilon): (&Csr<W>, f64),
    hermitian: bool,
) -> Result<(Csr<W>, usize)> {
    let n = a.rows();
    if n == 0 {
        return Ok((a.clone(), 0));
    }
    let mut m = vec![W::zero(); n * n];
    a.entries().for_each(|(i, j, v)| m[i * n + j] = v);
    // Scales rows and columns by powers of two to a diagonal near 1, so that small pivots mean a singular
    // matrix.
    let scale: Vec<i32> = (0..n)
        .map(|i| {
            let largest = m[i * n..(i + 1) * n].iter().map(|v| v.modulus()).fold(0.0, f64::max);
            let d = m[i * n + i].modulus();
            let by = if d > 1e-8 * largest { d } else { largest };
            if by > 0.0 { (-0.5 * libm::log2(by)).round() as i32 } else { 0 }
        })
        .collect();
    let scaled = |m: &mut [W]| {
        m.iter_mut().enumerate().for_each(|(k, v)| *v = v.scale_by_power_of_two(scale[k / n] + scale[k % n]));
    };
    scaled(&mut m);
    // The values that formed the matrix have rounding errors of the type that they were given in.
    let tolerance = 32.0 * (n as f64).sqrt() * epsilon;
    let mut null = match hermitian.then(|| cholesky(&m, n, tolerance)).flatten() {
        Some(inverse) => {
            m = inverse;
            [Vec::new(), Vec::new()]
        }
        None => invert(&mut m, n, tolerance),
    };
    scaled(&mut m);
    let nullity = null[0].len();
    null.iter_mut().flatten().for_each(|v| {
        v.iter_mut().zip(&scale).for_each(|(v, scale)| *v = v.scale_by_power_of_two(*scale));
    });
    project(&mut m, n, null);
    if hermitian {
        for i in 0..n {
            for j in 0..=i {
                let mean = W::from_real(0.5) * (m[i * n + j] + m[j * n + i].conj());
                (m[i * n + j], m[j * n + i]) = (mean, mean.conj());
            }
        }
    }
    let columns: Vec<u32> = (0..n as u32).collect();
    let all = build_rows(OPERATION, n, n, std::iter::once(0..n).collect(), |rows, out| {
        rows.for_each(|i| out.row(&columns, &m[i * n..(i + 1) * n]));
    });
    all.map(|inverse| (inverse, nullity)).map_err(|error| match error {
        Error::Entry { row, column, message, .. } => {
            let message = format!("{message}: the matrix is too badly scaled");
            Error::Entry { operation: format!("preconditioner `{preconditioner}`"), row, column, message }
        }
        other => other,
    })
}

/// The inverse of a Hermitian matrix by the Cholesky factorisation `A = Uᴴ U`, as `U⁻¹ U⁻ᴴ`. `None` if a
/// pivot is not positive, or is below the tolerance relative to the largest diagonal entry. All loops add
/// multiples of rows.
fn cholesky<W: Double>(a: &[W], n: usize, tolerance: f64) -> Option<Vec<W>> {
    let least = tolerance * (0..n).map(|i| a[i * n + i].re()).fold(0.0, f64::max);
    let u = upper_factor(a.to_vec(), n, least)?;
    let v = inverse_of_upper(&u, n);
    let turned: Vec<W> = (0..n * n).map(|k| v[k % n * n + k / n].conj()).collect();
    // Rows of `V Vᴴ` up to the diagonal; the rest follows by symmetry.
    let mut inverse = u;
    parallel::for_each(inverse.chunks_mut(PANEL * n).enumerate(), |(panel, rows)| {
        rows.fill(W::zero());
        let first = panel * PANEL;
        for k in first..n {
            for (i, row) in (first..=k).zip(rows.chunks_mut(n)) {
                add(&mut row[..=i], v[i * n + k], &turned[k * n..]);
            }
        }
    });
    for i in 0..n {
        (0..i).for_each(|j| inverse[j * n + i] = inverse[i * n + j].conj());
    }
    Some(inverse)
}

/// Adds a multiple of a row to a row that may be shorter.
#[inline(always)]
fn add<W: Double>(to: &mut [W], by: W, row: &[W]) {
    to.iter_mut().zip(row).for_each(|(v, u)| *v += by * *u);
}

/// `U` of the Cholesky factorisation, above the diagonal. `None` if a pivot is not above `least`.
fn upper_factor<W: Double>(mut u: Vec<W>, n: usize, least: f64) -> Option<Vec<W>> {
    let eliminate = |row: &mut [W], i: usize, pivot: &[W]| add(&mut row[i..], -pivot[i].conj(), &pivot[i..]);
    for first in (0..n).step_by(PANEL) {
        let end = (first + PANEL).min(n);
        for k in first..end {
            let (above, below) = u.split_at_mut((k + 1) * n);
            let own = &mut above[k * n..];
            let pivot = own[k].re();
            if pivot.is_nan() || pivot <= least {
                return None;
            }
            let by = W::from_real(pivot.sqrt().recip());
            own[k..].iter_mut().for_each(|v| *v *= by);
            (k + 1..end).zip(below.chunks_mut(n)).for_each(|(i, row)| eliminate(row, i, own));
        }
        let (above, below) = u.split_at_mut(end * n);
        let pivots = &above[first * n..];
        let run = if n - end >= SHARED { RUN } else { n };
        parallel::for_each(below.chunks_mut(run * n).enumerate(), |(part, rows)| {
            for (i, row) in (end + part * run..).zip(rows.chunks_mut(n)) {
                pivots.chunks(n).for_each(|pivot| eliminate(row, i, pivot));
            }
        });
    }
    Some(u)
}

/// `V = U⁻¹`, in strips of columns, which do not depend on each other.
fn inverse_of_upper<W: Double>(u: &[W], n: usize) -> Vec<W> {
    let strip = |first: usize| {
        let end = (first + STRIP).min(n);
        let mut rows = vec![[W::zero(); STRIP]; end];
        for i in (0..end).rev() {
            let mut sums = [W::zero(); STRIP];
            if i >= first {
                sums[i - first] = W::one();
            }
            for (u, row) in u[i * n + i + 1..i * n + end].iter().zip(&rows[i + 1..]) {
                add(&mut sums, -*u, row);
            }
            let by = W::one().quotient(u[i * n + i]);
            rows[i] = sums.map(|sum| sum * by);
        }
        (first, rows)
    };
    let mut v = vec![W::zero(); n * n];
    for (first, rows) in parallel::map((0..n).step_by(STRIP), strip) {
        for (to, row) in v.chunks_mut(n).zip(&rows) {
            to[first..].iter_mut().zip(row).for_each(|(to, v)| *to = *v);
        }
    }
    v
}

/// Bases of the null spaces of a matrix and of its adjoint.
type NullSpaces<W> = [Vec<Vec<W>>; 2];

/// Replaces a matrix by its inverse, by Gauss–Jordan elimination with complete pivoting. If pivots fall below
/// the tolerance relative to the largest, the matrix is singular: it is replaced by a matrix `G` with
/// `A G A = A` and `G A G = G`, and bases of the null spaces are returned.
fn invert<W: Double>(m: &mut [W], n: usize, tolerance: f64) -> NullSpaces<W> {
    let (mut rows, mut columns) = ((0..n).collect::<Vec<_>>(), (0..n).collect::<Vec<_>>());
    let mut largest = 0.0;
    let mut rank = 0;
    while rank < n {
        let k = rank;
        let (i, j, most) = pivot(m, n, k);
        largest = f64::max(largest, most);
        if most <= tolerance * largest {
            break;
        }
        swap_rows(m, n, k, i);
        rows.swap(k, i);
        (0..n).for_each(|row| m.swap(row * n + k, row * n + j));
        columns.swap(k, j);
        let by = W::one().quotient(m[k * n + k]);
        m[k * n + k] = W::one();
        m[k * n..(k + 1) * n].iter_mut().for_each(|v| *v *= by);
        let (above, rest) = m.split_at_mut(k * n);
        let (own, below) = rest.split_at_mut(n);
        let eliminate = |row: &mut [W]| {
            let factor = row[k];
            row[k] = W::zero();
            row.iter_mut().zip(&*own).for_each(|(v, p)| *v -= factor * *p);
        };
        let run = if n >= SHARED { RUN } else { n };
        for rows in [above, below] {
            parallel::for_each(rows.chunks_mut(run * n), |rows| rows.chunks_mut(n).for_each(eliminate));
        }
        rank += 1;
    }
    // With `A₁₁` the eliminated block, the array holds `[A₁₁⁻¹ X; −Y 0]`, `X = A₁₁⁻¹ A₁₂` and
    // `Y = A₂₁ A₁₁⁻¹`; `[−X; I]` and `[−Yᴴ; I]` span the null spaces. Row k of it belongs to column
    // `columns[k]` of the matrix, column k to row `rows[k]`.
    let [mut right, mut left] = [(); 2].map(|()| vec![vec![W::zero(); n]; n - rank]);
    for (f, (right, left)) in right.iter_mut().zip(&mut left).enumerate() {
        for k in 0..rank {
            right[columns[k]] = -m[k * n + rank + f];
            left[rows[k]] = m[(rank + f) * n + k].conj();
        }
        (right[columns[rank + f]], left[rows[rank + f]]) = (W::one(), W::one());
    }
    let found = m.to_vec();
    m.fill(W::zero());
    for (k, &j) in columns[..rank].iter().enumerate() {
        for (l, &i) in rows[..rank].iter().enumerate() {
            m[j * n + i] = found[k * n + l];
        }
    }
    [right, left]
}

/// The entry of largest modulus among those not yet eliminated. The largest diagonal entry is preferred if it
/// is not much smaller, which keeps a Hermitian matrix Hermitian.
fn pivot<W: Double>(m: &[W], n: usize, k: usize) -> (usize, usize, f64) {
    let size = |v: W| v.re().abs() + v.im().abs();
    let of_row = |i: usize| {
        let row = m[i * n + k..(i + 1) * n].iter().map(|v| size(*v)).enumerate();
        row.fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best })
    };
    let diagonal = (k..n)
        .map(|i| (i, size(m[i * n + i])))
        .fold((k, 0.0), |best, next| if next.1 > best.1 { next } else { best });
    let (mut place, mut most) = ((k, k), 0.0);
    for i in k..n {
        let (j, v) = of_row(i);
        if v > most {
            (place, most) = ((i, k + j), v);
        }
    }
    if diagonal.1 >= 0.1 * most { (diagonal.0, diagonal.0, diagonal.1) } else { (place.0, place.1, most) }
}

fn swap_rows<W: Double>(m: &mut [W], n: usize, k: usize, i: usize) {
    if i != k {
        let (low, high) = m.split_at_mut(k.max(i) * n);
        low[k.min(i) * n..(k.min(i) + 1) * n].swap_with_slice(&mut high[..n]);
    }
}

/// Turns `G` into the pseudo-inverse: `(I − N Nᴴ) G (I − L Lᴴ)` with orthonormal bases of the null spaces.
fn project<W: Double>(m: &mut [W], n: usize, [right, left]: NullSpaces<W>) {
    for v in orthonormal(right) {
        let mut along = vec![W::zero(); n];
        for i in 0..n {
            let c = v[i].conj();
            along.iter_mut().zip(&m[i * n..(i + 1) * n]).for_each(|(s, a)| *s += c * *a);
        }
        for i in 0..n {
            m[i * n..(i + 1) * n].iter_mut().zip(&along).for_each(|(a, s)| *a -= v[i] * *s);
        }
    }
    for v in orthonormal(left) {
        for row in m.chunks_mut(n) {
            let along = row.iter().zip(&v).fold(W::zero(), |sum, (a, v)| sum + *a * *v);
            row.iter_mut().zip(&v).for_each(|(a, v)| *a -= along * v.conj());
        }
    }
}

/// Gram–Schmidt, applied twice.
fn orthonormal<W: Double>(mut vectors: Vec<Vec<W>>) -> Vec<Vec<W>> {
    for k in 0..vectors.len() {
        let (before, rest) = vectors.split_at_mut(k);
        let v = &mut rest[0];
        for u in before.iter().chain(before.iter()) {
            let along = u.iter().zip(&*v).fold(W::zero(), |sum, (u, v)| sum + u.conj() * *v);
            v.iter_mut().zip(u).for_each(|(v, u)| *v -= along * *u);
        }
        let norm = v.iter().map(|v| v.re() * v.re() + v.im() * v.im()).sum::<f64>().sqrt();
        v.iter_mut().for_each(|v| *v = v.quotient(W::from_real(norm)));
    }
    vectors
}

#[cfg(test)]
mod tests {
    use super::inverse;
    use lacuna_engine::{Complex64, Double, Scalar};
    use lacuna_formats::{Csr, Triplets, algebra::product};
    use lacuna_io::Spec;

    fn of<T: Scalar>(rows: &[&[T]]) -> Csr<T> {
        let mut triplets = Triplets::new(rows.len(), rows[0].len());
        for (i, row) in rows.iter().enumerate() {
            row.iter()
                .enumerate()
                .filter(|(_, v)| **v != T::zero())
                .for_each(|(j, v)| triplets.push(i, j, *v));
        }
        triplets.to_csr().unwrap()
    }

    /// The four Penrose equations.
    fn check<T: Double>(a: &Csr<T>, nullity: usize) {
        check_as(a, nullity, false);
        if a.adjoint() == *a {
            check_as(a, nullity, true);
        }
    }
    fn check_as<T: Double>(a: &Csr<T>, nullity: usize, hermitian: bool) {
        let (inverse, found) = inverse("amg", (a, T::EPSILON), hermitian).unwrap();
        assert_eq!(found, nullity);
        let (ax, xa) = (product(a, &inverse).unwrap(), product(&inverse, a).unwrap());
        let near = |one: &Csr<T>, two: &Csr<T>| {
            for i in 0..one.rows() {
                for j in 0..one.cols() {
                    let [one, two] = [one, two].map(|m| m.get(i, j).unwrap_or(T::zero()));
                    assert!(
                        (one - two).modulus() <= 1e3 * T::EPSILON * (1.0 + two.modulus()),
                        "{i} {j}: {one} {two}"
                    );
                }
            }
        };
        near(&product(&ax, a).unwrap(), a);
        near(&product(&xa, &inverse).unwrap(), &inverse);
        near(&ax.adjoint(), &ax);
        near(&xa.adjoint(), &xa);
    }

    #[test]
    fn inverses_and_pseudo_inverses() {
        check(&of(&[&[4.0, 1.0, 0.0], &[0.5, 3.0, -1.0], &[0.0, 2.0, 5.0]]), 0);
        check(&of(&[&[0.0, 2.0], &[-3.0, 0.0]]), 0);
        check(&of(&[&[1.0, -1.0, 0.0], &[-1.0, 2.0, -1.0], &[0.0, -1.0, 1.0]]), 1);
        check(&of(&[&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0], &[0.0, 0.0, 0.0]]), 2);
        let c = Complex64::new;
        check(&of(&[&[c(2.0, 1.0), c(0.0, -1.0)], &[c(3.0, 0.0), c(1.0, 4.0)]]), 0);
        check(&of(&[&[c(1.0, 1.0), c(2.0, 0.0)], &[c(0.0, 2.0), c(2.0, 2.0)]]), 1);
        check(&of(&[&[1.0, -1.0], &[-1.0, 1.0]]), 1);
        check(&of(&[&[2.0, 3.0], &[3.0, 2.0]]), 0); // indefinite
        check(&of(&[&[c(4.0, 0.0), c(1.0, 2.0)], &[c(1.0, -2.0), c(3.0, 0.0)]]), 0);
        check(&Spec::parse("gen:poisson2d:17x13").unwrap().build::<f64>().unwrap(), 0); // shared among threads
        check(&Spec::parse("gen:poisson-p1:9").unwrap().build::<Complex64>().unwrap(), 0);
    }
}
