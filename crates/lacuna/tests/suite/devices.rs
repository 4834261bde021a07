//! Devices by name and from outside, several systems on one device, and calls that a device must refuse.
use super::own_device;
use lacuna::backend::{Backend, Reference};
use lacuna::prelude::*;
use lacuna::{DeviceInfo, DeviceOptions, Pass, Provider, Watch, backends, open, open_with, register};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

fn grid() -> Csr<f64> {
    Spec::parse("gen:convection:20x15:5").unwrap().build().unwrap()
}

/// The error of a preparation on a device of this name.
fn refused(name: &str) -> Error {
    LinearSystem::new(grid()).on(name).prepare().err().unwrap()
}

#[test]
fn an_unknown_name_is_refused_with_those_that_there_are() {
    // Listed before: another test adds one.
    let built_in: Vec<_> = backends().into_iter().filter(|backend| backend.built_in).collect();
    for name in ["abacus", "abacus:1"] {
        let error = refused(name);
        assert!(matches!(error, Error::Argument { .. }), "{error:?}");
        let message = error.to_string();
        assert!(message.starts_with("backend: `abacus` is unknown; this build has "), "{message}");
        assert!(built_in.iter().all(|backend| message.contains(backend.name)), "{message}");
    }
    let error = refused("cpu:abacus");
    assert!(matches!(&error, Error::Argument { what, .. } if what == "device"), "{error:?}");
}

#[test]
fn every_backend_opens_or_says_what_it_lacks() {
    for name in ["cuda", "opencl", "cpu"] {
        let backend = backends().into_iter().find(|backend| backend.name == name).unwrap();
        match LinearSystem::new(grid()).on(name).prepare() {
            Ok(system) => assert_eq!((system.device().info().backend, backend.built_in), (name, true)),
            Err(error) if backend.built_in => assert!(error.is_device_failure(), "{error}"),
            Err(error) => {
                assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
                let feature = format!("turn on the feature `{name}` of the crate `lacuna`");
                assert!(error.to_string().contains(&feature), "{error}");
            }
        }
    }
}

#[test]
fn a_name_is_one_device_as_long_as_somebody_holds_it() {
    let prepared = LinearSystem::new(grid()).prepare().unwrap();
    assert_eq!(*prepared.device(), default_device().unwrap());
    let options = || DeviceOptions::default().threads(3);
    let first = open_with("cpu", options()).unwrap();
    assert_eq!((first.info().units, &first), (3, &open_with("cpu", options()).unwrap()));
    assert_ne!(first, open_with("cpu", options().threads(2)).unwrap());
    assert_ne!(first, own_device());
    let on_first = LinearSystem::new(grid()).on(first.clone()).prepare().unwrap();
    let closed = first.downgrade();
    drop(first);
    assert_eq!(*on_first.device(), open_with("cpu", options()).unwrap());
    drop(on_first);
    assert!(closed.upgrade().is_none(), "nobody holds it");
}

/// A backend that this crate does not know.
struct Outside(&'static str);

impl Provider for Outside {
    fn name(&self) -> &'static str {
        self.0
    }
    fn about(&self) -> &'static str {
        "the reference"
    }
    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(vec![Reference::new().info()])
    }
    fn open(&self, options: &DeviceOptions) -> Result<Box<dyn Backend>> {
        match options.device.as_deref() {
            None | Some("0") => Ok(Box::new(Reference::new())),
            Some(other) => {
                let message = format!("expected 0, got `{other}`");
                Err(Error::Argument { what: "device".into(), message })
            }
        }
    }
}

#[test]
fn a_backend_from_outside_is_opened_by_its_name() {
    assert!(matches!(refused("outside"), Error::Argument { .. }));
    register(Outside("outside")).unwrap();
    let listed = backends().into_iter().find(|backend| backend.name == "outside").unwrap();
    assert_eq!((listed.about, listed.built_in), ("the reference", true));
    assert_eq!(lacuna::devices("outside").unwrap().len(), 1);
    let b = Array1::ones(300);
    let there = LinearSystem::new(grid()).prepare().unwrap().solve(&b).unwrap().0;
    for name in ["outside", "outside:0"] {
        let mut prepared = LinearSystem::new(grid()).format("csr").on(name).prepare().unwrap();
        assert_eq!(*prepared.device(), open(name).unwrap());
        assert!(prepared.device().with(|_: &mut Reference| ()).is_ok());
        let (x, outcome) = prepared.solve(&b).unwrap();
        assert!(outcome.converged() && (&x - &there).iter().all(|d| d.abs() < 1e-4), "{outcome:?}");
    }
    assert_eq!(refused("outside:7").to_string(), "device: expected 0, got `7`");
    assert!(refused("abacus").to_string().contains("outside"));
    for (name, why) in [
        ("outside", "is taken"),
        ("cpu", "is taken"),
        ("cuda", "is taken"),
        ("out:side", "without a colon"),
        ("", "is no name"),
    ] {
        let error = register(Outside(name)).unwrap_err();
        assert!(matches!(error, Error::Argument { .. }) && error.to_string().contains(why), "{error}");
    }
}

