//! Matrices without a grid: power-law rows, random columns, dense in sparse form; circuits, economies,
//! covers. The square ones are strictly diagonally dominant.
use super::noise::{below, signed, unit, word};
use lacuna_engine::{Result, Scalar};
use lacuna_formats::Csr;
use lacuna_formats::build::{from_rows, rectangular};

/// The seed of the matrices without a seed argument.
const SEED: u64 = 1;
/// Scatters the popular columns; a prime, so it gives a permutation unless it divides the number of columns.
const SCATTER: u64 = 2_654_435_761;

/// A directed network like the web: the number of links per row follows a power law with exponent 1.6 (3.3
/// entries per row with the diagonal), half of them to nearby rows, half to popular columns. Not symmetric.
pub(super) fn power_law<T: Scalar>(operation: &str, n: usize) -> Result<Csr<T>> {
    from_rows(operation, n, |i, row| {
        let id = i as u64;
        // A number of links ≥ k has the probability k^−1.6: u^(−5/8) by square roots, the same everywhere.
        let root = (1.0 - unit(SEED, id, 0)).sqrt();
        let links = (1.0 / (root * root.sqrt().sqrt())) as usize;
        let mut weight = 0.0;
        for k in 0..links.min(n - 1) as u64 {
            let j = if k % 2 == 0 {
                let reach = 64.min(n);
                (i + n - reach / 2 + below(reach, SEED, id, 3 * k + 1)) % n
            } else {
                let u = unit(SEED, id, 3 * k + 1);
                let popular = ((u * u * u * n as f64) as u64).min(n as u64 - 1);
                (popular as u128 * SCATTER as u128 % n as u128) as usize
            };
            if j != i {
                let size = 0.1 + 0.9 * unit(SEED, id, 3 * k + 2);
                weight += size;
                row.push((j as u32, T::from_real(-size)));
            }
        }
        row.push((i as u32, T::from_real(1.0 + weight)));
    })
}

/// `per_row` entries in every row, including the diagonal, one in each of `per_row` equal runs of columns.
pub(super) fn random<T: Scalar>(operation: &str, n: usize, per_row: usize, seed: u64) -> Result<Csr<T>> {
    let first = |k: usize| (k as u128 * n as u128 / per_row as u128) as usize;
    from_rows(operation, n, |i, row| {
        let mut weight = 0.0;
        let mut own = 0;
        for k in 0..per_row {
            let run = first(k)..first(k + 1);
            if run.contains(&i) {
                own = k;
                row.push((i as u32, T::zero()));
            } else {
                let j = run.start + below(run.len(), seed, i as u64, 2 * k as u64);
                let value = signed(seed, i as u64, 2 * k as u64 + 1);
                weight += value.abs();
                row.push((j as u32, T::from_real(value)));
            }
        }
        row[own].1 = T::from_real(1.0 + weight);
    })
}

/// All entries stored: random values below 1; symmetric where it is square, with the number of rows on the diagonal.
pub(super) fn dense<T: Scalar>(operation: &str, [n, cols]: [usize; 2]) -> Result<Csr<T>> {
    if n != cols {
        return rectangular(operation, [n, cols], &|i, row: &mut Vec<(u32, T)>| {
            row.extend((0..cols).map(|j| (j as u32, T::from_real(signed(SEED, i as u64, j as u64)))));
        });
    }
    from_rows(operation, n, |i, row| {
        row.extend((0..n).map(|j| {
            let value = if i == j { n as f64 } else { signed(SEED, i.min(j) as u64, i.max(j) as u64) };
            (j as u32, T::from_real(value))
        }));
    })
}

/// Equations of a period.
const EQUATIONS: usize = 413;

/// An economy over time: the same 413 equations in every period, for about `rows` rows. Each has a few
/// variables of its own period and of adjacent ones, rarely many: 6 entries per row, up to 44.
pub(super) fn periods<T: Scalar>(operation: &str, rows: usize) -> Result<Csr<T>> {
    let rows = rows.div_ceil(EQUATIONS) * EQUATIONS;
    from_rows(operation, rows, |i, row| {
        let (period, equation) = (i / EQUATIONS, i % EQUATIONS);
        let draw = |k: u64| unit(SEED, equation as u64, k);
        let others = (5.82 * exponential(draw(0))).min(43.0) as u64;
        let columns = (0..others).filter_map(|k| {
            // The number of periods before the next one, then the variable in that period.
            let lag = [0, 1, 1, 1, 2, 2][below(6, SEED, equation as u64, 2 * k + 1)];
            let variable = below(EQUATIONS, SEED, equation as u64, 2 * k + 2);
            Some((period + 1).checked_sub(lag)? * EQUATIONS + variable).filter(|&j| j < rows)
        });
        dominant(i, row, columns);
    })
}

/// Number of stages at which parts are connected, at distances of powers of two.
const STAGES: u32 = 18;
/// The probability that a part is connected at the first stage, and its factor from one stage to the next.
const JOINED: [f64; 2] = [0.745, 0.8];
/// Numbers of parts among which a line may be shared.
const LINES: [usize; 2] = [24, 360];

