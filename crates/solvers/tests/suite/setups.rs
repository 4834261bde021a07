//! Set-ups that are watched, cancelled and limited.
use crate::generated;
use lacuna_engine::{Device, Error, Matrix, Owned, Pass, Reference, Result};
use lacuna_formats::Csr;
use lacuna_solvers::{
    PRECONDITIONERS, Parts, Placed, Preconditioner, Setup, SetupProgress, SetupWatch, preconditioner,
};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Every preconditioner, and variants whose set-ups differ.
fn names() -> impl Iterator<Item = &'static str> {
    let listed = PRECONDITIONERS.iter().map(|info| info.name).filter(|name| *name != "none");
    let small = ["amg:coarsest=60", "amg:coarsest=60,aggregate=mis2", "multigrid:coarsest=60"];
    listed.chain(small).chain(["fsai:steps=2", "ilu0:solve=colours", "jacobi:polynomial=2"])
}

fn named(name: &str) -> Box<dyn Preconditioner<f64>> {
    preconditioner(name).unwrap().unwrap()
}

/// A matrix that every preconditioner takes, and other values on its pattern.
fn matrices() -> [Csr<f64>; 2] {
    let a = generated::<f64>("gen:poisson2d:40x40");
    let doubled = a.scaled(2.0).unwrap();
    [a, doubled]
}

fn on_device(a: &Csr<f64>) -> (Device, Owned<Matrix<f64>>) {
    let dev = Device::new(Reference::new());
    let on = dev.matrix(Arc::new(a.clone())).unwrap();
    (dev, on)
}

/// `M r` for some `r`.
fn applied(dev: &Device, m: &Placed<f64>, n: usize) -> Vec<f64> {
    let [r, z] = [0; 2].map(|_| dev.vector::<f64>(n).unwrap());
    dev.upload(&(0..n).map(|i| (i * 5 % 13) as f64 - 6.0).collect::<Vec<_>>(), *r).unwrap();
    dev.spmv_dot(m, *r, *z, Pass::nothing()).unwrap();
    let mut result = vec![0.0; n];
    dev.download(*z, &mut result).unwrap();
    result
}

/// The result of a set-up that is cancelled when it calls its watch for the given time, and the number of calls.
fn cancelled_at<R>(last: usize, set_up: impl FnOnce(SetupWatch<'_>) -> Result<R>) -> (Result<R>, usize) {
    let mut calls = 0;
    let result = set_up(&mut |_| {
        calls += 1;
        if calls == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (result, calls)
}

#[test]
fn a_set_up_that_was_cancelled_anywhere_can_be_repeated() {
    let [a, _] = matrices();
    let (dev, on) = on_device(&a);
    for name in names() {
        let set_up = |kind: &mut dyn Preconditioner<f64>, last: usize| {
            cancelled_at(last, |watch| kind.set_up(&a, &mut Setup::new().watched(watch)))
        };
        let want = applied(&dev, &Placed::new(&dev, named(name), &a, *on, Setup::new()).unwrap(), a.rows());
        let calls = set_up(&mut *named(name), 0).1;
        for last in 1..=calls {
            let mut kind = named(name);
            let (result, made) = set_up(&mut *kind, last);
            assert!(matches!(result, Err(Error::Cancelled { .. })), "{name} {last} {:?}", result.err());
            assert_eq!(made, last, "{name} goes on");
            let m = Placed::new(&dev, kind, &a, *on, Setup::new()).unwrap();
            assert!(applied(&dev, &m, a.rows()) == want, "{name} {last}");
        }
    }
}

#[test]
fn new_values_that_were_cancelled_anywhere_leave_the_former_ones() {
    let [a, other] = matrices();
    let (dev, on) = on_device(&a);
    for name in names() {
        let placed = || Placed::new(&dev, named(name), &a, *on, Setup::new()).unwrap();
        let update = |m: &mut Placed<f64>, last: usize| {
            cancelled_at(last, |watch| m.update(&other, Setup::new().watched(watch)))
        };
        let mut renewed = placed();
        let before = applied(&dev, &renewed, a.rows());
        let (result, calls) = update(&mut renewed, 0);
        result.unwrap();
        let after = applied(&dev, &renewed, a.rows());
        assert!(calls > 0 && before != after, "{name} {calls}");
        for last in 1..=calls {
            let mut m = placed();
            let (result, made) = update(&mut m, last);
            if made < last {
                // Some ask by the clock, and this time less often.
                result.unwrap();
                continue;
            }
            assert!(matches!(result, Err(Error::Cancelled { .. })), "{name} {last} {result:?}");
            assert!(applied(&dev, &m, a.rows()) == before, "{name} {last}");
            m.update(&other, Setup::new()).unwrap();
            assert!(applied(&dev, &m, a.rows()) == after, "{name} {last}");
        }
    }
}

/// What the watch is told in one set-up on one thread.
fn told(name: &str, a: &Csr<f64>) -> Vec<SetupProgress> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        let mut told = Vec::new();
        let mut watch = |progress| {
            told.push(progress);
            ControlFlow::Continue(())
        };
        let _ = named(name).set_up(a, &mut Setup::new().watched(&mut watch)).unwrap();
        told
    })
}

#[test]
fn long_set_ups_ask_often_whether_to_go_on() {
    let a = generated::<f64>("gen:poisson2d:220x220");
    // Short ones ask once.
    for (name, least) in [("spai", 3), ("fsai", 3), ("block-jacobi:size=2", 2), ("ilut", 90), ("direct", 3)] {
        let calls = told(name, &a).len();
        assert!(calls >= least, "{name}: {calls}, expected {least}");
    }
    for name in ["amg", "multigrid"] {
        let told = told(name, &a);
        let levels: Vec<usize> = told.iter().filter(|p| p.what == "levels").map(|p| p.done).collect();
        assert!(levels.is_sorted() && levels.last().is_some_and(|last| *last >= 2), "{name}: {told:?}");
    }
}

#[test]
fn what_would_take_more_memory_than_allowed_is_refused() {
    let [a, _] = matrices();
    let (dev, on) = on_device(&a);
    for name in ["spai", "fsai", "ilut", "block-jacobi", "amg", "direct"] {
        let limited = |bytes: u64| {
            let placed = Placed::new(&dev, named(name), &a, *on, Setup::new().with_memory(bytes));
            placed.map(drop)
        };
        match limited(1000) {
            Err(Error::Unsupported { message, .. }) => {
                assert!(message.contains("the limit is 1000"), "{message}");
            }
            other => panic!("{name}: {other:?}"),
        }
        limited(1 << 30).unwrap();
    }
}

#[test]
fn a_watch_that_panics_is_an_error() {
    let [a, _] = matrices();
    for name in ["amg", "fsai", "ilut"] {
        let mut kind = named(name);
        let mut calls = 0;
        let mut panics = |_| {
            calls += 1;
            assert!(calls < 2, "no more");
            ControlFlow::Continue(())
        };
        let result = kind.set_up(&a, &mut Setup::new().watched(&mut panics));
        assert!(matches!(result, Err(Error::Function { .. })), "{name}: {:?}", result.err());
        let parts: Parts<f64> = kind.set_up(&a, &mut Setup::new()).unwrap();
        assert!(parts.bytes() > 0, "{name}");
    }
}
