//! Fused loops written by hand, one for each pass that methods use: the reference for recorded passes.
use lacuna::backend::pages;
use lacuna::{DeviceInfo, Error, NumberType, Result, Scalar};
use lacuna_measure::pass::{PASSES, TINY};
use lacuna_measure::record::BY_HAND;
use lacuna_measure::{BUDGET, Measured, Samples, Subject, Target, Task, four_digits};
use pulp::{Arch, NullaryFnOnce};
use std::hint::black_box;
use std::time::Instant;

/// Elements processed at a time.
const BLOCK: usize = 32;
/// From this many elements on, the threads share a loop.
const SHARED_FROM: usize = 100_000;

type Block<T> = [T; BLOCK];

/// The vectors of the passes, with the names used in the listings of the methods.
struct Vectors<T> {
    x: Vec<T>,
    r: Vec<T>,
    p: Vec<T>,
    q: Vec<T>,
    s: Vec<T>,
    t: Vec<T>,
    r0: Vec<T>,
}

impl<T: Scalar> Vectors<T> {
    /// Vectors of ones, in large pages if the system has them, like those of the library.
    fn new(n: usize) -> Result<Self> {
        let n = n.next_multiple_of(BLOCK);
        let ones = || -> Result<_> {
            let mut array = pages::zeroed("a vector", n)?;
            array.fill(T::one());
            Ok(array)
        };
        let (x, r, p, q, s, t, r0) = (ones()?, ones()?, ones()?, ones()?, ones()?, ones()?, ones()?);
        Ok(Vectors { x, r, p, q, s, t, r0 })
    }

    /// Runs the loop with the given name once, with every coefficient equal to `c`, and returns the sum of
    /// its dot products; `None` if there is no such loop.
    fn run(&mut self, name: &str, c: T) -> Option<T> {
        let arch = Arch::new();
        Some(match name {
            "dot" => arch.dispatch(Dot(self)),
            "dots" => arch.dispatch(Dots(self)),
            "axpy" => arch.dispatch(Axpy(self, c)),
            "bicgstab-half" => arch.dispatch(Half(self, c)),
            "cg-descend" => arch.dispatch(CgDescend(self, c)),
            "cg-step" => arch.dispatch(CgStep(self, c)),
            "pcg-step" => arch.dispatch(PcgStep(self, c)),
            "bicgstab-step" => arch.dispatch(BiCgStabStep(self, c)),
            _ => return None,
        })
    }
}
/// A loop over blocks, compiled for the available instruction set.
macro_rules! fused {
    ($name:ident($v:ident $(, $c:ident)?), |$i:ident, $sum:ident| $body:block) => {
        struct $name<'a, T>(&'a mut Vectors<T> $(, fused!(@type $c T))?);
        impl<T: Scalar> NullaryFnOnce for $name<'_, T> {
            type Output = T;
            #[inline(always)]
            fn call(self) -> T {
                let $name($v $(, $c)?) = self;
                #[allow(unused_mut)]
                let mut $sum = [T::zero(); BLOCK];
                for $i in (0..$v.x.len() / BLOCK).map(|block| block * BLOCK) {
                    $body
                }
                $sum.into_iter().fold(T::zero(), |a, b| a + b)
            }
        }
    };
    (@type $c:ident $T:ident) => { $T };
}

fused!(Dot(v), |i, sum| {
    dot(&mut sum, &load(&v.r, i), &load(&v.p, i));
});
fused!(Dots(v), |i, sum| {
    let (t, s, r0) = (load(&v.t, i), load(&v.s, i), load(&v.r0, i));
    dot(&mut sum, &t, &s);
    dot(&mut sum, &t, &t);
    dot(&mut sum, &r0, &t);
});
fused!(Axpy(v, c), |i, sum| {
    let x = fma(c, &load(&v.p, i), &load(&v.x, i));
    store(&mut v.x, i, x);
});
fused!(Half(v, c), |i, sum| {
    store(&mut v.s, i, fma(-c, &load(&v.q, i), &load(&v.r, i)));
});
fused!(CgDescend(v, c), |i, sum| {
    let (x, r) = (fma(c, &load(&v.p, i), &load(&v.x, i)), fma(-c, &load(&v.q, i), &load(&v.r, i)));
    store(&mut v.x, i, x);
    store(&mut v.r, i, r);
    dot(&mut sum, &r, &r);
});
fused!(CgStep(v, c), |i, sum| {
    let p = load(&v.p, i);
    let (x, r) = (fma(c, &p, &load(&v.x, i)), fma(-c, &load(&v.q, i), &load(&v.r, i)));
    store(&mut v.x, i, x);
    store(&mut v.r, i, r);
    store(&mut v.p, i, fma(c, &p, &r));
    dot(&mut sum, &r, &r);
});
fused!(PcgStep(v, c), |i, sum| {
    let p = load(&v.p, i);
    let (x, r) = (fma(c, &p, &load(&v.x, i)), fma(-c, &load(&v.q, i), &load(&v.r, i)));
    let z = fma(-c, &load(&v.t, i), &load(&v.s, i));
    store(&mut v.x, i, x);
    store(&mut v.r, i, r);
    store(&mut v.s, i, z);
    store(&mut v.p, i, fma(c, &p, &z));
    dot(&mut sum, &r, &z);
    dot(&mut sum, &r, &r);
});
fused!(BiCgStabStep(v, c), |i, sum| {
    let (p, s) = (load(&v.p, i), load(&v.s, i));
    let (x, r) = (fma(c, &s, &fma(c, &p, &load(&v.x, i))), fma(-c, &load(&v.t, i), &s));
    store(&mut v.x, i, x);
    store(&mut v.r, i, r);
    store(&mut v.p, i, fma(c, &fma(-c, &load(&v.q, i), &p), &r));
    dot(&mut sum, &load(&v.r0, i), &r);
    dot(&mut sum, &r, &r);
});

