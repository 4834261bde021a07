//! An estimate of the spectral radius of `D⁻¹ A`.
use super::filtered::Filtered;
use crate::random::hashed;
use lacuna_engine::sum::{SEGMENT, pair_sum, segment_sum};
use lacuna_engine::{Complex64, Double, Result, Scalar, pages};
use lacuna_formats::parallel;

/// Rows that a thread takes at a time: whole segments of canonical sums.
const CHUNK: usize = 8 * SEGMENT;

/// The largest modulus of a Ritz value after so many steps of Lanczos' method in the inner product of `D`, where `A` is
/// Hermitian and `D` positive, else of Arnoldi's. The start vector is hashed and sums are canonical, so that the bits depend
/// on no number of threads. Usually a little below the radius.
///
/// # Errors
/// [`lacuna_engine::Error::OutOfMemory`].
pub(super) fn radius<T: Double>(a: &Filtered<'_, T>, steps: usize) -> Result<f64> {
    let positive = a.hermitian && a.by.iter().all(|d| d.re() > 0.0 && d.im() == 0.0);
    if positive { lanczos(a, steps) } else { arnoldi(a, steps) }
}

/// Goes over chunks of a vector: what `f` writes there, and the canonical sum of the terms that it returns, a row each.
fn sweep<T: Double>(y: &mut [T], f: impl Fn(usize, &mut T) -> T + Sync) -> T {
    let chunk = |(c, y): (usize, &mut [T])| {
        let mut terms = [T::zero(); SEGMENT];
        let segment = |(s, y): (usize, &mut [T])| {
            let first = c * CHUNK + s * SEGMENT;
            y.iter_mut().zip(&mut terms).enumerate().for_each(|(k, (y, term))| *term = f(first + k, y));
            segment_sum(&terms[..y.len()])
        };
        y.chunks_mut(SEGMENT).enumerate().map(segment).collect::<Vec<_>>()
    };
    pair_sum(&parallel::map(y.chunks_mut(CHUNK).enumerate(), chunk).concat())
}

fn zeros<T: Double>(n: usize) -> Result<Vec<T>> {
    pages::zeroed("spectral radius", n)
}

/// Lanczos' method in the inner product of `D`, wherever its vectors are. They are kept as they come, not normalised.
pub(super) trait Lanczos {
    /// The first vector `v`, hashed: `v* D v`.
    fn start(&mut self) -> Result<f64>;
    /// `v* A v`
    fn energy(&mut self) -> Result<f64>;
    /// The next vector `w ← by D⁻¹ A v + own v + last w` over the one before `v`: `w* D w`. It is `v` from then on.
    fn step(&mut self, factors: [f64; 3]) -> Result<f64>;
}

/// The largest modulus of a Ritz value after so many steps, for a matrix of `n` rows.
pub(super) fn lanczos_by(on: &mut impl Lanczos, n: usize, steps: usize) -> Result<f64> {
    // What normalises the last vector.
    let mut norm = on.start()?.sqrt();
    let (mut h, mut before) = (Vec::<(f64, f64)>::new(), 0.0);
    for _ in 0..steps.min(n) {
        if norm == 0.0 || !norm.is_finite() {
            break;
        }
        let alpha = on.energy()? / (norm * norm);
        h.push((alpha, norm));
        let last = if before > 0.0 { -norm / before } else { 0.0 };
        let squares = on.step([1.0 / norm, -alpha / norm, last])?;
        (before, norm) = (norm, squares.sqrt());
    }
    let m = h.len();
    let entry = |i: usize, j: usize| match i.abs_diff(j) {
        0 => h[i].0,
        1 => h[i.max(j)].1,
        _ => 0.0,
    };
    let h = (0..m).map(|i| (0..m).map(|j| Complex64::new(entry(i, j), 0.0)).collect()).collect();
    Ok(largest_eigenvalue(h))
}

/// On the host.
struct LanczosHere<'a, T: Double> {
    a: &'a Filtered<'a, T>,
    inverse: Vec<T>,
    v: Vec<T>,
    /// The vector before, which takes the next.
    old: Vec<T>,
    av: Vec<T>,
}

impl<T: Double> Lanczos for LanczosHere<'_, T> {
    fn start(&mut self) -> Result<f64> {
        let d = &self.a.by;
        let squares = sweep(&mut self.v, |i, v| {
            *v = T::from_real(hashed(i, 0));
            v.dot_term(d[i] * *v)
        });
        Ok(squares.re())
    }
    fn energy(&mut self) -> Result<f64> {
        let (a, v) = (self.a, &self.v);
        let row = |i: usize, av: &mut T| {
            *av = a.row(i, v);
            v[i].dot_term(*av)
        };
        Ok(sweep(&mut self.av, row).re())
    }
    fn step(&mut self, factors: [f64; 3]) -> Result<f64> {
        let [by, own, last] = factors.map(T::from_real);
        let LanczosHere { a, inverse, v, old, av } = self;
        let squares = sweep(old, |i, w| {
            *w = by * (av[i] * inverse[i]) + own * v[i] + last * *w;
            w.dot_term(a.by[i] * *w)
        });
        std::mem::swap(v, old);
        Ok(squares.re())
    }
}

