//! Changes of inputs, the same for the same seed.

/// Makes inputs out of others.
#[derive(Clone, Debug)]
pub struct Mutator(u64);

/// What numbers and marks go wrong at.
const WORDS: [&[u8]; 14] = [
    b"0",
    b"-1",
    b"4294967295",
    b"4294967296",
    b"99999999999999999999",
    b"1e400",
    b"1e-400",
    b"nan",
    b"%",
    b":",
    b",",
    b"\n",
    b"\xff\xff\xff\xff",
    b"\0\0\0\0",
];
/// What bytes go wrong at.
const BYTES: [u8; 8] = [0, 1, 0x7f, 0x80, 0xff, b' ', b'9', b'-'];
/// Inputs get no longer.
const LONGEST: usize = 1 << 13;

impl Mutator {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Mutator(seed)
    }

    /// A number below `n` (`splitmix64`).
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    /// One to four changes of one of the seeds.
    pub fn changed(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut data = seeds.get(self.below(seeds.len())).cloned().unwrap_or_default();
        for _ in 0..=self.below(4) {
            let at = self.below(data.len() + 1);
            match self.below(8) {
                0 | 1 if at < data.len() => data[at] = self.below(256) as u8,
                2 if at < data.len() => data[at] = BYTES[self.below(BYTES.len())],
                3 if at < data.len() => data[at] ^= 1 << self.below(8),
                4 => data.truncate(at),
                5 => {
                    let end = (at + self.below(16)).min(data.len());
                    data.drain(at..end);
                }
                6 => {
                    let word = WORDS[self.below(WORDS.len())];
                    let end = (at + self.below(2) * word.len()).min(data.len());
                    data.splice(at..end, word.iter().copied());
                }
                _ => {
                    let other = &seeds[self.below(seeds.len())];
                    let from = self.below(other.len() + 1);
                    let to = (from + self.below(64)).min(other.len());
                    data.splice(at..at, other[from..to].iter().copied());
                }
            }
        }
        data.truncate(LONGEST);
        data
    }
}
