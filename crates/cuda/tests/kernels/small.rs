//! Every kernel once on a small case, for memory checkers, which are too slow for larger cases.
use crate::support::{Random, assert_same, device, random_matrix, set_mode, unless_refused};
use lacuna_cuda::Mode;
use lacuna_engine::{Device, Pass, Reference, Result, Scalar};
use lacuna_solvers::{Cg, Cycle, Gmres, Method, Solver, Stop};
use std::sync::Arc;

fn solve<T: Scalar>(dev: &Device, n: usize, method: &dyn Method<T>) -> Result<Vec<T>> {
    let a = Arc::new(random_matrix::<T>(n, n, 20, 1));
    let matrix = dev.matrix::<T>(a)?;
    let mut solver = Solver::new(dev, &matrix, None, method, Stop::default().max_iters(5))?;
    let mut x = vec![T::zero(); n];
    solver.solve(&Random::new(2).vector::<T>(n), &mut x)?;
    Ok(x)
}

fn every_kernel<T: Scalar>() {
    let Some(dev) = device() else { return };
    let methods: [Box<dyn Method<T>>; 2] = [
        Box::new(Cg),
        Box::new(Gmres { cycle: Cycle { restart: 3, ..Cycle::default() }, ..Gmres::default() }),
    ];
    for method in methods {
        for n in [300, 700] {
            let expected = solve(&Device::new(Reference::new()), n, &*method).unwrap();
            for mode in crate::support::modes() {
                set_mode(&dev, mode);
                let got = unless_refused(mode, solve(&dev, n, &*method), method.name());
                got.iter().for_each(|got| assert_same(got, &expected, mode.name()));
            }
        }
    }
    let (vector, c) = (dev.vector::<T>(300).unwrap(), dev.cells::<T>(1).unwrap());
    let v = *vector;
    set_mode(&dev, Mode::Stream);
    dev.multi_axpy_dot(Pass::new("once").set(v, v + v).dot(c.at(0), v, v)).unwrap();
}

in_every_type!(every_kernel);
