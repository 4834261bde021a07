//! A reservoir of the size and kind of Model 2 of the tenth SPE Comparative Solution Project.
use super::grid::Size;
use super::noise::word;
use lacuna_engine::{Result, Scalar, pages};
use lacuna_formats::Csr;
use lacuna_formats::build::from_rows;
use lacuna_formats::parallel;

/// Cells along x, y and z, if no others are asked for.
pub(super) const CELLS: [usize; 3] = [60, 220, 85];
/// The size of a cell, in feet.
const SPACING: [f64; 3] = [20.0, 10.0, 2.0];
/// Vertical over horizontal permeability.
const VERTICAL: f64 = 0.1;
/// Half the number of decades that the permeability spans.
const HALF_DECADES: f64 = 2.5;
/// Correlation lengths of the layers of noise, in cells, with the weight of each.
const SCALES: [([usize; 3], f64); 3] = [([20, 40, 6], 1.0), ([6, 12, 3], 0.7), ([2, 3, 1], 0.5)];

/// Incompressible flow through a box of cells by 7-point finite volumes with harmonic averages, no flow
/// through the sides, wells in five columns of cells. The permeability is log-normal, spatially correlated,
/// over five decades. Symmetric positive definite; of [`CELLS`] exactly 1 122 000 rows and 7 780 000 entries.
pub(super) fn spe10_like<T: Scalar>(operation: &str, seed: u64, cells: Size) -> Result<Csr<T>> {
    let rows = cells.iter().product();
    let permeability = parallel::collect(rows, 4096, |i| permeability(seed, cell(i, cells)));
    let strides = [1, cells[0], cells[0] * cells[1]];
    let [dx, dy, dz] = SPACING;
    let area = [dy * dz, dx * dz, dx * dy];
    from_rows(operation, rows, |i, row| {
        let (at, k) = (cell(i, cells), permeability[i]);
        let mut diagonal = if pressure(at, cells).is_some() { k * dz } else { 0.0 };
        for axis in 0..3 {
            let scale = area[axis] / SPACING[axis] * if axis == 2 { VERTICAL } else { 1.0 };
            let lower = (at[axis] > 0).then(|| i - strides[axis]);
            let upper = (at[axis] + 1 < cells[axis]).then(|| i + strides[axis]);
            for j in [lower, upper].into_iter().flatten() {
                let other = permeability[j];
                let conductance = scale * (2.0 * (k * other) / (k + other));
                diagonal += conductance;
                row.push((j as u32, T::from_real(-conductance)));
            }
        }
        row.push((i as u32, T::from_real(diagonal)));
    })
}

/// The flow that the wells drive: in each of their cells the conductance of the well times its pressure.
pub(super) fn wells<T: Scalar>(operation: &str, seed: u64, cells: Size) -> Result<Vec<T>> {
    let mut flow = pages::zeroed::<T>(operation, cells.iter().product())?;
    for (i, flow) in flow.iter_mut().enumerate() {
        let at = cell(i, cells);
        if let Some(pressure) = pressure(at, cells) {
            *flow = T::from_real(permeability(seed, at) * SPACING[2] * pressure);
        }
    }
    Ok(flow)
}

/// The pressure of the well in a column of cells, from that at rest: 1 where it injects, in the middle, and −1 in the four corners,
/// where it produces.
fn pressure(at: Size, [nx, ny, _]: Size) -> Option<f64> {
    let ends = [0, nx - 1].contains(&at[0]) && [0, ny - 1].contains(&at[1]);
    match ends {
        true => Some(-1.0),
        false => ([at[0], at[1]] == [nx / 2, ny / 2]).then_some(1.0),
    }
}

/// The coordinates of cell `i`, x fastest.
fn cell(i: usize, [nx, ny, _]: Size) -> Size {
    [i % nx, i / nx % ny, i / nx / ny]
}

fn permeability(seed: u64, at: Size) -> f64 {
    libm::exp(std::f64::consts::LN_10 * log10_permeability(seed, at))
}

/// Nearly normal noise that varies over the lengths of [`SCALES`], scaled to span the decades and clipped to
/// them.
fn log10_permeability(seed: u64, at: Size) -> f64 {
    let mut sum = 0.0;
    for (layer, (lengths, weight)) in SCALES.iter().enumerate() {
        let mut value = 0.0;
        // Smooth interpolation between the values at the corners of a coarse box.
        for corner in 0..8usize {
            let (mut share, mut id) = (1.0, 0u64);
            for axis in 0..3 {
                let (box_at, inside) = (at[axis] / lengths[axis], at[axis] % lengths[axis]);
                let t = inside as f64 / lengths[axis] as f64;
                let smooth = t * t * (3.0 - 2.0 * t);
                let upper = corner >> axis & 1;
                share *= if upper == 1 { smooth } else { 1.0 - smooth };
                id = id << 16 | (box_at + upper) as u64;
            }
            if share > 0.0 {
                value += share * normal(seed, id, layer as u64);
            }
        }
        sum += weight * value;
    }
    (sum * 1.1).clamp(-HALF_DECADES, HALF_DECADES)
}

/// The sum of four uniform numbers, centred, with variance 1: approximately normal, and bounded.
fn normal(seed: u64, id: u64, layer: u64) -> f64 {
    let bits = word(seed, id, layer);
    let sum: u64 = (0..4).map(|k| bits >> (16 * k) & 0xFFFF).sum();
    // Four times 65536/√12 squared is the variance of the sum.
    (sum as f64 - 2.0 * 65535.0) * (3.0f64.sqrt() / 65536.0)
}
