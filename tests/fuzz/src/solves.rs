//! Small systems, singular, inconsistent, indefinite, graded, at the ends of the number range: what a solve says must be true of what
//! it hands back.
use crate::bytes::Bytes;
use crate::conversions::cpu;
use crate::exact::{norm, residual};
use lacuna::solvers::{METHODS, PRECONDITIONERS};
use lacuna::{Complex32, Complex64, Csr, LinearSystem, Scalar, Stop, Triplets};

/// What rounding may add to a bound.
const SLACK: f64 = 1.01;

/// Solves what the bytes say.
pub fn solves(data: &[u8]) {
    let mut data = Bytes::new(data);
    match data.byte() % 8 {
        0..4 => of::<f64>(&mut data),
        4 | 5 => of::<f32>(&mut data),
        6 => of::<Complex64>(&mut data),
        _ => of::<Complex32>(&mut data),
    }
}

fn of<T: Scalar>(data: &mut Bytes<'_>) {
    let method = METHODS.iter().map(|m| m.name).chain(["auto"]).collect::<Vec<_>>();
    let precond = PRECONDITIONERS.iter().map(|p| p.name).chain(["auto"]).collect::<Vec<_>>();
    let (method, precond) = (data.pick(&method), data.pick(&precond));
    let threads = if data.below(8) == 7 { 2 } else { 1 };
    let max_iters = data.pick(&[1, 2, 3, 10, 30, 1000, 1000, 1000]);
    let rtol = data.pick(&[0.0, 1e-15, 1e-10, 1e-8, 1e-5, 1e-2, LinearSystem::<T>::DEFAULT_RTOL]);
    let restart = data.pick(&[None, None, None, Some(1), Some(2), Some(5)]);
    let Some(a) = system::<T>(data) else { return };
    let n = a.rows();
    let b: Vec<T> = if data.coin() { vec![T::one(); n] } else { (0..n).map(|_| data.number()).collect() };
    let guess: Vec<T> =
        if data.below(4) == 3 { (0..n).map(|_| data.number()).collect() } else { vec![T::zero(); n] };
    let mut system = LinearSystem::new(a.clone()).method(method).preconditioner(precond).x0(&guess);
    if let Some(restart) = restart {
        system = system.restart(restart);
    }
    let stop = Stop::default().rtol(rtol).max_iters(max_iters);
    let Ok(mut system) = system.stop(stop).on(cpu(threads)).prepare() else { return };
    let Ok((x, outcome)) = system.solve(&b) else { return };
    let x = x.to_vec();
    let context =
        || format!("{method} with {precond}: {outcome:?}\nA = {a:?}\nb = {b:?}\nx0 = {guess:?}\nx = {x:?}");
    assert!(x.iter().all(|x| x.finite()), "not finite: {}", context());
    let (r, bb) = (residual(&a, &b, &x), norm(&b));
    if outcome.converged() {
        let least_squares = METHODS.iter().any(|m| m.name == method && m.least_squares());
        let ratio = if bb.is_zero() && r.is_zero() { 0.0 } else { r.over(bb) };
        if !least_squares {
            assert!(ratio <= SLACK * rtol.max(T::EPSILON), "false: {ratio:e}, {}", context());
        }
    } else {
        let ratio = r.over(residual(&a, &b, &guess));
        assert!(ratio <= SLACK, "worse than the guess, {ratio:e} times: {}", context());
    }
}

/// A square matrix of one of the kinds that go wrong.
fn system<T: Scalar>(data: &mut Bytes<'_>) -> Option<Csr<T>> {
    let (kind, n) = (data.below(12), data.pick(&[1usize, 2, 3, 4, 5, 8, 13, 20, 31]));
    let ten = |e: i32| if e.abs() <= 300 { 10f64.powi(e) } else { 1.0 };
    let scale = match data.below(8) {
        0 => ten(i32::from(data.byte() as i8) * 2),
        1 => ten(i32::from(data.byte() as i8) / 4),
        _ => 1.0,
    };
    let mut entries = Triplets::<T>::new(n, n);
    let mut put = |i: usize, j: usize, v: T| {
        let v = v * T::from_real(scale);
        if v.finite() {
            entries.push(i, j, v);
        }
    };
    let real = T::from_real;
    for i in 0..n {
        let next = (i + 1) % n;
        match kind {
            // A graph's Laplacian: singular.
            0 => {
                let (j, w) = (data.below(n), real(f64::from(data.byte()) / 16.0));
                [(i, i, w), (j, j, w), (i, j, -w), (j, i, -w)].into_iter().for_each(|(i, j, v)| put(i, j, v));
            }
            1 => {
                // Rows may stay empty.
                for _ in 0..data.below(4) {
                    put(i, data.below(n), data.number());
                }
            }
            2 if i + 1 < n => put(i, i + 1, data.number()), // nilpotent
            3 => {
                // Symmetric, indefinite.
                let (j, v) = (data.below(n), data.number::<T>());
                put(i, i, data.number());
                if i != j {
                    put(i, j, v);
                    put(j, i, v.conj());
                }
            }
            4 => {
                // Skew.
                let (j, v) = (data.below(n), data.number::<T>());
                if i != j {
                    put(i, j, v);
                    put(j, i, -v.conj());
                }
            }
            5 => {
                // Positive definite, scaled on both sides.
                let step = f64::from(data.byte() as i8) / 64.0;
                let s = |i: usize| 10f64.powf(step * i as f64);
                put(i, i, real(4.0 * s(i) * s(i)));
                if i + 1 < n {
                    put(i, i + 1, real(-s(i) * s(i + 1)));
                    put(i + 1, i, real(-s(i) * s(i + 1)));
                }
            }
            6 => {
                // A Markov chain's: singular.
                let (j, w) = (data.below(n), f64::from(data.byte()) / 255.0);
                put(i, i, real(1.0));
                put(i, j, real(-w));
                put(i, next, real(w - 1.0));
            }
            7 => {
                // A Jordan block.
                put(i, i, real(1.0));
                if i + 1 < n {
                    put(i, i + 1, data.number());
                }
            }
            8 => (0..n.min(8)).for_each(|j| put(i, j, real(1.0 / (i + j + 1) as f64))), // nearly singular
            9 => {
                // Some diagonal entries far below their rows.
                put(i, i, real(if data.below(5) == 0 { 1e-12 } else { 4.0 }));
                if i + 1 < n {
                    put(i, i + 1, real(1.0));
                    put(i + 1, i, data.number());
                }
            }
            10 => {
                // One of low rank.
                let u = real(f64::from(data.byte() as i8));
                (0..n).for_each(|j| put(i, j, u * real((j % 7) as f64 - 3.0)));
            }
            _ => {
                // Diagonally dominant.
                put(i, i, real(8.0));
                put(i, data.below(n), real(f64::from(data.byte() as i8) / 64.0));
                put(i, data.below(n), real(f64::from(data.byte() as i8) / 64.0));
            }
        }
    }
    entries.to_csr().ok()
}
