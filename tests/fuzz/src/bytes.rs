//! Bytes as decisions.
use lacuna::Scalar;

/// Reads decisions off the front of bytes; zeros follow the last one.
pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Bytes(data)
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }
    /// A number below `n`, which is at most 65 536.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        if n <= 256 {
            return self.byte() as usize % n.max(1);
        }
        usize::from(u16::from_le_bytes([self.byte(), self.byte()])) % n
    }
    pub(crate) fn coin(&mut self) -> bool {
        self.byte() & 1 == 1
    }
    pub(crate) fn pick<V: Copy>(&mut self, of: &[V]) -> V {
        of[self.below(of.len())]
    }
    /// The next `n` bytes, or what is left.
    pub(crate) fn take(&mut self, n: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        front
    }
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// A real number: small whole ones most of the time, powers of ten, any bits.
    fn real(&mut self) -> f64 {
        let small = |byte: u8| f64::from(byte as i8);
        match self.byte() % 8 {
            0..=2 => small(self.byte()),
            3 => small(self.byte()) / 16.0,
            4 => small(self.byte()) / 3.0,
            5 => 10f64.powi(i32::from(self.byte() as i8 / 8)) * small(self.byte()),
            6 => 10f64.powi(i32::from(self.byte() as i8) * 5 / 2) * small(self.byte()),
            _ => {
                let mut bits = [0; 8];
                bits.iter_mut().for_each(|byte| *byte = self.byte());
                f64::from_bits(u64::from_le_bytes(bits))
            }
        }
    }
    /// A finite number of the type.
    pub(crate) fn number<T: Scalar>(&mut self) -> T {
        let re = self.real();
        let im = if T::KIND.is_complex() { self.real() } else { 0.0 };
        let number = T::from_parts(re, im);
        if number.finite() { number } else { T::one() }
    }
    /// Any number of the type, infinite and NaN too.
    pub(crate) fn any<T: Scalar>(&mut self) -> T {
        let re = self.real();
        T::from_parts(re, if T::KIND.is_complex() { self.real() } else { 0.0 })
    }
}
