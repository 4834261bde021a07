//! The rows that generated kernels are built from equal those of the format, entry by entry, to the bit.
use lacuna_engine::{Complex64, Format, Formats, Scalar, row_sum};
use lacuna_formats::{FORMATS, Interpolation, POSITIONS, Stencil, convert};
use lacuna_gpu::KernelMatrix;
use lacuna_io::Spec;
use std::sync::Arc;

/// The formats whose rows are known in full; checks all of them.
fn checked<T: Scalar>(name: &str) -> String {
    let a = Arc::new(Spec::parse(name).unwrap().build::<T>().unwrap());
    let converted = |format: &str| convert(&a, format).ok();
    let formats = FORMATS.iter().filter_map(|format| Some((format.name, converted(format.name)?)));
    compared(name, formats.collect())
}

/// Compares the rows of each format, and returns the names of those whose rows are known in full.
fn compared<T: Scalar>(name: &str, formats: Vec<(&str, Arc<dyn Format<T>>)>) -> String {
    let mut known = Vec::new();
    for (format, stored) in formats {
        let (n, cols) = stored.shape();
        let x: Vec<T> = (0..cols).map(|j| T::from_parts(1.0 / (j + 3) as f64, j as f64)).collect();
        let any = T::each::<Formats>(stored.clone());
        let Some(rows) = KernelMatrix::of(&any).filter(|rows| rows.pieces().is_none()) else { continue };
        known.push(format);
        assert_eq!(rows.lanes(), stored.lanes(), "{format}");
        let values = rows.values().get::<T>().unwrap();
        let spans = rows.spans(n);
        let long = rows.long_rows(n);
        for i in (0..n).filter(|i| !long.iter().any(|(row, _)| *row as usize == *i)) {
            // Lane by lane, in the order in which a row sum assigns entries.
            let lanes: Vec<Vec<(T, T)>> = (0..rows.lanes())
                .map(|lane| {
                    let mut entries = Vec::new();
                    rows.each(i, lane, |column, source| {
                        assert!((spans[i / 256].0..spans[i / 256].1).contains(&column), "{format} row {i}");
                        entries.push((values.at(source), x[column as usize]));
                    });
                    assert!(entries.len() <= rows.longest(i), "{format} row {i}");
                    entries
                })
                .collect();
            let sums: Vec<T> = lanes.into_iter().map(|entries| row_sum(1, entries)).collect();
            let got = row_sum(sums.len(), sums.iter().map(|sum| (T::one(), *sum)));
            let want = stored.row(i, &x);
            assert_eq!(bytemuck::bytes_of(&got), bytemuck::bytes_of(&want), "{format} row {i} of {name}");
        }
    }
    known.join(" ")
}

#[test]
fn rows_are_those_of_the_format() {
    let known = [
        checked::<f64>("gen:poisson3d:7x6x8:27"),
        checked::<f64>("gen:elasticity3d:4"),
        checked::<f64>("gen:dense:120"),
        checked::<f64>("gen:power-law:400"),
        checked::<Complex64>("gen:helmholtz:20x21"),
    ];
    let expected = [
        "csr stencil dia dia-sym ell sell packed packed-f32 pkt hyb coo bcsr2 bcsr3 bcsr4 bcsr6 bcsr7 bcsr8",
        "csr dia dia-sym ell sell packed packed-f32 pkt hyb coo bcsr2 bcsr3 bcsr4 bcsr5 bcsr6",
        "csr dia dia-sym ell sell packed packed-f32 pkt hyb bcsr2 bcsr3 bcsr4 bcsr5 bcsr6 bcsr8 dense",
        "csr ell sell pkt bcsr2 bcsr4 bcsr5 bcsr8",
        "csr dia dia-sym ell sell packed packed-f32 pkt hyb coo bcsr2 bcsr3 bcsr4 bcsr5 bcsr6 bcsr7",
    ];
    assert_eq!(known, expected);
}

#[test]
fn rows_on_grids_are_those_of_the_format() {
    let (size, axes) = ([12, 7, 6], [true, true, false]);
    let steps: Vec<[i32; 3]> = (0..9).map(|k| [k % 3 - 1, k / 3 - 1, 0]).collect();
    let coefficients: Vec<Vec<f64>> =
        (0..POSITIONS).map(|p| (0..9).map(|k| (9 * p + k) as f64).collect()).collect();
    let formats: Vec<(&str, Arc<dyn Format<f64>>)> = vec![
        ("stencil", Arc::new(Stencil::by_position(size, &steps, &coefficients).unwrap())),
        ("prolongation", Arc::new(Interpolation::prolongation(size, axes).unwrap())),
        ("restriction", Arc::new(Interpolation::restriction(size, axes).unwrap())),
    ];
    assert_eq!(compared("grids", formats), "stencil prolongation restriction");
}
