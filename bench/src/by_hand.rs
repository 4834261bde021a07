//! Fused loops written by hand, one for each pass that matters: what a table-driven pass is held against.
use lacuna_core::Scalar;
use pulp::{Arch, NullaryFnOnce};

/// Elements taken at a time; lengths must be a multiple of it.
pub const BLOCK: usize = 32;

type Block<T> = [T; BLOCK];

/// The vectors of the passes by the names of the methods' listings.
pub struct Vectors<T> {
    /// Solution.
    pub x: Vec<T>,
    /// Residual.
    pub r: Vec<T>,
    /// Direction.
    pub p: Vec<T>,
    /// `A p`; also `v`.
    pub q: Vec<T>,
    /// Half-way residual; also `z`.
    pub s: Vec<T>,
    /// `A s`; also `M A p`.
    pub t: Vec<T>,
    /// The fixed residual of BiCGStab.
    pub r0: Vec<T>,
}

impl<T: Scalar> Vectors<T> {
    /// Vectors of ones.
    pub fn new(n: usize) -> Self {
        let ones = || crate::triad::array(n, T::one());
        Vectors { x: ones(), r: ones(), p: ones(), q: ones(), s: ones(), t: ones(), r0: ones() }
    }

    /// Runs the loop of that name once with every coefficient `c` and returns the sum of its dot products; nothing
    /// for a name that has no loop.
    pub fn run(&mut self, name: &str, c: T) -> Option<T> {
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

/// A loop over blocks, compiled for the instructions at hand.
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
