//! The passes that have a loop of their own, by what they compute. A form fits whatever vectors and coefficients a pass has.
use super::form::{Form, VECTORS};
use super::{Streams, sweep};
use crate::simd::numbers::{Real, load, store};
use crate::simd::outlined::outlined;
use pulp::Simd;

/// Maximum numbers of updates, terms of an update and dot products of such a pass.
pub(super) const UPDATES: usize = 4;
pub(super) const TERMS: usize = 3;
pub(super) const DOTS: usize = 3;

/// A pass that has its own loop.
pub(super) trait Pass {
    const FORM: Form;
    /// Updates the elements in register `k`, and adds to the dot products.
    ///
    /// # Safety
    /// The vectors must have these elements.
    unsafe fn elements<R: Real<S>, S: Simd>(
        simd: S,
        vectors: &[*mut R::Number; VECTORS],
        coefficients: &[[R::Vector; TERMS]; UPDATES],
        k: usize,
        products: impl FnMut(usize, R::Vector),
    );
}

/// Declares passes: vectors, updates without their coefficients, and dot products (`a . b`). Two adjacent vectors
/// mean an element-wise product.
macro_rules! passes {
    ($($name:ident($($v:ident)*) { $($dst:ident = $($head:ident)* $(+ $($more:ident)*)*;)* } [$($a:ident . $($b:ident)*),*])*) => {
        /// Identifies a pass.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(super) enum Which { $($name),* }

        pub(super) const ALL: &[(Which, Form)] = &[$((Which::$name, $name::FORM)),*];

        impl Which {
            /// As for [`sweep`].
            #[inline(always)]
            pub(super) unsafe fn sweep<R: Real<S>, S: Simd, const HALF: usize, const QUARTER: usize, const KEPT: usize>(
                self,
                simd: S,
                on: Streams<R::Number>,
            ) {
                match self {
                    $(Which::$name => outlined(simd, #[inline(always)] move || {
                        // SAFETY: as the caller promises.
                        unsafe { sweep::<$name, R, S, HALF, QUARTER, KEPT>(simd, on) }
                    }),)*
                }
            }
        }

        $(struct $name;

        impl Pass for $name {
            const FORM: Form = {
                #[allow(non_camel_case_types)]
                enum At { $($v),* }
                Form {
                    updates: &[$((
                        At::$dst as usize,
                        &[passes!(@form At $($head)*) $(, passes!(@form At $($more)*))*],
                    )),*],
                    dots: &[$((At::$a as usize, passes!(@form At $($b)*))),*],
                }
            };
            #[inline(always)]
            #[allow(unused, reason = "not all have updates, and some last counts are not read")]
            unsafe fn elements<R: Real<S>, S: Simd>(
                simd: S,
                vectors: &[*mut R::Number; VECTORS],
                coefficients: &[[R::Vector; TERMS]; UPDATES],
                k: usize,
                mut products: impl FnMut(usize, R::Vector),
            ) {
                let mut at = 0;
                // SAFETY: as the caller promises.
                $(let mut $v = unsafe { Elements::<R, S>::load(vectors[at], k) }; at += 1;)*
                let (mut update, mut dot) = (0, 0);
                $(
                    let mut sum = R::mul(simd, coefficients[update][0], passes!(@value simd $($head)*));
                    let mut term = 1;
                    $(sum = R::fma(simd, coefficients[update][term], passes!(@value simd $($more)*), sum); term += 1;)*
                    // SAFETY: as the caller promises.
                    unsafe { $dst.set(sum) };
                    update += 1;
                )*
                $(products(dot, R::mul(simd, $a.value, passes!(@value simd $($b)*))); dot += 1;)*
            }
        })*
    };
    (@form $At:ident $vector:ident) => { (None, $At::$vector as usize) };
    (@form $At:ident $factor:ident $vector:ident) => { (Some($At::$factor as usize), $At::$vector as usize) };
    (@value $simd:ident $vector:ident) => { $vector.value };
    (@value $simd:ident $factor:ident $vector:ident) => { R::mul($simd, $factor.value, $vector.value) };
}

// Named by the updates in order, then the dot products: `Axpy` is y = y + x, `Axpys` is y = y + x + z, `Xpby` is y = x + y, `Xpbyz`
// is y = x + y + z, `Add` is the sum of two other vectors, `Scale` the element-wise product of two. `Scaled`: such products are
// terms. `Shared`: what the first update adds is in a later one too.
passes! {
    AxpyAxpyDot(x p r q) { x = x + p; r = r + q; } [r . r]
    AxpyAxpyScaleDots(x p r q z d) { x = x + p; r = r + q; z = d r; } [z . r, r . r]
    AxpyAxpyXpbyDot(x p r q) { x = x + p; r = r + q; p = r + p; } [r . r]
    AxpyAxpyAxpyXpbyDots(x p r q z mq) { x = x + p; r = r + q; z = z + mq; p = z + p; } [z . r, r . r]
    AxpyAxpyScaledXpbyDots(x p r q d) { x = x + p; r = r + q; p = d r + p; } [r . r, r . d r]
    AddScale(r v s d ms) { s = r + v; ms = d s; } []
    Dots(s t r0) {} [s . t, t . t, r0 . t]
    SharedAxpysAddDots(x p s r t r0) { x = x + p + s; r = s + t; } [r0 . r, r . r]
    AxpysAddDots(x mp ms s r t r0) { x = x + mp + ms; r = s + t; } [r0 . r, r . r]
    SharedAxpysAddXpbyzDots(x p s r t v r0) { x = x + p + s; r = s + t; p = r + p + v; } [r0 . r, r . r]
    AxpysAddXpbyzDots(x mp ms s r t p v r0) {
        x = x + mp + ms; r = s + t; p = r + p + v;
    } [r0 . r, r . r]
    ScaledAxpysAddXpbyzDots(x p s d r t v r0) {
        x = x + p + d s; r = s + t; p = d r + p + d v;
    } [r0 . r, r . r]
}

/// A register of a vector.
pub(super) struct Elements<R: Real<S>, S: Simd> {
    at: *mut R::Number,
    value: R::Vector,
}

impl<R: Real<S>, S: Simd> Elements<R, S> {
    /// Register `k` of a vector, which must be in range.
    #[inline(always)]
    unsafe fn load(vector: *mut R::Number, k: usize) -> Self {
        let at = vector.wrapping_add(k * R::LANES);
        // SAFETY: as the caller promises.
        Elements { at, value: unsafe { load::<R, S>(at, 0) } }
    }
    /// Writes it to the vector, which must be valid.
    #[inline(always)]
    unsafe fn set(&mut self, value: R::Vector) {
        self.value = value;
        // SAFETY: as the caller promises.
        unsafe { store::<R, S>(self.at, &[value]) };
    }
}
