//! Scaling rows and columns by powers of two.
use crate::{Csr, interrupt};
use lacuna_engine::Scalar;
use lacuna_engine::compiled_here;

/// Maximum number of sweeps over rows and columns; each one halves the remaining exponents.
const SWEEPS: usize = 12;

/// A way of scaling the rows and columns of a matrix.
#[derive(Clone, Copy, Debug)]
pub struct ScalingInfo {
    /// The name users select it by.
    pub name: &'static str,
    /// A description.
    pub description: &'static str,
}

/// All ways of scaling, by factors that are powers of two and cause no rounding.
pub const SCALINGS: &[ScalingInfo] = &[
    ScalingInfo { name: "rows", description: "the largest entry of each row near 1" },
    ScalingInfo { name: "columns", description: "the largest entry of each column near 1" },
    ScalingInfo { name: "both", description: "the largest entry of each row and of each column near 1" },
    ScalingInfo {
        name: "symmetric",
        description: "likewise, with one factor for a row and its column: what is Hermitian stays so",
    },
];

/// The exponents `[r, c]` of the scaled matrix `2^r A 2^c`, by the name of one of the [`SCALINGS`]; `None` for another name, and
/// for a matrix that is not square and `symmetric`.
///
/// Reference: Ruiz 2001, RAL-TR-2001-034 (`both`, alternately for rows and columns; `symmetric`, for both at once).
pub fn scaling<T: Scalar>(a: &Csr<T>, name: &str) -> Option<[Vec<i32>; 2]> {
    let sizes = Sizes::of(a);
    let (mut r, mut c) = (vec![0; a.rows()], vec![0; a.cols()]);
    match name {
        "rows" => _ = take(&mut r, &sizes.of_rows(&c), 1.0),
        "columns" => _ = take(&mut c, &sizes.of_columns(&r), 1.0),
        "both" => (0..SWEEPS).take_while(|_| sizes.sweep(&mut r, &mut c)).for_each(drop),
        "symmetric" if a.rows() == a.cols() => {
            (0..SWEEPS).take_while(|_| sizes.sweep_both(&mut r)).for_each(drop);
            c.clone_from(&r);
        }
        _ => return None,
    }
    Some([r, c])
}

/// Exponents `r` and `c` such that the largest entries of the rows and columns of `2^r A 2^c` are near 1:
/// alternately, rows and columns are scaled by the power of two nearest to the inverse square root of their
/// largest entry. Ends early if [`interrupt::check`] fails, which the caller then asks.
pub fn equilibrated<T: Scalar>(a: &Csr<T>) -> (Vec<i32>, Vec<i32>) {
    let (sizes, mut r, mut c) = (Sizes::of(a), vec![0; a.rows()], vec![0; a.cols()]);
    let goes_on = |_: &usize| interrupt::check().is_ok();
    (0..SWEEPS).take_while(goes_on).take_while(|_| sizes.sweep(&mut r, &mut c)).for_each(drop);
    (r, c)
}

/// Moves exponents so that a part of what is left of the largest entries goes; whether any moved.
fn take(exponents: &mut [i32], largest: &[f64], part: f64) -> bool {
    let mut moved = false;
    for (exponent, largest) in exponents.iter_mut().zip(largest) {
        let by = if largest.is_finite() { (-part * largest).round() as i32 } else { 0 };
        *exponent += by;
        moved |= by != 0;
    }
    moved
}

/// The base-2 logarithms of the entries of a matrix, which scaling adds to.
struct Sizes<'a> {
    row_ptr: &'a [u32],
    col_idx: &'a [u32],
    logarithms: Vec<f64>,
    columns: usize,
}

impl<'a> Sizes<'a> {
    fn of<T: Scalar>(a: &'a Csr<T>) -> Self {
        let logarithms = compiled_here!(T, |a: &Csr<T>| -> Vec<f64> {
            a.values().iter().map(|v| libm::log2(v.modulus())).collect()
        })(a);
        Sizes { row_ptr: a.row_ptr(), col_idx: a.col_idx(), logarithms, columns: a.cols() }
    }

    fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.row_ptr[i] as usize..self.row_ptr[i + 1] as usize;
        let columns = self.col_idx[range.clone()].iter().map(|&j| j as usize);
        columns.zip(self.logarithms[range].iter().copied())
    }

    /// The logarithms of the largest entries of the rows of `A 2^c`.
    fn of_rows(&self, c: &[i32]) -> Vec<f64> {
        let largest = |i| self.row(i).map(|(j, log)| log + f64::from(c[j])).fold(f64::NEG_INFINITY, f64::max);
        (0..self.row_ptr.len() - 1).map(largest).collect()
    }

    /// The same of the columns of `2^r A`.
    fn of_columns(&self, r: &[i32]) -> Vec<f64> {
        let mut largest = vec![f64::NEG_INFINITY; self.columns];
        for (i, r) in r.iter().enumerate() {
            self.row(i).for_each(|(j, log)| largest[j] = largest[j].max(log + f64::from(*r)));
        }
        largest
    }

    /// Halves what is left of the rows, then of the columns; whether anything moved.
    fn sweep(&self, r: &mut [i32], c: &mut [i32]) -> bool {
        let left = |sizes: Vec<f64>, own: &[i32]| -> Vec<f64> {
            sizes.into_iter().zip(own).map(|(size, own)| size + f64::from(*own)).collect()
        };
        let rows = take(r, &left(self.of_rows(c), r), 0.5);
        take(c, &left(self.of_columns(r), c), 0.5) | rows
    }

    /// Halves what is left of rows and columns with the same exponents; whether anything moved.
    fn sweep_both(&self, e: &mut [i32]) -> bool {
        let (rows, columns) = (self.of_rows(e), self.of_columns(e));
        let sizes = rows.into_iter().zip(columns).zip(&*e);
        let left: Vec<_> = sizes.map(|((row, column), own)| row.max(column) + f64::from(*own)).collect();
        take(e, &left, 0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::{SCALINGS, equilibrated, scaling};
    use crate::{Csr, Triplets};

    #[test]
    fn rows_and_columns_come_near_one() {
        let mut triplets = Triplets::new(4, 4);
        for i in 0..4i32 {
            for j in 0..4i32 {
                if (i + j) % 3 != 1 {
                    triplets.push(i as usize, j as usize, 10f64.powi(30 * i - 7 * j) * f64::from(i + j + 1));
                }
            }
        }
        let a: Csr<f64> = triplets.to_csr().unwrap();
        let (r, c) = equilibrated(&a);
        for (i, r) in r.into_iter().enumerate() {
            let scaled = a.row_entries(i).map(|(j, v)| v * f64::powi(2.0, r + c[j]));
            let largest = scaled.fold(0.0, f64::max);
            assert!((0.25..=4.0).contains(&largest), "row {i}: {largest}");
        }
        // A row without entries is unchanged.
        let empty = Triplets::<f64>::new(2, 2).to_csr().unwrap();
        assert_eq!(equilibrated(&empty), (vec![0, 0], vec![0, 0]));
    }

    #[test]
    fn each_scaling_brings_near_one_what_it_says() {
        let mut triplets = Triplets::new(5, 5);
        for i in 0..5i32 {
            for j in 0..5i32 {
                if (i - j).abs() != 3 {
                    let v = f64::from(i + j + 1) * 10f64.powi(9 * i) * 10f64.powi(9 * j);
                    triplets.push(i as usize, j as usize, v);
                }
            }
        }
        let a: Csr<f64> = triplets.to_csr().unwrap();
        for info in SCALINGS {
            let [r, c] = scaling(&a, info.name).unwrap();
            let mut largest = [[0.0f64; 5]; 2];
            for (i, j, v) in a.entries() {
                let scaled = v * f64::powi(2.0, r[i] + c[j]);
                largest[0][i] = largest[0][i].max(scaled);
                largest[1][j] = largest[1][j].max(scaled);
            }
            let near_one = |side: &[f64]| side.iter().all(|v| (0.2..=5.0).contains(v));
            assert!(near_one(&largest[0]) || info.name == "columns", "{}: {largest:?}", info.name);
            assert!(near_one(&largest[1]) || info.name == "rows", "{}: {largest:?}", info.name);
            assert_eq!(r == c, info.name == "symmetric");
        }
        assert!(scaling(&a, "none").is_none());
    }
}