/// A circuit of `n` parts, connected to a few nearby parts, fewer distant ones, and through lines shared by
/// up to 360 parts: 5.6 entries per row. The pattern is symmetric.
pub(super) fn circuit<T: Scalar>(operation: &str, n: usize) -> Result<Csr<T>> {
    from_rows(operation, n, |i, row| {
        let partners = partners(i, n, JOINED);
        // One part of each group owns the line; the number of others that share it differs from line to line.
        let lines = LINES.into_iter().flat_map(|size| {
            let group = i / size * size;
            let draw = |k: u64| unit(size as u64, group as u64, k);
            let owner = group + below(size, size as u64, group as u64, 0);
            let share = draw(1) * draw(1) * draw(1);
            let members = if i == owner { group..(group + size).min(n) } else { i..i + 1 };
            let shares = move |j: &usize| unit(size as u64, *j as u64, 2) < share;
            let other = move |j: usize| if i == owner { j } else { owner };
            members.filter(shares).map(other).filter(move |&j| j != i && j < n)
        });
        dominant(i, row, partners.chain(lines));
    })
}

/// The parts that part `i` of `n` is joined to; `first` is the probability at the first stage, and `factor` that from one stage to the
/// next.
fn partners(i: usize, n: usize, [first, factor]: [f64; 2]) -> impl Iterator<Item = usize> {
    // Two adjacent groups of 2^s parts are matched one to one.
    (0..STAGES).filter_map(move |s| {
        let bit = 1usize << s;
        let j = i ^ (bit | word(SEED, i as u64 >> (s + 1), u64::from(s)) as usize & (bit - 1));
        let likely = (0..s).fold(first, |p, _| p * factor);
        let pair = unit(SEED, i.min(j) as u64, i.max(j) as u64);
        (j < n && pair < likely).then_some(j)
    })
}

/// The same as [`JOINED`] for a sparse circuit, and for the buses of a grid.
const SPARSELY: [f64; 2] = [0.571, 0.8];
const BUSES: [f64; 2] = [0.9333, 0.84];

/// A circuit without shared lines: 3.8 entries per row. Its pattern is symmetric, its values are not; diagonally dominant by little.
pub(super) fn sparse_circuit<T: Scalar>(operation: &str, n: usize) -> Result<Csr<T>> {
    from_rows(operation, n, |i, row| {
        let mut weight = 0.0;
        for j in partners(i, n, SPARSELY) {
            let value = 0.1 + 0.9 * unit(SEED, i as u64, j as u64);
            weight += value;
            row.push((j as u32, T::from_real(-value)));
        }
        row.push((i as u32, T::from_real(if weight > 0.0 { 1.001 * weight } else { 1.0 })));
    })
}

/// The optimality conditions of a power network: `n` / 2 unknowns with a diagonal Hessian, and as many balances, one at each bus, of its
/// unknown and those of the buses joined to it. Symmetric and indefinite: no diagonal in the second half.
pub(super) fn optimality<T: Scalar>(operation: &str, n: usize) -> Result<Csr<T>> {
    let half = n / 2;
    from_rows(operation, n.max(1), |i, row| {
        if i >= 2 * half {
            return row.push((i as u32, T::one()));
        }
        let (bus, far) = (i % half, if i < half { half } else { 0 });
        if i < half {
            row.push((i as u32, T::from_real(0.1 + unit(SEED, bus as u64, 1))));
        }
        row.push(((far + bus) as u32, T::one()));
        row.extend(partners(bus, half, BUSES).map(|other| {
            let value = signed(SEED, bus.min(other) as u64, bus.max(other) as u64);
            ((far + other) as u32, T::from_real(0.2 * value))
        }));
    })
}

/// Average number of entries in a column of a cover.
const COVERED: f64 = 10.3235;

/// A few rows of many columns each: the length of a row is an exponential variable to the power 5/3, so that
/// some are twenty times the average; its columns are spread evenly.
pub(super) fn cover<T: Scalar>(operation: &str, [rows, cols]: [usize; 2]) -> Result<Csr<T>> {
    // The mean of such a variable is Γ(8/3).
    let scale = COVERED * cols as f64 / rows as f64 / 1.504_575_488_251_556;
    rectangular(operation, [rows, cols], &|i, row: &mut Vec<(u32, T)>| {
        let e = exponential(unit(SEED, i as u64, 0));
        let length = ((scale * e * libm::cbrt(e * e)) as usize).clamp(1, cols);
        let first = |k: usize| (k as u128 * cols as u128 / length as u128) as usize;
        row.extend((0..length).map(|k| {
            let j = first(k) + below(first(k + 1) - first(k), SEED, i as u64, 2 * k as u64 + 1);
            (j as u32, T::from_real(signed(SEED, i as u64, 2 * k as u64 + 2)))
        }));
    })
}

/// An exponential variable with mean 1 from a uniform one.
fn exponential(u: f64) -> f64 {
    -libm::log(1.0 - u)
}

/// Random values in the other columns of a row, and more than their sum on the diagonal.
fn dominant<T: Scalar>(i: usize, row: &mut Vec<(u32, T)>, columns: impl Iterator<Item = usize>) {
    let mut weight = 0.0;
    for j in columns.filter(|&j| j != i) {
        let value = signed(SEED, i as u64, j as u64);
        weight += value.abs();
        row.push((j as u32, T::from_real(value)));
    }
    row.push((i as u32, T::from_real(1.0 + weight)));
}
