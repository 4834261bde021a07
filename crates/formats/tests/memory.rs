//! Memory that runs out, at whichever allocation, is an error and never ends the process.
use lacuna_engine::{Error, Result};
use lacuna_formats::factor::{column_order, diagonal_order};
use lacuna_formats::{Csr, Permutation};
use lacuna_io::Spec;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// The number of allocations of this thread before the one that is refused, if one is.
    static BEFORE_REFUSAL: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The system's allocator, which refuses an allocation when it is told to.
struct Refusing;

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

fn refuses() -> bool {
    BEFORE_REFUSAL.with(|before| {
        let left = before.get();
        before.set(left.and_then(|left| left.checked_sub(1)));
        left == Some(0)
    })
}

// SAFETY: the system's allocator, or a null pointer, which says that memory is out.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the same rules.
        if refuses() { std::ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the same rules.
        if refuses() { std::ptr::null_mut() } else { unsafe { System.alloc_zeroed(layout) } }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps to the same rules.
        if refuses() { std::ptr::null_mut() } else { unsafe { System.realloc(pointer, layout, size) } }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to the same rules.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "a debug build checks orders in memory of its own")]
fn orders_of_columns() {
    let a = Spec::parse("gen:convection:12x12").unwrap().build::<f64>().unwrap();
    type Order = fn(&Csr<f64>) -> Result<Permutation>;
    for order in [column_order as Order, diagonal_order] {
        let expected = order(&a).unwrap();
        let mut refusals = 0;
        loop {
            BEFORE_REFUSAL.set(Some(refusals));
            let result = order(&a);
            let none_refused = BEFORE_REFUSAL.take().is_some();
            match result {
                Err(Error::OutOfMemory { .. }) => refusals += 1,
                result => {
                    assert!(none_refused, "allocation {refusals}");
                    assert_eq!(result.unwrap().order(), expected.order());
                    break;
                }
            }
        }
        assert!(refusals > a.rows(), "{refusals}");
    }
}
