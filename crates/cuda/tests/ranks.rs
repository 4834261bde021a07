//! The conformance suite on GPUs that share every system, 2 and 3 ranks, dealt to the devices that there are in turn. As in
//! `conformance.rs`, it is skipped without a device.
use lacuna_cuda::{Cuda, CudaOptions, devices};
use lacuna_engine::{Complex32, Complex64, Device, Divided, Error, LinOp, Result};
use lacuna_formats::{Csr, convert};
use lacuna_ranks::Group;
use lacuna_solvers::{Options, Solver, Stop, method};
use lacuna_tests::generated::own_cache;
use lacuna_tests::numbers::generated;
use lacuna_tests::solves::{Solve, paired, placed};
use lacuna_tests::{available, conformance};
use std::sync::Arc;

/// Whatever is read without having been written or sent is NaN.
fn ranks(count: usize) -> Result<Group> {
    own_cache();
    let there = devices()?.len();
    if there == 0 {
        let message = "there is none".into();
        return Err(Error::Device { device: "cuda".into(), operation: "opening a device".into(), message });
    }
    let part = |rank: usize| {
        let options = CudaOptions::default().device((rank % there).to_string());
        Ok(Box::new(Cuda::part(&options)?) as Box<dyn Divided>)
    };
    Ok(Group::new((0..count).map(part).collect::<Result<_>>()?)?.poisoned())
}

/// What the backend does not support yet.
const NOT_YET: &[(&str, &str)] = &[("passes::wide_passes", "a pass has at most 32 vectors and 96 terms")];

conformance!(ranks_2, "cuda", || ranks(2), [f64, Complex32], except NOT_YET);
conformance!(ranks_3, "cuda", || ranks(3), [f32, Complex64], except NOT_YET);

/// A solve with a matrix in a format, which runs to the limit: the bits of x and of the history.
fn solved(dev: Device, a: &Csr<f64>, format: &str, case: &Solve) -> Vec<u64> {
    let dev = &dev.scope();
    let stored = convert(&Arc::new(a.clone()), format).unwrap();
    let operator = Device::matrix(dev, stored).unwrap();
    let placed = placed(dev, case.precond, a, *operator);
    let m = placed.as_ref().map(|m| m as &dyn LinOp<f64>);
    let method = method(case.method, &Options::default()).unwrap();
    let pair = paired(dev, operator, a, method.needs_adjoint());
    let mut solver = Solver::new(dev, &pair, m, &*method, Stop::default().rtol(0.0).max_iters(12)).unwrap();
    let b: Vec<f64> = (0..a.rows()).map(|i| (i as f64 * 0.37).sin()).collect();
    let mut x = vec![0.0; a.rows()];
    let outcome = solver.solve(&b, &mut x).unwrap();
    x.iter().chain(&outcome.history).map(|v| v.to_bits()).collect()
}

/// Systems of many segments: preconditioners, formats and methods have the bits of one GPU.
#[test]
fn systems_that_are_divided_have_the_bits_of_one() {
    if !available("cuda", ranks(1).err()) {
        return;
    }
    let (grid, flow, graph) = ("gen:poisson2d:80x81", "gen:convection:70x71:40", "gen:power-law:9000");
    let mut cases = vec![
        (grid, "cg", "amg", "csr"),
        (grid, "cg", "amg:precision=single", "dia-sym"),
        (grid, "cg", "multigrid", "stencil"),
        (grid, "pipelined-cg", "chebyshev", "dia"),
        (grid, "cg", "fsai", "sell"),
        (grid, "minres", "jacobi", "packed"),
        (grid, "cg", "ic0", "pkt"),
        (flow, "gmres", "block-jacobi", "csr"),
        (flow, "bicgstab", "spai0", "hyb"),
        (flow, "idr", "ilu0", "csr"),
        (flow, "gmres", "block-ilu", "dia"),
        (graph, "bicgstab", "jacobi", "csr"),
        (graph, "bicgstab", "jacobi", "hyb"),
        ("gen:elasticity3d:12", "cg", "block-jacobi", "bcsr3"),
        ("gen:poisson3d:130x130x30", "cg", "jacobi", "csr"),
    ];
    cases.retain(|case| lacuna_solvers::preconditioner::<f64>(case.2).is_ok());
    for (matrix, method, precond, format) in cases {
        let (a, case) = (generated::<f64>(matrix), Solve { matrix, method, precond, max_iters: 0 });
        let one = solved(Device::new(Cuda::new().expect("a GPU")), &a, format, &case);
        for count in [1, 2, 3] {
            let got = solved(Device::new(ranks(count).expect("ranks")), &a, format, &case);
            assert!(got == one, "{case:?} in {format} on {count} ranks");
        }
    }
}
