//! Complete factorisations of small systems with dense rows and columns, under limits: refused with words, or factors within the limits
//! that solve the system.
use crate::bytes::Bytes;
use lacuna::{Complex64, Csr, Error, Scalar, Triplets};
use lacuna_direct::{Analysis, Factors, Kind, Limits, Number, Task};

/// Steps of refinement.
const STEPS: usize = 3;
/// The part of `|b| + ‖a‖ ‖x‖` of a row that a refined solution may leave; pivots within supernodes may grow.
const LEFT: f64 = 1e-6;
const LEFT_WITHIN_SUPERNODES: f64 = 0.1;

/// Factors what the bytes say.
pub fn factors(data: &[u8]) {
    let mut data = Bytes::new(data);
    match data.byte() % 3 {
        0 | 1 => of::<f64>(&mut data),
        _ => of::<Complex64>(&mut data),
    }
}

fn of<W: Number>(data: &mut Bytes<'_>) {
    let kind = data.pick(&[
        None,
        None,
        None,
        Some(Kind::Cholesky),
        Some(Kind::Symmetric),
        Some(Kind::Sparse),
        Some(Kind::Fronts),
        Some(Kind::Pivoted),
    ]);
    let bytes = data.pick(&[f64::INFINITY, f64::INFINITY, 0.0, 1e2, 1e3, 1e4, 1e5]);
    let operations = data.pick(&[f64::INFINITY, f64::INFINITY, 0.0, 1e2, 1e4, 1e6]);
    let limits = Limits { bytes, operations };
    let Some(a) = matrix::<W>(data) else { return };
    let said = |error: Error| match error {
        Error::Unsupported { .. } | Error::Entry { .. } => {}
        other => panic!("{kind:?}: {other}\nA = {a:?}"),
    };
    let analysis = match kind {
        Some(kind) => Analysis::as_kind(&a, kind),
        None => Analysis::of(&a),
    };
    let mut factors = match analysis.and_then(|analysis| Factors::new(&a, analysis, &limits, &mut || Ok(())))
    {
        Ok(factors) => factors,
        Err(error) => return said(error),
    };
    within(&factors, &limits);
    solves(&a, &factors);
    // New values on the same pattern, of any size.
    let values = a.values().iter().map(|v| if data.coin() { *v } else { data.number() }).collect();
    let Ok(a) = a.with_values(values) else { return };
    match factors.renew(&a, &limits, &mut || Ok(())) {
        Ok(()) => {
            within(&factors, &limits);
            solves(&a, &factors);
        }
        Err(error) => said(error),
    }
}

fn within<W: Number>(factors: &Factors<W>, limits: &Limits) {
    let cost = factors.cost();
    assert!(cost.bytes <= limits.bytes && cost.operations <= limits.operations, "{cost:?} of {limits:?}");
}

/// Solutions leave little after steps of refinement, measured as the factors see the system, scaled. What partial pivoting, the last resort, solves is finite.
fn solves<W: Number>(a: &Csr<W>, factors: &Factors<W>) {
    // Beyond these, a solution may leave the range of numbers.
    let usual = a.values().iter().all(|v| *v == W::zero() || (1e-20..1e20).contains(&v.modulus()));
    let b: Vec<W> = (0..a.rows()).map(|k| W::from_real(1.0 + (k * 37 % 11) as f64)).collect();
    let (rows, columns) = scales(a, factors.kind());
    let most = if factors.kind() == Kind::Symmetric { LEFT_WITHIN_SUPERNODES } else { LEFT };
    for task in [Task::Plain, Task::Adjoint] {
        let matrix = if task == Task::Plain { a.clone() } else { a.adjoint() };
        let residual = |x: &[W], i: usize| matrix.row_entries(i).fold(b[i], |sum, (j, v)| sum - v * x[j]);
        let mut x = b.clone();
        factors.solve(task, &mut x);
        if factors.kind() == Kind::Pivoted {
            assert!(!usual || x.iter().all(|v| v.finite()), "{a:?}");
            continue;
        }
        for _ in 0..STEPS {
            let mut correction: Vec<W> = (0..a.rows()).map(|i| residual(&x, i)).collect();
            factors.solve(task, &mut correction);
            x.iter_mut().zip(&correction).for_each(|(x, c)| *x += *c);
        }
        let (scales, sizes) = if task == Task::Plain { (&rows, &columns) } else { (&columns, &rows) };
        let size = x.iter().zip(sizes).map(|(x, by)| x.modulus() * by).fold(0.0, f64::max);
        for (i, b) in b.iter().enumerate() {
            let left = residual(&x, i);
            let part =
                if left == W::zero() { 0.0 } else { left.modulus() / (b.modulus() + scales[i] * size) };
            assert!(part <= most || !usual, "{:?}, {task:?}, row {i}: {part:e}\n{a:?}", factors.kind());
        }
    }
}

/// By what each kind divides rows and columns: by their largest entries, the Hermitian ones all by the largest of the matrix.
fn scales<W: Number>(a: &Csr<W>, kind: Kind) -> (Vec<f64>, Vec<f64>) {
    let largest = |values: &[W]| values.iter().map(|v| v.modulus()).fold(0.0, f64::max);
    let n = a.rows();
    if matches!(kind, Kind::Cholesky | Kind::Symmetric) {
        return (vec![largest(a.values()); n], vec![1.0; n]);
    }
    let rows: Vec<f64> = (0..n).map(|i| largest(a.row_slices(i).1)).collect();
    let mut columns = vec![0.0f64; n];
    a.entries().for_each(|(i, j, v)| columns[j] = columns[j].max(v.modulus() / rows[i]));
    (rows, columns)
}

/// A band, a grid or nothing, with dense rows and columns, and entries anywhere; symmetric or not.
fn matrix<W: Number>(data: &mut Bytes<'_>) -> Option<Csr<W>> {
    let n = data.pick(&[1usize, 2, 3, 5, 8, 13, 30, 64, 150]);
    let (kind, symmetric) = (data.below(4), data.coin());
    let mut entries = Triplets::<W>::new(n, n);
    let mut put = |i: usize, j: usize, v: W| {
        entries.push(i, j, v);
        if symmetric && i != j {
            entries.push(j, i, Scalar::conj(v));
        }
    };
    let few: Vec<W> = (0..8).map(|_| data.number()).collect();
    let value = |i: usize, j: usize| few[(3 * i + 5 * j) % few.len()];
    let on_diagonal = |v: W| if symmetric { W::from_real(v.re()) } else { v };
    for i in 0..n {
        match kind {
            0 => {
                put(i, i, W::from_real(4.0));
                (1..3).filter(|step| i + step < n).for_each(|step| put(i, i + step, value(i, step)));
            }
            1 => {
                put(i, i, on_diagonal(value(i, 0)));
                [1, 8]
                    .into_iter()
                    .filter(|step| i + step < n)
                    .for_each(|step| put(i + step, i, value(i, step)));
            }
            2 => put(
                i,
                (i * 7 + 3) % n,
                if (i * 7 + 3) % n == i { on_diagonal(value(i, 1)) } else { value(i, 1) },
            ),
            _ => {}
        }
    }
    for _ in 0..data.below(4) {
        let (at, across, every) = (data.below(n), data.coin(), 1 + data.below(3));
        for k in (0..n).step_by(every).filter(|k| *k != at) {
            if across { put(at, k, value(at, k)) } else { put(k, at, value(k, at)) }
        }
    }
    for _ in 0..data.below(20) {
        let (i, j, v) = (data.below(n), data.below(n), data.number());
        put(i, j, if i == j { on_diagonal(v) } else { v });
    }
    entries.to_csr().ok()
}
