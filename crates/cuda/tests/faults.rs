//! Failures are returned as errors, and the process continues.
mod support;

use lacuna_cuda::{Compile, Cuda, CudaOptions, Mode, devices};
use lacuna_engine::{Device, Error, Matrix, Pass, Reference};
use support::{device, random_matrix, set_mode};

#[test]
fn without_a_device_there_is_an_error_that_says_so() {
    match devices() {
        Ok(list) => list.iter().for_each(|d| println!("{d:?}")),
        Err(error) => {
            assert!(error.is_device_failure(), "{error}");
            println!("{error}");
            assert!(Cuda::new().is_err());
        }
    }
}

#[test]
fn a_device_that_is_not_there() {
    let options = CudaOptions::default().device("no such card".to_string());
    let error = Cuda::with(&options).err().unwrap();
    assert!(error.is_device_failure(), "{error}");
}

#[test]
fn out_of_memory_tells_how_much() {
    let Some(dev) = device() else { return };
    let error = dev.vector::<f64>(1 << 40).unwrap_err();
    assert!(
        matches!(error, Error::OutOfMemory { requested, available: Some(_), .. } if requested >= 8 << 40),
        "{error}"
    );
    assert!(dev.vector::<f64>(usize::MAX / 2).is_err());
    // The backend still works.
    let v = dev.vector::<f64>(100).unwrap();
    let c = dev.cells::<f64>(1).unwrap();
    dev.multi_axpy_dot(Pass::new("after").dot(c.at(0), *v, *v)).unwrap();
    assert_eq!(dev.read(&[c.at(0)]).unwrap(), [0.0]);
}

#[test]
fn stale_handles_and_wrong_lengths() {
    let Some(dev) = device() else { return };
    let (vector, cells) = (dev.vector::<f64>(10).unwrap(), dev.cells::<f64>(1).unwrap());
    let (v, c) = (*vector, cells.at(0));
    assert!(matches!(dev.upload(&[1.0; 9], v), Err(Error::Length { .. })));
    drop((vector, cells));
    assert!(matches!(dev.upload(&[1.0; 10], v), Err(Error::Stale { .. })));
    assert!(matches!(dev.read(&[c]), Err(Error::Stale { .. })));
    assert!(dev.multi_axpy_dot(Pass::new("stale").dot(c, v, v)).is_err());
    let foreign = Device::new(Reference::new()).vector::<f64>(10).unwrap();
    assert!(matches!(dev.upload(&[1.0; 10], *foreign), Err(Error::Stale { .. })));
}

/// What is freed can be allocated at once, by larger and by smaller vectors.
#[test]
fn freed_memory_is_reused_by_any_size() {
    let Some(dev) = device() else { return };
    let Some(all) = dev.info().memory else { return };
    let half = all as usize / 2 / size_of::<f64>();
    drop(dev.vector::<f64>(half).unwrap());
    let parts: Vec<_> = (0..4).map(|_| dev.vector::<f64>(half / 4).unwrap()).collect();
    drop(parts);
    drop(dev.vector::<f64>(half + half / 2).unwrap());
    drop(dev.vector::<f64>(half / 3).unwrap());
}

/// Cells between those of a program belong to others, and keep their values.
#[test]
fn cells_of_a_program_may_lie_apart() {
    let Some(dev) = device() else { return };
    for mode in support::modes() {
        set_mode(&dev, mode);
        let v = dev.vector::<f64>(1000).unwrap();
        dev.upload(&[1.0; 1000], *v).unwrap();
        let first = dev.cells::<f64>(1).unwrap();
        let between = dev.cells::<f64>(5000).unwrap();
        let last = dev.cells::<f64>(1).unwrap();
        dev.write(between.at(7), 7.0).unwrap();
        let pass = || Pass::new("apart").dot(first.at(0), *v, *v).eval(last.at(0), first.at(0) + 1.0);
        let Some(()) = support::unless_refused(mode, dev.multi_axpy_dot(pass()), "cells apart") else {
            continue;
        };
        // Others take the cells between, after the device has changed some around them.
        drop(between);
        let others = dev.cells::<f64>(4500).unwrap();
        dev.write(others.at(3), 3.0).unwrap();
        dev.multi_axpy_dot(pass()).unwrap();
        let read = [first.at(0), last.at(0), others.at(3), others.at(7)];
        assert_eq!(dev.read(&read).unwrap(), [1000.0, 1001.0, 3.0, 0.0], "mode {}", mode.name());
    }
}

#[test]
fn a_plan_outlives_its_matrix_as_an_error() {
    let Some(dev) = device() else { return };
    for mode in support::modes() {
        set_mode(&dev, mode);
        let a = std::sync::Arc::new(random_matrix::<f64>(50, 50, 3, 1));
        let owned = dev.matrix::<f64>(a).unwrap();
        let matrix: Matrix<f64> = *owned;
        let method = lacuna_solvers::Cg;
        let stop = lacuna_solvers::Stop::default();
        let mut solver = lacuna_solvers::Solver::new(&dev, &matrix, None, &method, stop).unwrap();
        solver.solve(&[1.0; 50], &mut [0.0; 50]).unwrap();
        drop(owned);
        let error = solver.solve(&[1.0; 50], &mut [0.0; 50]).unwrap_err();
        assert!(matches!(error, Error::Stale { .. }), "mode {}: {error}", mode.name());
    }
}

#[test]
fn a_mode_that_cannot_run_a_program_is_refused_at_planning() {
    let Some(_) = device() else { return };
    let (mode, compile) = (Some(Mode::Jit), Some(Compile::Never));
    let dev = Device::new(Cuda::with(&CudaOptions::default().mode(mode).compile(compile)).unwrap());
    let (v, c) = (dev.vector::<f64>(1_000).unwrap(), dev.cells::<f64>(1).unwrap());
    let error = dev.multi_axpy_dot(Pass::new("no compiler wanted").dot(c.at(0), *v, *v)).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}

#[test]
fn mode_names_round_trip() {
    for (name, mode) in Mode::ALL {
        assert_eq!((name.parse::<Mode>().unwrap(), mode.name()), (mode, name));
    }
    assert!("fast".parse::<Mode>().is_err());
}
