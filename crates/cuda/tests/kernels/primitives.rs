//! Every primitive against the serial reference, by equal bits, in every number type and mode.
use crate::support::{Random, assert_same, device, modes, random_matrix, set_mode, unless_refused};
use lacuna_cuda::Mode;
use lacuna_engine::{Device, Formula, Owned, Pass, Reference, Result, Scalar, Vector};
use std::sync::Arc;

const LENGTHS: [usize; 7] = [1, 2, 255, 256, 257, 1000, 5001];

type Results<T> = (Vec<Vec<T>>, Vec<T>);

/// Runs the same work on a device and on the reference; all returned vectors and cells must be equal.
fn both<T: Scalar>(
    what: &str,
    n: usize,
    only: Option<&[Mode]>,
    work: impl Fn(&Device) -> Result<Results<T>>,
) {
    let Some(dev) = device() else { return };
    let (vectors, cells) = work(&Device::new(Reference::new())).unwrap();
    let all = modes();
    for mode in only.unwrap_or(&all) {
        set_mode(&dev, *mode);
        let what = format!("{what}, n = {n}, mode {}", mode.name());
        let Some((got, got_cells)) = unless_refused(*mode, work(&dev), &what) else { continue };
        assert_same(&got_cells, &cells, &format!("{what}, cells"));
        for (i, (got, expected)) in got.iter().zip(&vectors).enumerate() {
            assert_same(got, expected, &format!("{what}, vector {i}"));
        }
    }
}

/// What owns vectors, and their handles.
type Vectors<T> = (Vec<Owned<Vector<T>>>, Vec<Vector<T>>);

fn uploaded<T: Scalar>(dev: &Device, n: usize, count: usize, seed: u64) -> Result<Vectors<T>> {
    let mut random = Random::new(seed);
    let vector = |_| {
        let v = dev.vector(n)?;
        dev.upload(&random.vector::<T>(n), *v)?;
        Ok(v)
    };
    let owned = (0..count).map(vector).collect::<Result<Vec<_>>>()?;
    let vectors = owned.iter().map(|v| **v).collect();
    Ok((owned, vectors))
}

fn downloaded<T: Scalar>(dev: &Device, vectors: &[Vector<T>]) -> Result<Vec<Vec<T>>> {
    vectors
        .iter()
        .map(|v| {
            let mut values = vec![T::zero(); v.len];
            dev.download(*v, &mut values)?;
            Ok(values)
        })
        .collect()
}

fn pass_of_every_kind_of_term<T: Scalar>() {
    for n in LENGTHS {
        fn work<T: Scalar>(dev: &Device, n: usize) -> Result<Results<T>> {
            let (_owned, v) = uploaded::<T>(dev, n, 6, 1)?;
            let cells = dev.cells::<T>(6)?;
            for i in 0..3 {
                dev.write(cells.at(i), Random::new(7 + i as u64).number())?;
            }
            let (a, b) = (cells.at(0), cells.at(1));
            let pass = Pass::new("terms")
                .set(v[0], v[0] + a * v[1] - v[2])
                .set(v[1], v[3] * v[2] - v[3] * v[1] + a * (v[3] * v[4]))
                .set(v[2], -v[0] + b * v[1] + v[1] * v[2])
                .set(v[3], -(v[3] * v[0]) - v[5])
                .set(v[4], a * (v[2] * v[1]))
                .set(v[5], Formula::value(T::zero()))
                .dot(cells.at(3), v[0], v[1])
                .dot(cells.at(4), v[2], v[2])
                .dot(cells.at(5), v[4], v[3]);
            dev.multi_axpy_dot(pass)?;
            let all: Vec<_> = (0..6).map(|i| cells.at(i)).collect();
            Ok((downloaded(dev, &v)?, dev.read(&all)?))
        }
        both::<T>("terms", n, None, |dev| work(dev, n));
    }
}

fn formulas<T: Scalar>() {
    fn work<T: Scalar>(dev: &Device) -> Result<Results<T>> {
        let c = dev.cells::<T>(24)?;
        let mut random = Random::new(3);
        for i in 0..4 {
            dev.write(c.at(i), random.number())?;
        }
        let (_owned, v) = uploaded::<T>(dev, 300, 1, 5)?;
        let (a, b, p, q) = (c.at(0), c.at(1), c.at(2), c.at(3));
        let mut pass = Pass::new("formulas").dot(c.at(4), v[0], v[0]);
        let list: Vec<Formula<T>> = vec![
            a + b,
            a - b * p,
            a / b,
            (a * b) / (p - q),
            (a * a.conj()).sqrt(),
            Formula::from(a).sqrt(),
            (-a).sqrt(),
            a.max(b),
            b.max(a),
            (a.conj() - b.conj()) / q,
            (c.at(4) / a).sqrt(),
            (c.at(4) + 1e-30) / (b * 1e-20),
            (a - a * 1.0) / b,
            a / (b - b * 1.0),
        ];
        for (i, formula) in list.into_iter().enumerate() {
            pass = pass.eval(c.at(5 + i), formula);
        }
        dev.multi_axpy_dot(pass)?;
        let all: Vec<_> = (0..24).map(|i| c.at(i)).collect();
        Ok((Vec::new(), dev.read(&all)?))
    }
    both::<T>("formulas", 300, None, |dev| work(dev));
}

