//! The barrier alone.
use crate::barrier::{Barrier, CANCEL, PART};
use crate::run::explore;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// Threads write their own cell and read all after they met; what they write next is another half.
struct Cells<const N: usize> {
    barrier: Barrier,
    halves: [[UnsafeCell<usize>; N]; 2],
}

// SAFETY: loom watches the cells.
unsafe impl<const N: usize> Sync for Cells<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Send for Cells<N> {}

fn rounds<const N: usize>(cells: &Cells<N>, me: usize, rounds: usize) -> Vec<u8> {
    (0..rounds)
        .map(|round| {
            let half = &cells.halves[round & 1];
            // SAFETY: this thread's own; all that read it have met since.
            half[me].with_mut(|cell| unsafe { *cell = 10 * round + me });
            let wishes = cells.barrier.wait();
            for (i, cell) in half.iter().enumerate() {
                // SAFETY: all have written theirs before they met.
                cell.with(|cell| assert_eq!(unsafe { *cell }, 10 * round + i));
            }
            wishes
        })
        .collect()
}

fn threads<const N: usize>(count: usize, wish: impl Fn(&Barrier) + Send + Sync + Copy + 'static) {
    let cell = || UnsafeCell::new(0);
    let cells = Arc::new(Cells::<N> {
        barrier: Barrier::new(N),
        halves: [std::array::from_fn(|_| cell()), std::array::from_fn(|_| cell())],
    });
    let others: Vec<_> = (1..N)
        .map(|me| {
            let cells = cells.clone();
            thread::spawn(move || rounds(&cells, me, count))
        })
        .collect();
    wish(&cells.barrier);
    let told = rounds(&cells, 0, count);
    for other in others {
        assert_eq!(other.join().unwrap(), told, "all are told the same");
    }
    assert_eq!(told[0] & PART, told[0] & told[count - 1] & PART, "a wish stays until it is taken back");
}

#[test]
fn two_threads_meet_four_times() {
    explore("two threads, four meetings", 2, None, || threads::<2>(4, |_| {}));
}

#[test]
fn three_threads_meet_twice() {
    explore("three threads, two meetings", 3, Some(2), || threads::<3>(2, |_| {}));
}

#[test]
#[ignore = "a minute"]
fn three_threads_meet_in_every_order() {
    explore("three threads, one meeting", 3, None, || threads::<3>(1, |_| {}));
}

#[test]
fn a_wish_is_told_to_all_at_the_same_meeting() {
    explore("a wish, two threads, three meetings", 2, None, || threads::<2>(3, |barrier| barrier.wish(PART)));
    explore("a wish, three threads, two meetings", 3, Some(2), || {
        threads::<3>(2, |barrier| barrier.wish(CANCEL))
    });
}

/// A wish from outside, at any time.
#[test]
fn a_wish_at_any_time_is_told_to_all_at_the_same_meeting() {
    explore("a wish at any time", 2, Some(3), || {
        let cell = || UnsafeCell::new(0);
        let cells = Arc::new(Cells::<2> {
            barrier: Barrier::new(2),
            halves: [std::array::from_fn(|_| cell()), std::array::from_fn(|_| cell())],
        });
        let (other, wishes) = (cells.clone(), cells.clone());
        let other = thread::spawn(move || rounds(&other, 1, 3));
        let wishing = thread::spawn(move || wishes.barrier.wish(CANCEL));
        let told = rounds(&cells, 0, 3);
        assert_eq!(other.join().unwrap(), told);
        wishing.join().unwrap();
        assert!(told.is_sorted(), "a wish stays");
    });
}
