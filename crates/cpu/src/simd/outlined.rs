//! Outlined loops: each is compiled as a separate function.
use pulp::{Simd, WithSimd};

/// Calls `run` for the current instruction set, but is never inlined into the caller: a step with all its
/// kinds of work is one function, far too large for the available registers, and would keep a loop's row
/// index and pointers in memory.
#[inline(never)]
pub(crate) fn outlined<S: Simd>(simd: S, run: impl FnOnce()) {
    struct Apart<F>(F);
    impl<F: FnOnce()> WithSimd for Apart<F> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) {
            (self.0)();
        }
    }
    simd.vectorize(Apart(run));
}

/// Rows of a product, [`outlined`]; as unsafe as the expression that computes them.
macro_rules! outlined_rows {
    ($simd:expr, $rows:expr) => {
        $crate::simd::outlined::outlined(
            $simd,
            #[inline(always)]
            move || {
                // SAFETY: as the caller of the product promises.
                unsafe { $rows }
            },
        )
    };
}
pub(crate) use outlined_rows;
