//! No safe code reaches undefined behaviour: run under AddressSanitizer by `.ci/full`.
#![forbid(unsafe_code)]
use crate::calls::{self, works};
use lacuna_cpu::{Cpu, CpuOptions};
use lacuna_engine::{
    Argument, Backend, Device, Error, Format, History, Owned, Pass, Program, Progress, Recorder, Result, Run,
    Vector,
};
use lacuna_formats::Csr;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn cpu(threads: usize) -> Cpu {
    let (threads, parallel_from) = (Some(threads), Some(0));
    Cpu::with(CpuOptions::default().threads(threads).parallel_from(parallel_from).gather(true)).unwrap()
}

/// Random sequences of calls; `LACUNA_FUZZ_RUNS` sets another number.
#[test]
fn random_calls_end_in_errors_and_numbers() {
    let runs = std::env::var("LACUNA_FUZZ_RUNS").map_or(200, |runs| runs.parse().expect("a number of runs"));
    for seed in 1..=runs {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed);
        let mut byte = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        let data: Vec<u8> = (0..1200).map(|_| byte()).collect();
        calls::calls(&data);
    }
}

/// A plan of a device with one thread has room for one.
#[test]
fn a_plan_of_a_device_with_fewer_threads_is_refused() {
    let (small, large) = (Device::new(cpu(1)), Device::new(cpu(4)));
    let program = Recorder::<f64>::new(&small, "nothing").finish().unwrap();
    let mut plan = small.plan(program).unwrap();
    let run = || Run { limit: 1, history: Box::leak(Box::default()), watch: None };
    let stale = |result: Result<_>| match result.unwrap_err() {
        Error::Stale { what: "plan", .. } => {}
        error => panic!("{error}"),
    };
    stale(large.execute(&mut plan, run()));
    // Nor does the backend itself run it, in the place of the other or on its own.
    large.with(|large: &mut Cpu| stale(large.execute(plan.program(), plan.id(), run()))).unwrap();
    small.with(|small: &mut Cpu| *small = cpu(4)).unwrap();
    stale(plan.execute(run()));
    works(&small);
}

/// A plan runs the program that it was made for.
#[test]
fn a_plan_of_another_program_is_refused() {
    let dev = Device::new(cpu(2));
    let (v, c) = (dev.basis::<f64>(3000, 2).unwrap(), dev.cells::<f64>(1).unwrap());
    let record = |pass| {
        let mut k = Recorder::new(&dev, "one");
        k.multi_axpy_dot(pass);
        k.finish().unwrap()
    };
    let plan = dev.plan(record(Pass::new("none").eval(c.at(0), 1.0))).unwrap();
    let other = record(Pass::new("two").set(v.column(0), v.column(1)).dot(c.at(0), v.column(0), v.column(1)));
    let run = Run { limit: 1, history: &mut History::off(), watch: None };
    let error = dev.with(|cpu: &mut Cpu| cpu.execute(&other, plan.id(), run)).unwrap().unwrap_err();
    assert!(matches!(error, Error::Stale { what: "plan", .. }), "{error}");
}

/// Counts for ever.
fn endless(dev: &Device) -> (Program, Owned<Vector<f64>>) {
    let v = dev.vector::<f64>(3000).unwrap();
    let mut k = Recorder::new(dev, "endless");
    k.each(|k| {
        let [c] = k.cells();
        k.multi_axpy_dot(Pass::new("count").set(*v, *v + *v).dot(c, *v, *v).count(c));
    });
    (k.finish().unwrap(), v)
}

/// A panic of `watch` ends the run on all threads, then continues, also from the backend itself.
#[test]
fn a_watch_that_panics_leaves_a_device_that_works() {
    for threads in [1, 3] {
        let dev = Device::new(cpu(threads));
        let (program, v) = endless(&dev);
        let mut plan = dev.plan(program.clone()).unwrap();
        for direct in [false, true] {
            let mut watch = |_: Progress| -> ControlFlow<()> {
                assert!(matches!(dev.clear(*v), Err(Error::Busy { .. })));
                panic!("the caller's own")
            };
            let run = Run { limit: u64::MAX - 1, history: &mut History::off(), watch: Some(&mut watch) };
            let id = plan.id();
            let panic = catch_unwind(AssertUnwindSafe(|| match direct {
                false => plan.execute(run),
                true => dev.with(|cpu: &mut Cpu| cpu.execute(&program, id, run)).unwrap(),
            }));
            assert_eq!(*panic.unwrap_err().downcast::<&str>().unwrap(), "the caller's own");
            works(&dev);
        }
    }
}