#[inline(always)]
fn load<T: Scalar>(v: &[T], i: usize) -> Block<T> {
    let mut block = [T::zero(); BLOCK];
    block.copy_from_slice(&v[i..i + BLOCK]);
    block
}

#[inline(always)]
fn store<T: Scalar>(v: &mut [T], i: usize, block: Block<T>) {
    v[i..i + BLOCK].copy_from_slice(&block);
}

/// `c a + b`
#[inline(always)]
fn fma<T: Scalar>(c: T, a: &Block<T>, b: &Block<T>) -> Block<T> {
    let mut out = *b;
    for l in 0..BLOCK {
        out[l] = c.fma(a[l], out[l]);
    }
    out
}

/// `sum + a b`
#[inline(always)]
fn dot<T: Scalar>(sum: &mut Block<T>, a: &Block<T>, b: &Block<T>) {
    for l in 0..BLOCK {
        sum[l] = a[l].fma(b[l], sum[l]);
    }
}

/// The loops as a target to measure, next to the backends.
pub(crate) struct ByHand {
    device: DeviceInfo,
    threads: usize,
    copy: f64,
    cases: Vec<Box<dyn Loop>>,
}

/// A loop over vectors of one type and length.
trait Loop {
    fn round(&mut self) -> Result<()>;
    fn measured(&self) -> Option<Measured>;
}

struct Loops<T> {
    name: String,
    bytes: u64,
    shares: Vec<Vectors<T>>,
    repeats: usize,
    first_setup: f64,
    once: Samples,
}

impl ByHand {
    /// Loops on `threads` threads, for a CPU whose copy bandwidth is `copy` bytes per second.
    pub(crate) fn new(threads: usize, copy: f64) -> Self {
        let device = DeviceInfo::new(BY_HAND, "loops written by hand", threads);
        ByHand { device, threads, copy, cases: Vec::new() }
    }
}

impl Target for ByHand {
    fn device(&self) -> &DeviceInfo {
        &self.device
    }
    fn copy(&self) -> f64 {
        self.copy
    }
    fn choose_format(&self, _: &Subject) -> Option<&'static str> {
        None
    }
    fn prepare(&mut self, subject: &Subject, task: &Task) -> Result<usize> {
        let case: Box<dyn Loop> = match subject {
            Subject::Vectors { kind: NumberType::F32, n } => {
                Box::new(Loops::<f32>::new(&task.method, *n, self.threads)?)
            }
            Subject::Vectors { kind: NumberType::F64, n } => {
                Box::new(Loops::<f64>::new(&task.method, *n, self.threads)?)
            }
            _ => {
                let message = "loops were written for real vectors".into();
                return Err(Error::Unsupported { operation: task.method.clone(), message });
            }
        };
        self.cases.push(case);
        Ok(self.cases.len() - 1)
    }
    fn round(&mut self, case: usize) -> Result<()> {
        self.cases[case].round()
    }
    fn measured(&self, case: usize) -> Option<Measured> {
        self.cases[case].measured()
    }
    fn clear(&mut self) {
        self.cases.clear();
    }
}

impl<T: Scalar> Loops<T> {
    fn new(name: &str, n: usize, threads: usize) -> Result<Self> {
        let threads = if n < SHARED_FROM { 1 } else { threads };
        let start = Instant::now();
        let shares: Vec<_> = (0..threads).map(|_| Vectors::new(n / threads)).collect::<Result<_>>()?;
        let first_setup = start.elapsed().as_secs_f64();
        let moved = PASSES.iter().find(|pass| pass.name == name).map_or(0, |pass| pass.reads + pass.writes);
        let bytes = (moved * n * size_of::<T>()) as u64;
        let mut made =
            Loops { name: name.into(), bytes, shares, repeats: 1, first_setup, once: Samples::default() };
        made.time();
        let once = made.time();
        made.repeats = (BUDGET.as_secs_f64() / once).ceil().clamp(1.0, 1e6) as usize;
        Ok(made)
    }

    /// Seconds per sweep.
    fn time(&mut self) -> f64 {
        let (name, repeats) = (&self.name, self.repeats);
        let work = |share: &mut Vectors<T>| {
            for _ in 0..repeats {
                black_box(share.run(name, black_box(T::from_real(TINY))));
            }
        };
        let start = Instant::now();
        std::thread::scope(|scope| {
            let mut shares: Vec<_> = self.shares.iter_mut().collect();
            let own = shares.pop();
            shares.into_iter().for_each(|share| drop(scope.spawn(move || work(share))));
            own.map(work);
        });
        start.elapsed().as_secs_f64() / repeats as f64
    }
}

impl<T: Scalar> Loop for Loops<T> {
    fn round(&mut self) -> Result<()> {
        let time = self.time();
        self.once.push(time);
        Ok(())
    }
    fn measured(&self) -> Option<Measured> {
        Some(Measured::of_one(self.bytes, self.once.timing()?, four_digits(self.first_setup), None))
    }
}
