//! A reservoir of the size and kind of Model 2 of the tenth SPE Comparative Solution Project.
use super::noise::word;
use lacuna_engine::{Result, Scalar};
use lacuna_formats::Csr;
use lacuna_formats::build::from_rows;
use lacuna_formats::parallel;

/// Cells along x, y and z.
const CELLS: [usize; 3] = [60, 220, 85];
/// The size of a cell, in feet.
const SPACING: [f64; 3] = [20.0, 10.0, 2.0];
/// Vertical over horizontal permeability.
const VERTICAL: f64 = 0.1;
/// Half the number of decades that the permeability spans.
const HALF_DECADES: f64 = 2.5;
/// Columns of wells: one in the middle, four in the corners.
const WELLS: [(usize, usize); 5] = [(30, 110), (0, 0), (59, 0), (0, 219), (59, 219)];
/// Correlation lengths of the layers of noise, in cells, with the weight of each.
const SCALES: [([usize; 3], f64); 3] = [([20, 40, 6], 1.0), ([6, 12, 3], 0.7), ([2, 3, 1], 0.5)];

/// Number of unknowns.
pub(super) const ROWS: usize = CELLS[0] * CELLS[1] * CELLS[2];

/// Incompressible flow through 60x220x85 cells by 7-point finite volumes with harmonic averages, no flow
/// through the sides, wells in five columns of cells. The permeability is log-normal, spatially correlated,
/// over five decades. Symmetric positive definite, exactly 1 122 000 rows and 7 780 000 entries.
pub(super) fn spe10_like<T: Scalar>(operation: &str, seed: u64) -> Result<Csr<T>> {
    let permeability = parallel::collect(ROWS, 4096, |i| {
        libm::exp(std::f64::consts::LN_10 * log10_permeability(seed, cell(i)))
    });
    let strides = [1, CELLS[0], CELLS[0] * CELLS[1]];
    let [dx, dy, dz] = SPACING;
    let area = [dy * dz, dx * dz, dx * dy];
    from_rows(operation, ROWS, |i, row| {
        let (at, k) = (cell(i), permeability[i]);
        let well = WELLS.contains(&(at[0], at[1]));
        let mut diagonal = if well { k * dz } else { 0.0 };
        for axis in 0..3 {
            let scale = area[axis] / SPACING[axis] * if axis == 2 { VERTICAL } else { 1.0 };
            let lower = (at[axis] > 0).then(|| i - strides[axis]);
            let upper = (at[axis] + 1 < CELLS[axis]).then(|| i + strides[axis]);
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

/// The coordinates of cell `i`, x fastest.
fn cell(i: usize) -> [usize; 3] {
    [i % CELLS[0], i / CELLS[0] % CELLS[1], i / CELLS[0] / CELLS[1]]
}

/// Nearly normal noise that varies over the lengths of [`SCALES`], scaled to span the decades and clipped to
/// them.
fn log10_permeability(seed: u64, at: [usize; 3]) -> f64 {
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
