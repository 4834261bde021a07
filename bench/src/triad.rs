//! The yardstick: `a[i] ← b[i] + s c[i]` over arrays far larger than any cache, measured between the things it is
//! compared with.
use pulp::Arch;
use std::hint::black_box;

/// The arrays of a triad and its threads.
pub struct Triad {
    arrays: [Vec<f64>; 3],
    threads: usize,
}

impl Triad {
    /// Elements of each array: 128 MiB.
    pub const ELEMENTS: usize = 1 << 24;

    /// A triad on that many threads, its arrays in large pages and touched.
    pub fn new(threads: usize) -> Self {
        let mut triad = Triad { arrays: [1.0, 2.0, 3.0].map(|v| array(Self::ELEMENTS, v)), threads };
        triad.run();
        triad
    }

    /// One sweep; GB/s by 24 bytes an element. Stores are ordinary ones, so that the array written is also read:
    /// 32 bytes an element cross the bus.
    pub fn run(&mut self) -> f64 {
        let share = Self::ELEMENTS.div_ceil(self.threads);
        let [a, b, c] = &mut self.arrays;
        let s = black_box(0.5);
        let time = crate::stats::seconds(|| {
            std::thread::scope(|scope| {
                let shares = a.chunks_mut(share).zip(b.chunks(share)).zip(c.chunks(share));
                let mut shares: Vec<_> = shares.collect();
                let mine = shares.pop();
                for ((a, b), c) in shares {
                    scope.spawn(move || sweep(a, b, c, s));
                }
                if let Some(((a, b), c)) = mine {
                    sweep(a, b, c, s);
                }
            });
        });
        black_box(&self.arrays[0]);
        24e-9 * Self::ELEMENTS as f64 / time
    }
}

/// An array in large pages where the system has them, as the library's own vectors are.
pub(crate) fn array<T: Copy>(n: usize, value: T) -> Vec<T> {
    let mut array = Vec::with_capacity(n);
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 2 << 20;
        let first = (array.as_ptr() as usize).next_multiple_of(PAGE);
        let last = (array.as_ptr() as usize + size_of::<T>() * n) / PAGE * PAGE;
        // SAFETY: the range lies within the array, and the advice does not change what it holds.
        unsafe { libc::madvise(first as *mut libc::c_void, last.saturating_sub(first), libc::MADV_HUGEPAGE) };
    }
    array.resize(n, value);
    array
}

fn sweep(a: &mut [f64], b: &[f64], c: &[f64], s: f64) {
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
                *a = c.mul_add(s, *b);
            }
        },
    );
}