/// What is dropped after a panic is freed at once.
#[test]
fn memory_is_freed_after_a_panic() {
    let dev = Device::new(cpu(1));
    let unwound = catch_unwind(AssertUnwindSafe(|| dev.with(|_: &mut Cpu| panic!("the caller's own"))));
    unwound.map(drop).unwrap_err();
    let a = Arc::new(Csr::<f64>::identity(5).unwrap());
    drop(dev.matrix(a.clone()).unwrap());
    assert_eq!(Arc::strong_count(&a), 1);
    works(&dev);
}

/// A format that calls the device when it is dropped.
struct Last(Device);
impl Drop for Last {
    fn drop(&mut self) {
        drop(self.0.vector::<f64>(9));
    }
}
impl Format<f64> for Last {
    fn shape(&self) -> (usize, usize) {
        (1, 1)
    }
    fn nnz(&self) -> usize {
        0
    }
    fn kernel(&self) -> &'static str {
        "last"
    }
    fn arguments(&self) -> Vec<Argument<'_, f64>> {
        vec![]
    }
    fn row(&self, _: usize, _: &[f64]) -> f64 {
        0.0
    }
}

#[test]
fn what_the_backend_drops_may_call_it() {
    let dev = Device::new(cpu(1));
    let a = dev.matrix(Arc::new(Last(dev.clone())) as Arc<dyn Format<f64>>).unwrap();
    drop(a);
    works(&dev);
}

/// A format that grows once a row was asked for: `x` is as long as it was when the matrix was stored.
struct Grows(AtomicUsize);
impl Format<f64> for Grows {
    fn shape(&self) -> (usize, usize) {
        if self.0.load(Ordering::Relaxed) == 0 { (3000, 3000) } else { (3000, 1 << 22) }
    }
    fn nnz(&self) -> usize {
        0
    }
    fn kernel(&self) -> &'static str {
        "grows"
    }
    fn arguments(&self) -> Vec<Argument<'_, f64>> {
        vec![]
    }
    fn row(&self, _: usize, x: &[f64]) -> f64 {
        self.0.store(1, Ordering::Relaxed);
        x.len() as f64
    }
}

#[test]
fn a_format_that_grows_sees_the_vector_that_is_there() {
    for threads in [1, 2, 4] {
        let dev = Device::new(cpu(threads)).scope();
        let m = dev.matrix(Arc::new(Grows(AtomicUsize::new(0))) as Arc<dyn Format<f64>>).unwrap();
        let [x, y] = dev.vectors::<f64, 2>(3000).unwrap();
        for _ in 0..2 {
            dev.spmv_dot(&m, x, y, Pass::nothing()).unwrap();
        }
        let mut to = vec![0.0; 3000];
        dev.download(y, &mut to).unwrap();
        assert_eq!(to, vec![3000.0; 3000]);
        // Nor may a matrix with the grown shape take its place.
        let large = Csr::<f64>::new(3000, 1 << 22, vec![0; 3001], vec![], vec![]).unwrap();
        dev.set_matrix(m, Arc::new(large)).unwrap_err();
    }
}

thread_local! {
    static KEPT: RefCell<Option<Owned<Vector<f64>>>> = const { RefCell::new(None) };
}

/// An owner may live as long as its thread.
#[test]
fn owners_are_dropped_at_the_end_of_a_thread() {
    let dev = Device::new(cpu(1));
    let before = dev.in_use();
    let kept = dev.clone();
    // The owner's place is made before any that the device needs.
    std::thread::spawn(move || KEPT.with_borrow_mut(|place| *place = Some(kept.vector(9).unwrap())))
        .join()
        .unwrap();
    works(&dev);
    assert_eq!(dev.in_use(), before);
}
