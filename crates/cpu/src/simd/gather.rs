//! Gathers elements of a vector into a register.
use crate::simd::numbers::Real;
use pulp::Simd;
use std::mem::transmute_copy;

/// `x[columns[l]]` for each lane `l` of a register of `N` lanes. Loaded one by one: gather instructions are
/// microcoded on many processors, and slower.
///
/// # Safety
/// There must be `N` columns, and `x` must be valid for them.
#[inline(always)]
pub(crate) unsafe fn gather<R: Real<S>, S: Simd, C: Copy + Into<u32>, const N: usize>(
    x: *const R::Number,
    columns: *const C,
) -> R::Vector {
    debug_assert_eq!(N, R::LANES, "lanes of a register");
    // SAFETY: as the caller promises; a register is as large as its lanes.
    unsafe {
        let lanes: [R::Number; N] = std::array::from_fn(|l| *x.add((*columns.add(l)).into() as usize));
        transmute_copy(&lanes)
    }
}