fn lanczos<T: Double>(a: &Filtered<'_, T>, steps: usize) -> Result<f64> {
    let n = a.by.len();
    let inverse = parallel::collect(n, CHUNK, |i| T::one().quotient(a.by[i]));
    let [v, old, av] = [zeros(n)?, zeros(n)?, zeros(n)?];
    lanczos_by(&mut LanczosHere { a, inverse, v, old, av }, n, steps)
}

/// Arnoldi's method, wherever its vectors are.
pub(super) trait Arnoldi {
    /// The vector `w`, hashed: `w* w`.
    fn start(&mut self) -> Result<f64>;
    /// Adds `w`, multiplied, to the basis.
    fn keep(&mut self, by: f64) -> Result<()>;
    /// `w ← D⁻¹ A v` of the last vector `v` of the basis: `u* w` with the first one `u`.
    fn apply(&mut self) -> Result<Complex64>;
    /// `w ← w − c v` with vector `j` of the basis: `u* w` with the next one `u`, with `w` after the last.
    fn project(&mut self, j: usize, c: Complex64) -> Result<Complex64>;
}

/// The largest modulus of a Ritz value after so many steps, for a matrix of `n` rows.
pub(super) fn arnoldi_by(on: &mut impl Arnoldi, n: usize, steps: usize) -> Result<f64> {
    let steps = steps.min(n);
    let mut h = vec![vec![Complex64::new(0.0, 0.0); steps]; steps];
    let (mut squares, mut m) = (on.start()?, 0);
    for k in 0..steps {
        let norm = squares.sqrt();
        if norm == 0.0 || !norm.is_finite() {
            break;
        }
        if k > 0 {
            h[k][k - 1] = Complex64::new(norm, 0.0);
        }
        m = k + 1;
        on.keep(1.0 / norm)?;
        let mut dot = on.apply()?;
        for (j, row) in h[..m].iter_mut().enumerate() {
            row[k] = dot;
            dot = on.project(j, dot)?;
        }
        squares = dot.re;
    }
    h.truncate(m);
    h.iter_mut().for_each(|row| row.truncate(m));
    Ok(largest_eigenvalue(h))
}

/// On the host.
struct ArnoldiHere<'a, T: Double> {
    a: &'a Filtered<'a, T>,
    basis: Vec<Vec<T>>,
    w: Vec<T>,
}

impl<T: Double> Arnoldi for ArnoldiHere<'_, T> {
    fn start(&mut self) -> Result<f64> {
        let squares = sweep(&mut self.w, |i, w| {
            *w = T::from_real(hashed(i, 0));
            w.dot_term(*w)
        });
        Ok(squares.re())
    }
    fn keep(&mut self, by: f64) -> Result<()> {
        let by = T::from_real(by);
        let mut w = std::mem::replace(&mut self.w, zeros(self.a.by.len())?);
        parallel::for_each(w.chunks_mut(CHUNK), |w| w.iter_mut().for_each(|w| *w *= by));
        self.basis.push(w);
        Ok(())
    }
    fn apply(&mut self) -> Result<Complex64> {
        let ArnoldiHere { a, basis, w } = self;
        let (Some(u), Some(v)) = (basis.first(), basis.last()) else { return Ok(Complex64::new(0.0, 0.0)) };
        let dot = sweep(w, |i, w| {
            let entry = a.row(i, v).quotient(a.by[i]);
            *w = if entry.finite() { entry } else { T::zero() };
            u[i].dot_term(*w)
        });
        Ok(Complex64::new(dot.re(), dot.im()))
    }
    fn project(&mut self, j: usize, c: Complex64) -> Result<Complex64> {
        let ArnoldiHere { basis, w, .. } = self;
        let (c, column, next) = (T::from_parts(c.re, c.im), &basis[j], basis.get(j + 1));
        let dot = sweep(w, |i, w| {
            *w -= c * column[i];
            next.map_or(*w, |next| next[i]).dot_term(*w)
        });
        Ok(Complex64::new(dot.re(), dot.im()))
    }
}

fn arnoldi<T: Double>(a: &Filtered<'_, T>, steps: usize) -> Result<f64> {
    let n = a.by.len();
    arnoldi_by(&mut ArnoldiHere { a, basis: Vec::with_capacity(steps), w: zeros(n)? }, n, steps)
}

