//! Bandwidth of each primitive: passes, products in every format, bases.
//!
//! `primitives [auto] [passes] [bases] [MATRIX …]`: by single launches, or with `auto` as the backend runs a
//! program, which is one kernel on a GPU. A matrix is a generator such as `gen:poisson3d:256x256x256`. The
//! environment selects the device, see `OpenClOptions::from_env`.
use lacuna_engine::{Backend, Matrix, Pass, Result, Vector};
use lacuna_formats::{Csr, FORMATS, Spec, convert};
use lacuna_opencl::{Mode, OpenCl, OpenClOptions};
use std::sync::Arc;

mod support;
use support::repeat;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = if arguments.iter().any(|a| a == "auto") { Mode::Auto } else { Mode::Launches };
    let mut dev = OpenCl::new(OpenClOptions { mode, ..OpenClOptions::from_env()? })?;
    let copy = dev.measure_bandwidth()? / 1e9;
    println!("{}: copy {copy:.0} GB/s", dev.device().name);
    for argument in &arguments {
        match argument.as_str() {
            "auto" => {}
            "passes" => [1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 25]
                .into_iter()
                .try_for_each(|n| passes(&mut dev, n, copy))?,
            "bases" => [1 << 16, 1 << 20, 1 << 23].into_iter().try_for_each(|n| bases(&mut dev, n, copy))?,
            matrix => products(&mut dev, matrix, copy)?,
        }
    }
    Ok(())
}

fn report(what: &str, n: usize, micros: f64, bytes: f64, copy: f64) {
    let rate = bytes / micros / 1e3;
    println!("{what:>28} n = {n:>9}: {micros:9.2} us {rate:7.1} GB/s ({:3.0} %)", 100.0 * rate / copy);
}

/// The pass of conjugate gradients, and a plain sum of two vectors.
fn passes(dev: &mut OpenCl, n: usize, copy: f64) -> Result<()> {
    let mark = dev.mark();
    let v: Vec<Vector<f64>> = (0..4).map(|_| Backend::vector(dev, n)).collect::<Result<_>>()?;
    let c = Backend::cells::<f64>(dev, 3)?;
    let (x, r, p, q, alpha, beta) = (v[0], v[1], v[2], v[3], c.at(0), c.at(1));
    let bytes = 8.0 * n as f64;
    let micros = repeat(dev, |k, rr| {
        let step = Pass::new("step").set(x, x + alpha * p).set(r, r - alpha * q).set(p, r + beta * p);
        k.multi_axpy_dot(step.dot(rr, r, r).count(rr));
    })?;
    report("cg's pass", n, micros, 7.0 * bytes, copy);
    let micros = repeat(dev, |k, rr| k.multi_axpy_dot(Pass::new("axpy").set(q, x + alpha * p).count(rr)))?;
    report("x + a p", n, micros, 3.0 * bytes, copy);
    let micros = repeat(dev, |k, rr| k.multi_axpy_dot(Pass::new("dot").dot(rr, x, p).count(rr)))?;
    report("dot", n, micros, 2.0 * bytes, copy);
    dev.release(mark);
    Ok(())
}

/// Projections on 16 columns, and their linear combination.
fn bases(dev: &mut OpenCl, n: usize, copy: f64) -> Result<()> {
    const COLUMNS: usize = 16;
    let mark = dev.mark();
    let v = Backend::basis::<f64>(dev, n, COLUMNS)?;
    let w = Backend::vector::<f64>(dev, n)?;
    let h = Backend::cells::<f64>(dev, COLUMNS)?;
    let bytes = 8.0 * n as f64;
    let micros = repeat(dev, |k, rr| {
        k.basis_dot(v, w, h);
        k.multi_axpy_dot(Pass::new("count").count(rr));
    })?;
    report("basis_dot, 16 columns", n, micros, (COLUMNS + 1) as f64 * bytes, copy);
    for column in 0..COLUMNS {
        Backend::write(dev, h.at(column), 0.5)?;
    }
    let micros = repeat(dev, |k, rr| k.basis_axpy(v, h, w, Pass::new("norm").dot(rr, w, w).count(rr)))?;
    report("basis_axpy, 16 columns", n, micros, (COLUMNS + 2) as f64 * bytes, copy);
    dev.release(mark);
    Ok(())
}

/// Products in every format that can store the matrix.
fn products(dev: &mut OpenCl, name: &str, copy: f64) -> Result<()> {
    let a: Arc<Csr<f64>> = Arc::new(Spec::parse(name)?.build()?);
    println!("{name}: {} rows, {} entries", a.rows(), a.nnz());
    for format in FORMATS {
        let Ok(a) = convert(&a, format.name) else { continue };
        let mark = dev.mark();
        let (rows, cols) = a.shape();
        let bytes = (a.bytes() + 8 * (rows + cols)) as f64;
        let lanes = a.lanes();
        let a: Matrix<f64> = dev.matrix(a)?;
        let [x, y]: [Vector<f64>; 2] = [Backend::vector(dev, cols)?, Backend::vector(dev, rows)?];
        dev.upload(&vec![1.0; cols], x)?;
        let micros = repeat(dev, |k, c| k.spmv_dot(&a, x, y, Pass::new("count").count(c)))?;
        report(&format!("{}, {lanes} lanes", format.name), rows, micros, bytes, copy);
        dev.release(mark);
    }
    Ok(())
}
