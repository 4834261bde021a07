//! A matrix in every format, order and file, there and back.
use crate::bytes::Bytes;
use crate::readers::is_kept;
use lacuna::backend::Run;
use lacuna::cpu::{Cpu, CpuOptions};
use lacuna::formats::{FORMATS, ORDERS, Permutation, convert, reorder};
use lacuna::{Complex32, Complex64, Csr, Device, Format, Matrix, Pass, Recorder, Scalar, Scope, Triplets};
use lacuna_tests::bits::{download, same, upload};
use std::sync::Arc;

/// A matrix of up to 40 rows and columns, or of a few hundred with entries on diagonals.
pub(crate) fn matrix<T: Scalar>(data: &mut Bytes<'_>) -> Option<Csr<T>> {
    let (kind, rows, cols) = (data.byte(), data.below(41), data.below(41));
    let (rows, cols) = match kind % 4 {
        0 => (rows, cols),
        1 | 2 => (rows, rows),
        _ => (rows * 16, rows * 16),
    };
    let mut entries = Triplets::new(rows, cols);
    let most = if kind % 4 == 3 { 12 } else { 400 };
    for _ in 0..most {
        if data.is_empty() || rows == 0 || cols == 0 {
            break;
        }
        let (i, j, value) = (data.byte(), data.byte(), data.number::<T>());
        if kind % 4 == 3 {
            // A whole diagonal, the same number or another in each row.
            let (offset, vary) = (usize::from(j) % cols, i & 1 == 1);
            for i in 0..rows.min(cols - offset) {
                let value = if vary { value * T::from_real((i % 5) as f64 + 1.0) } else { value };
                if value.finite() {
                    entries.push(i, i + offset, value);
                    if i & 2 == 2 && offset > 0 {
                        entries.push(i + offset, i, value);
                    }
                }
            }
        } else {
            entries.push(usize::from(i) % rows, usize::from(j) % cols, value);
        }
    }
    entries.to_csr().ok()
}

/// Every conversion gives the matrix back, and the CPU multiplies by each format as its own rows say.
pub fn conversions(data: &[u8]) {
    let mut data = Bytes::new(data);
    match data.byte() % 4 {
        0 => of::<f64>(&mut data),
        1 => of::<f32>(&mut data),
        2 => of::<Complex64>(&mut data),
        _ => of::<Complex32>(&mut data),
    }
}

fn of<T: Scalar>(data: &mut Bytes<'_>) {
    let threads = data.below(3) + 1;
    let Some(a) = matrix::<T>(data) else { return };
    let (rows, cols) = (a.rows(), a.cols());
    is_kept(&a);
    assert!(a.to_triplets().to_csr().expect("its own entries") == a, "triplets");
    assert!(a.transpose().transpose() == a, "transpose");
    assert!(a.adjoint().adjoint() == a, "adjoint");
    assert!(a.adjoint() == a.transpose().map(T::conj).expect("finite"), "adjoint and transpose");
    for order in ORDERS {
        if let Ok(Some(p)) = reorder(&a, order.name) {
            let back = Permutation::new(p.inverse()).expect("an inverse is a permutation");
            let there = a.permuted(&p).expect("a square matrix");
            assert!(there.permuted(&back).expect("a square matrix") == a, "{}", order.name);
        }
    }
    let x: Vec<T> = (0..cols).map(|j| T::from_parts((j * 7 % 11) as f64 - 5.0, (j % 3) as f64)).collect();
    let a = Arc::new(a);
    let dev = cpu(threads);
    for format in FORMATS {
        let Ok(stored) = convert(&a, format.name) else { continue };
        assert_eq!(stored.shape(), (rows, cols), "{}", format.name);
        assert_eq!(stored.nnz(), a.nnz(), "{}", format.name);
        if !format.rounds {
            back(&a, &*stored, format.name);
        }
        let want: Vec<T> = (0..rows).map(|i| stored.row(i, &x)).collect();
        let got = product(&dev.scope(), stored, &x, rows);
        same(format.name, &got, &want);
    }
}

/// A column of the matrix at a time, by products with unit vectors.
fn back<T: Scalar>(a: &Csr<T>, stored: &dyn Format<T>, name: &str) {
    let mut unit = vec![T::zero(); a.cols()];
    for j in (0..a.cols()).step_by(if a.cols() > 64 { 37 } else { 1 }) {
        unit[j] = T::one();
        for i in 0..a.rows() {
            assert!(stored.row(i, &unit) == a.get(i, j).unwrap_or(T::zero()), "{name}: row {i}, column {j}");
        }
        unit[j] = T::zero();
    }
}

pub(crate) fn cpu(threads: usize) -> Device {
    let options = CpuOptions::default().threads(threads).parallel_from(0).gather(true);
    Device::new(Cpu::with(options).expect("a CPU backend"))
}

fn product<T: Scalar>(dev: &Scope, a: Arc<dyn Format<T>>, x: &[T], rows: usize) -> Vec<T> {
    let a: Matrix<T> = dev.matrix(a).expect("a format that is there");
    let x = upload(dev, x);
    let y = upload(dev, &vec![T::zero(); rows]);
    let mut k = Recorder::new(dev, "product");
    k.spmv_dot(&a, x, y, Pass::nothing());
    let mut plan = k.finish().and_then(|program| dev.plan(program)).expect("a product");
    let run = Run { limit: 1, history: &mut Default::default(), watch: None };
    dev.execute(&mut plan, run).expect("a product");
    download(dev, y)
}