#[test]
fn two_systems_on_one_device_solve_from_two_threads_at_once() {
    let dev = own_device();
    let made = |method: &str| LinearSystem::new(grid()).method(method).on(&dev).prepare().unwrap();
    let b = Array1::from_iter((0..300).map(|i| (i % 7) as f64 - 2.0));
    let solved_alone = |method: &str| made(method).solve(&b).unwrap().0;
    thread::scope(|scope| {
        for method in ["bicgstab", "gmres"] {
            let (mut prepared, expected, b) = (made(method), solved_alone(method), &b);
            scope.spawn(move || {
                for turn in 0..50 {
                    let (x, outcome) = prepared.solve(b).unwrap();
                    assert!(outcome.converged() && x == expected, "{method}, {turn}: {outcome:?}");
                }
            });
        }
    });
    assert_eq!(dev.in_use(), own_device().in_use(), "nothing");
}

#[test]
fn what_another_thread_drops_is_freed() {
    let dev = own_device();
    let b = Array1::ones(300);
    let mut kept = LinearSystem::new(grid()).on(&dev).prepare().unwrap();
    let (expected, before) = (kept.solve(&b).unwrap().0, dev.in_use());
    let (give, take) = mpsc::channel::<Prepared<f64>>();
    let dropping = thread::spawn(move || take.into_iter().map(drop).count());
    for _ in 0..40 {
        give.send(LinearSystem::new(grid()).on(&dev).prepare().unwrap()).unwrap();
        // The device is in use while others are dropped.
        assert_eq!(kept.solve(&b).unwrap().0, expected);
    }
    drop(give);
    assert_eq!(dropping.join().unwrap(), 40);
    assert_eq!(dev.in_use(), before);
    assert_eq!(kept.solve(&b).unwrap().0, expected);
    let thread = thread::spawn(move || drop(kept));
    thread.join().unwrap();
    assert_eq!(dev.in_use(), own_device().in_use(), "nothing");
}

/// The devices on which a function of the caller's runs on the thread of the caller.
fn callers() -> [Device; 2] {
    [own_device(), Device::new(Reference::new())]
}

/// What a function that a device is running is told when it calls that device, and what it may do.
fn calls_from_within(dev: &Device) -> Vec<Error> {
    let vector = dev.vector::<f64>(3).map(drop);
    let prepared = LinearSystem::new(grid()).on(dev).prepare().map(drop);
    // Another device is free, and so is this one's description.
    let elsewhere = LinearSystem::new(grid()).on(own_device()).prepare().unwrap().solve(&Array1::ones(300));
    assert!(elsewhere.unwrap().1.converged());
    assert!(!dev.info().name.is_empty());
    [vector, prepared].into_iter().map(Result::unwrap_err).collect()
}

fn all_busy(errors: &[Error], name: &str) {
    assert!(!errors.is_empty());
    for error in errors {
        assert!(matches!(error, Error::Busy { .. }), "{error:?}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn a_host_function_that_calls_its_own_device_is_refused() {
    for dev in callers() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let dropped = Mutex::new(Some(dev.vector::<f64>(5).unwrap()));
        let (theirs, inside) = (told.clone(), dev.clone());
        let operator = HostOperator::new(4, move |x: &[f64], y: &mut [f64]| {
            theirs.lock().unwrap().extend(calls_from_within(&inside));
            // Dropping is no call.
            drop(dropped.lock().unwrap().take());
            y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
        });
        let (x, y) = (to_device(&dev, &[1.0, 2.0, 3.0, 4.0]).unwrap(), dev.vector(4).unwrap());
        dev.spmv_dot(&operator, *x, *y, Pass::nothing()).unwrap();
        all_busy(&told.lock().unwrap(), &dev.info().name);
        assert_eq!(to_host(&dev, *y).unwrap().to_vec(), [2.0, 4.0, 6.0, 8.0]);
        assert_eq!(dev.in_use().vectors, 2);
        // Afterwards the device is free again.
        assert!(LinearSystem::new(grid()).on(&dev).prepare().is_ok());
    }
}

#[test]
fn a_watch_that_calls_its_own_device_is_refused() {
    // Slow enough for the CPU to tell.
    let far = Arc::new(Spec::parse("gen:poisson1d:20000").unwrap().build::<f64>().unwrap());
    for dev in callers() {
        let system = LinearSystem::new(far.clone()).method("cg").preconditioner("none").format("csr");
        let mut prepared = system.on(&dev).prepare().unwrap();
        let (mut x, mut told) = (vec![0.0; 20_000], Vec::new());
        let mut watch = |_: Watch| {
            told.extend(calls_from_within(&dev));
            ControlFlow::Break(())
        };
        let outcome = prepared.solve_watched(&vec![1.0; 20_000], &mut x, Some(&mut watch)).unwrap();
        assert_eq!(outcome.reason, Reason::Cancelled);
        all_busy(&told, &dev.info().name);
        assert!(LinearSystem::new(grid()).on(&dev).prepare().is_ok());
    }
}
