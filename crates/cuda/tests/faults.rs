//! Failures are returned as errors, and the process continues.
mod support;

use lacuna_cuda::{Compile, Cuda, CudaOptions, Mode, devices};
use lacuna_engine::{Backend, Error, Pass, Reference};
use support::{device, random_matrix};

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
    let options = CudaOptions { device: Some("no such card".into()), ..CudaOptions::default() };
    let error = Cuda::with(&options).err().unwrap();
    assert!(error.is_device_failure(), "{error}");
}

#[test]
fn out_of_memory_tells_how_much() {
    let Some(mut dev) = device() else { return };
    let error = Backend::vector::<f64>(&mut dev, 1 << 40).unwrap_err();
    assert!(
        matches!(error, Error::OutOfMemory { requested, available: Some(_), .. } if requested >= 8 << 40),
        "{error}"
    );
    assert!(Backend::vector::<f64>(&mut dev, usize::MAX / 2).is_err());
    // The backend still works.
    let v = Backend::vector::<f64>(&mut dev, 100).unwrap();
    let c = Backend::cells::<f64>(&mut dev, 1).unwrap().at(0);
    dev.multi_axpy_dot(Pass::new("after").dot(c, v, v)).unwrap();
    assert_eq!(dev.read(&[c]).unwrap(), [0.0]);
}

#[test]
fn stale_handles_and_wrong_lengths() {
    let Some(mut dev) = device() else { return };
    let mark = dev.mark();
    let v = Backend::vector::<f64>(&mut dev, 10).unwrap();
    assert!(matches!(dev.upload(&[1.0; 9], v), Err(Error::Length { .. })));
    let c = Backend::cells::<f64>(&mut dev, 1).unwrap().at(0);
    dev.release(mark);
    assert!(matches!(dev.upload(&[1.0; 10], v), Err(Error::Stale { .. })));
    assert!(matches!(dev.read(&[c]), Err(Error::Stale { .. })));
    assert!(dev.multi_axpy_dot(Pass::new("stale").dot(c, v, v)).is_err());
    let foreign = Backend::vector::<f64>(&mut Reference::new(), 10).unwrap();
    assert!(matches!(dev.upload(&[1.0; 10], foreign), Err(Error::Stale { .. })));
}

#[test]
fn a_plan_outlives_its_vectors_as_an_error() {
    let Some(mut dev) = device() else { return };
    for mode in support::modes() {
        dev.set_mode(mode);
        let mark = dev.mark();
        let a = std::sync::Arc::new(random_matrix::<f64>(50, 50, 3, 1));
        let matrix = Backend::matrix::<f64>(&mut dev, a).unwrap();
        let method = lacuna_solvers::Cg;
        let stop = lacuna_solvers::Stop::default();
        let mut solver = lacuna_solvers::Solver::new(&mut dev, &matrix, None, &method, stop).unwrap();
        dev.release(mark);
        assert!(solver.solve(&mut dev, &[1.0; 50], &mut [0.0; 50]).is_err(), "mode {}", mode.name());
    }
}

#[test]
fn a_mode_that_cannot_run_a_program_is_refused_at_planning() {
    let Some(_) = device() else { return };
    let (mode, compile) = (Some(Mode::Jit), Some(Compile::Never));
    let mut dev = Cuda::with(&CudaOptions { mode, compile, ..CudaOptions::default() }).unwrap();
    let v = Backend::vector::<f64>(&mut dev, 1_000).unwrap();
    let c = Backend::cells::<f64>(&mut dev, 1).unwrap().at(0);
    let error = dev.multi_axpy_dot(Pass::new("no compiler wanted").dot(c, v, v)).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}

#[test]
fn mode_names_round_trip() {
    for (name, mode) in Mode::ALL {
        assert_eq!((name.parse::<Mode>().unwrap(), mode.name()), (mode, name));
    }
    assert!("fast".parse::<Mode>().is_err());
}
