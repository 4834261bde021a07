//! Every kernel once on a small case, for memory checkers, which are too slow for larger cases.
use crate::support::{Random, assert_same, device, random_matrix, unless_refused};
use lacuna_cuda::Mode;
use lacuna_engine::{Backend, Matrix, Pass, Reference, Result, Scalar};
use lacuna_solvers::{Cg, Cycle, Gmres, Method, Solver, Stop};
use std::sync::Arc;

fn solve<T: Scalar, B: Backend>(dev: &mut B, n: usize, method: &dyn Method<T>) -> Result<Vec<T>> {
    let a = Arc::new(random_matrix::<T>(n, n, 20, 1));
    let matrix: Matrix<T> = dev.matrix(a)?;
    let mut solver = Solver::new(dev, &matrix, None, method, Stop { max_iters: 5, ..Stop::default() })?;
    let mut x = vec![T::zero(); n];
    solver.solve(dev, &Random::new(2).vector::<T>(n), &mut x)?;
    Ok(x)
}

fn every_kernel<T: Scalar>() {
    let Some(mut dev) = device() else { return };
    let methods: [Box<dyn Method<T>>; 2] = [
        Box::new(Cg),
        Box::new(Gmres { cycle: Cycle { restart: 3, ..Cycle::default() }, ..Gmres::default() }),
    ];
    for method in methods {
        for n in [300, 700] {
            let expected = solve(&mut Reference::new(), n, &*method).unwrap();
            for mode in crate::support::modes() {
                dev.set_mode(mode);
                let mark = dev.mark();
                let got = unless_refused(mode, solve(&mut dev, n, &*method), method.name());
                got.iter().for_each(|got| assert_same(got, &expected, mode.name()));
                dev.release(mark);
            }
        }
    }
    let v = Backend::vector::<T>(&mut dev, 300).unwrap();
    let c = Backend::cells::<T>(&mut dev, 1).unwrap().at(0);
    dev.set_mode(Mode::Stream);
    dev.multi_axpy_dot(Pass::new("once").set(v, v + v).dot(c, v, v)).unwrap();
}

in_every_type!(every_kernel);
