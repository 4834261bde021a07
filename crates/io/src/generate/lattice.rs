//! Quarks on a periodic four-dimensional lattice.
use super::noise::signed;
use lacuna_engine::{Result, Scalar};
use lacuna_formats::Csr;
use lacuna_formats::build::from_rows;

const SEED: u64 = 1;
const SPINS: usize = 4;
const COLOURS: usize = 3;
/// Minimum number of sites along an axis, so that both neighbours of a site are distinct.
const LEAST: usize = 3;

/// Wilson's hopping term for about `rows` unknowns, with random values: a 3x3 block of colours for each pair
/// of spins that a step along an axis couples, 13 in every row of blocks, none on the diagonal. All sides are
/// equal except the last.
pub(super) fn wilson<T: Scalar>(operation: &str, rows: usize) -> Result<Csr<T>> {
    let sites = rows / (SPINS * COLOURS);
    let mut side = LEAST;
    while (side + 1).pow(4) <= sites {
        side += 1;
    }
    let sides = [side, side, side, (sites / side.pow(3)).max(LEAST)];
    let rows = sides.iter().product::<usize>() * SPINS * COLOURS;
    from_rows(operation, rows, |i, row| {
        let (spin, site) = (i / COLOURS % SPINS, i / COLOURS / SPINS);
        let mut couple = |site: usize, spin: usize| {
            let first = (site * SPINS + spin) * COLOURS;
            row.extend((first..first + COLOURS).map(|j| {
                let value = T::from_real(signed(SEED, i as u64, j as u64));
                (j as u32, value)
            }));
        };
        let mut stride = 1;
        for (axis, side) in sides.into_iter().enumerate() {
            let at = site / stride % side;
            for (forth, step) in [(false, side - 1), (true, 1)] {
                let there = site - at * stride + (at + step) % side * stride;
                // Dirac matrices: along the last axis two spins go forward and two backward; along the others
                // each goes both ways and mixes with one other.
                match axis {
                    0 | 1 => [spin, 3 - spin].into_iter().for_each(|spin| couple(there, spin)),
                    2 => [spin, (spin + 2) % SPINS].into_iter().for_each(|spin| couple(there, spin)),
                    _ if forth == (spin >= 2) => couple(there, spin),
                    _ => {}
                }
            }
            stride *= side;
        }
    })
}