/// The largest modulus of an eigenvalue of a small upper Hessenberg matrix, by QR steps with Wilkinson's shifts.
fn largest_eigenvalue(mut h: Vec<Vec<Complex64>>) -> f64 {
    let mut most = 0.0f64;
    let mut n = h.len();
    let mut rounds = 0;
    while n > 0 {
        let small = |h: &[Vec<Complex64>], k: usize| {
            h[k][k - 1].modulus() <= f64::EPSILON * (h[k][k].modulus() + h[k - 1][k - 1].modulus())
        };
        if n == 1 || small(&h, n - 1) || rounds > 60 {
            most = most.max(h[n - 1][n - 1].modulus());
            (n, rounds) = (n - 1, 0);
            continue;
        }
        let first = (1..n).rev().find(|&k| small(&h, k)).unwrap_or(0);
        rounds += 1;
        let (a, b, c, d) = (h[n - 2][n - 2], h[n - 2][n - 1], h[n - 1][n - 2], h[n - 1][n - 1]);
        let (half, root) = ((a + d) / 2.0, (((a - d) / 2.0) * ((a - d) / 2.0) + b * c).root());
        let (one, two) = (half + root, half - root);
        let mut shift = if (one - d).modulus() < (two - d).modulus() { one } else { two };
        if rounds % 10 == 0 {
            shift += h[n - 1][n - 2].modulus(); // an exceptional one, where the others go round
        }
        (first..n).for_each(|k| h[k][k] -= shift);
        let mut rotations = Vec::with_capacity(n);
        for k in first..n - 1 {
            let (x, y) = (h[k][k], h[k + 1][k]);
            let norm = (x.norm_sqr() + y.norm_sqr()).sqrt();
            let (c, s) = if norm == 0.0 {
                (Complex64::new(1.0, 0.0), Complex64::new(0.0, 0.0))
            } else {
                (x / norm, y / norm)
            };
            let (above, below) = h.split_at_mut(k + 1);
            for (above, below) in above[k][k..n].iter_mut().zip(&mut below[0][k..n]) {
                let (x, y) = (*above, *below);
                *above = c.conj() * x + s.conj() * y;
                *below = c * y - s * x;
            }
            rotations.push((c, s));
        }
        for (k, (c, s)) in (first..n - 1).zip(rotations) {
            for row in h.iter_mut().take((k + 2).min(n)).skip(first) {
                let (x, y) = (row[k], row[k + 1]);
                row[k] = x * c + y * s;
                row[k + 1] = y * c.conj() - x * s.conj();
            }
        }
        (first..n).for_each(|k| h[k][k] += shift);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::{arnoldi, lanczos, largest_eigenvalue, radius};
    use crate::precond::amg::filtered::Filtered;
    use crate::precond::amg::rows::RowCouplings;
    use crate::precond::amg::strength::Filter;
    use lacuna_engine::Complex64;
    use lacuna_io::Spec;

    #[test]
    fn eigenvalues_of_small_matrices() {
        let real = |rows: &[&[f64]]| {
            rows.iter().map(|row| row.iter().map(|&v| Complex64::new(v, 0.0)).collect()).collect()
        };
        let close = |got: f64, want: f64| assert!((got - want).abs() <= 1e-12 * want, "{got} for {want}");
        close(largest_eigenvalue(real(&[&[0.0, -4.0], &[1.0, 0.0]])), 2.0); // ±2i
        close(
            largest_eigenvalue(real(&[&[2.0, 1.0, 0.0], &[1.0, 2.0, 1.0], &[0.0, 1.0, 2.0]])),
            2.0 + 2f64.sqrt(),
        );
        close(largest_eigenvalue(real(&[&[0.0, 0.0, 8.0], &[1.0, 0.0, 0.0], &[0.0, 1.0, 0.0]])), 2.0);
        assert_eq!(largest_eigenvalue(Vec::new()), 0.0);
    }

    #[test]
    fn both_methods_come_near_the_radius_from_below() {
        let a = Spec::parse("gen:poisson2d:31x31").unwrap().build::<f64>().unwrap();
        let rows = RowCouplings::of(&a, None);
        let whole = Filtered::new(&a, &rows, &Filter::All, None);
        let exact = 1.0 + (std::f64::consts::PI / 32.0).cos();
        let estimate = radius(&whole, 10).unwrap();
        assert!(estimate > 0.85 * exact && estimate <= exact, "{estimate} of {exact}");
        // The diagonal is constant, so that both have one inner product and one Krylov space.
        let (one, two) = (lanczos(&whole, 10).unwrap(), arnoldi(&whole, 10).unwrap());
        assert!((one - two).abs() < 1e-10, "{one} {two}");
        assert!((lanczos(&whole, 60).unwrap() - exact).abs() < 1e-3);
        let bits = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| [radius(&whole, 10).unwrap(), arnoldi(&whole, 10).unwrap()])
        };
        assert_eq!(bits(1), bits(3));
    }
}