fn products<T: Scalar>() {
    for (rows, cols, per_row) in [
        (1, 1, 1),
        (255, 255, 3),
        (1000, 1000, 5),
        (700, 700, 17),
        (700, 700, 40),
        (600, 600, 90),
        (515, 515, 150),
        (600, 600, 300),
        (20_000, 20_000, 6),
        (300, 7000, 30),
        (7000, 300, 3),
    ] {
        let a = Arc::new(random_matrix::<T>(rows, cols, per_row, 11));
        fn work<T: Scalar>(dev: &Device, a: Arc<lacuna_formats::Csr<T>>) -> Result<Results<T>> {
            let (rows, cols) = (a.rows(), a.cols());
            let a = dev.matrix::<T>(a)?;
            let (_x, x) = uploaded::<T>(dev, cols, 1, 2)?;
            let x = x[0];
            let (_owned, v) = uploaded::<T>(dev, rows, 3, 4)?;
            let cells = dev.cells::<T>(3)?;
            dev.write(cells.at(0), Random::new(9).number())?;
            let mut pass = Pass::new("along")
                .set(v[1], v[1] - cells.at(0) * v[0])
                .dot(cells.at(1), v[0], v[1])
                .dot(cells.at(2), v[2], v[0]);
            if rows == cols {
                pass = Pass::new("operand").set(v[2], v[2] + x).then(pass);
            }
            dev.spmv_dot(&a, x, v[0], pass)?;
            let all: Vec<_> = (0..3).map(|i| cells.at(i)).collect();
            Ok((downloaded(dev, &v)?, dev.read(&all)?))
        }
        let what =
            format!("product {rows}x{cols}, {per_row} a row, lanes {}", lacuna_engine::Format::lanes(&*a));
        let any = [Mode::Stream, Mode::Graph];
        let only = (rows != cols).then_some(&any[..]);
        both::<T>(&what, rows, only, |dev| work(dev, a.clone()));
    }
}

fn bases<T: Scalar>() {
    for (n, columns) in [(1, 1), (257, 3), (3000, 9), (3000, 40), (70_001, 13)] {
        fn work<T: Scalar>(dev: &Device, n: usize, columns: usize) -> Result<Results<T>> {
            let basis = dev.basis::<T>(n, columns)?;
            let mut random = Random::new(21);
            for j in 0..columns {
                dev.upload(&random.vector::<T>(n), basis.column(j))?;
            }
            let (_owned, w) = uploaded::<T>(dev, n, 2, 8)?;
            let h = dev.cells::<T>(columns + 1)?;
            dev.basis_dot(*basis, w[0], h.take(columns))?;
            if columns > 2 {
                dev.write(h.at(1), T::zero())?;
            }
            let norm = h.at(columns);
            let pass = Pass::new("norm").set(w[1], w[1] + w[0]).dot(norm, w[0], w[1]);
            dev.basis_axpy(*basis, h.take(columns), w[0], pass)?;
            let g = dev.cells::<T>(columns * columns)?;
            dev.basis_gram(*basis, *basis, *g)?;
            dev.write(g.at(0), T::zero())?;
            let combined = dev.basis::<T>(n, columns)?;
            dev.basis_combine(*basis, *g, *combined)?;
            let mut numbers = downloaded(dev, &w)?;
            numbers.extend(downloaded(dev, &(0..columns).map(|j| combined.column(j)).collect::<Vec<_>>())?);
            let mut all = dev.read_run(h.take(columns + 1))?;
            all.extend(dev.read_run(*g)?);
            Ok((numbers, all))
        }
        both::<T>(&format!("basis of {columns}"), n, None, |dev| work(dev, n, columns));
    }
}

in_every_type!(pass_of_every_kind_of_term, formulas, products, bases);

/// A sum of more than 65536 segments needs another level.
#[test]
fn long_sums() {
    let n = 256 * 65_536 + 300;
    let Some(dev) = device() else { return };
    set_mode(&dev, Mode::Stream);
    let values: Vec<f32> = Random::new(17).vector(n);
    let (v, c) = (dev.vector::<f32>(n).unwrap(), dev.cells::<f32>(1).unwrap());
    dev.upload(&values, *v).unwrap();
    dev.multi_axpy_dot(Pass::new("long").dot(c.at(0), *v, *v)).unwrap();
    let expected = lacuna_engine::dot_product(&values, &values);
    assert_same(&dev.read(&[c.at(0)]).unwrap(), &[expected], "a long sum");
}

/// Large arrays go through page-locked memory by several threads: from within pools of any size.
#[test]
fn large_arrays_travel_from_any_pool() {
    let Some(dev) = device() else { return };
    for (threads, n) in [(1, 131_072), (3, 1_000_003), (16, 2_500_000)] {
        let sent = Random::new(threads as u64).vector::<f64>(n);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let got = pool.install(|| {
            let v = dev.vector::<f64>(n).unwrap();
            dev.upload(&sent, *v).unwrap();
            let mut got = vec![0.0; n];
            dev.download(*v, &mut got).unwrap();
            got
        });
        assert_same(&got, &sent, &format!("{threads} threads"));
    }
}
