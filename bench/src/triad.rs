//! The yardstick: `a[i] ← b[i] + s c[i]` over arrays far larger than any cache, measured between the things it is
//! compared with.
use lacuna_core::Scalar;
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

/// An array as the library makes its own: in large pages where the system has them.
///
/// # Panics
/// Where there is no memory for it.
pub(crate) fn array<T: Scalar>(n: usize, value: T) -> Vec<T> {
    let mut array = lacuna_core::pages::zeroed("an array", n).expect("memory for an array");
    array.fill(value);
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
