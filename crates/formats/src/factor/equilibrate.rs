//! Scaling rows and columns by powers of two.
use crate::Csr;
use lacuna_engine::Scalar;
use lacuna_engine::compiled_here;

/// Maximum number of sweeps over rows and columns; each one halves the remaining exponents.
const SWEEPS: usize = 12;

/// Exponents `r` and `c` such that the largest entries of the rows and columns of `2^r A 2^c` are near 1:
/// alternately, rows and columns are scaled by the power of two nearest to the inverse square root of their
/// largest entry. Scaling by them causes no rounding.
pub fn equilibrated<T: Scalar>(a: &Csr<T>) -> (Vec<i32>, Vec<i32>) {
    compiled_here!(T, |a: &Csr<T>| -> (Vec<i32>, Vec<i32>) {
        let (mut rows, mut columns) = (vec![0i32; a.rows()], vec![0i32; a.cols()]);
        // The base-2 logarithms of the entries, which scaling adds to.
        let logarithms: Vec<f64> = a.values().iter().map(|v| libm::log2(v.modulus())).collect();
        let of = |i: usize| {
            let range = a.row_ptr()[i] as usize..a.row_ptr()[i + 1] as usize;
            a.col_idx()[range.clone()].iter().zip(&logarithms[range])
        };
        let step = |largest: f64| if largest.is_finite() { (-0.5 * largest).round() as i32 } else { 0 };
        for _ in 0..SWEEPS {
            let mut moved = false;
            for (i, row) in rows.iter_mut().enumerate() {
                let entries = of(i).map(|(&j, log)| log + f64::from(*row + columns[j as usize]));
                let by = step(entries.fold(f64::NEG_INFINITY, f64::max));
                *row += by;
                moved |= by != 0;
            }
            let mut largest = vec![f64::NEG_INFINITY; a.cols()];
            for (i, row) in rows.iter().enumerate() {
                for (&j, log) in of(i) {
                    let j = j as usize;
                    largest[j] = largest[j].max(log + f64::from(*row + columns[j]));
                }
            }
            for (column, largest) in columns.iter_mut().zip(largest) {
                let by = step(largest);
                *column += by;
                moved |= by != 0;
            }
            if !moved {
                break;
            }
        }
        (rows, columns)
    })(a)
}

#[cfg(test)]
mod tests {
    use super::equilibrated;
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
}
