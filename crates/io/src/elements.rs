//! Arrays of numbers in binary files: any width, either byte order.
use lacuna_engine::text::{escaped, shown_name};
use lacuna_engine::{Error, NumberType, Result, Scalar, memory, pages};
use lacuna_formats::parallel;
use std::io::Read;
use std::sync::Arc;

/// Elements converted per task.
const RUN: usize = 1 << 16;
/// Bytes read before checking how much memory is left.
const FIRST_READ: u64 = 1 << 16;

/// The bytes of a file, or of a member of an archive, and its name for errors.
pub(super) struct Contents {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl Contents {
    /// Reads to the end; `expected` bytes if the size is known.
    pub(super) fn read(name: &str, mut source: impl Read, expected: Option<u64>) -> Result<Self> {
        let operation = reading(name);
        let failed = |source| Error::Io { operation: "reading".into(), path: name.into(), source };
        let mut bytes = Vec::new();
        let mut room = expected.map_or(FIRST_READ, |bytes| bytes.saturating_add(1));
        loop {
            let requested = (bytes.len() as u64).saturating_add(room);
            memory::check(&operation, requested)?;
            bytes.try_reserve(room as usize).map_err(|_| Error::OutOfMemory {
                operation: operation.clone(),
                device: "the host".into(),
                requested,
                available: None,
            })?;
            let got = source.by_ref().take(room).read_to_end(&mut bytes).map_err(failed)? as u64;
            if got < room {
                return Ok(Contents { name: name.into(), bytes });
            }
            room = FIRST_READ.max(bytes.len() as u64);
        }
    }

    /// The error for malformed data at a byte, counted from 0.
    pub(super) fn malformed(&self, offset: usize, message: impl Into<String>) -> Error {
        Error::Malformed {
            source_name: self.name.clone(),
            offset: offset as u64,
            message: escaped(&message.into()).into_owned(),
        }
    }

    /// `count` bytes starting at `start`.
    pub(super) fn slice(&self, start: usize, count: usize, what: &str) -> Result<&[u8]> {
        let rest = self.bytes.get(start..).unwrap_or_default();
        rest.get(..count).ok_or_else(|| {
            let left = rest.len();
            self.malformed(
                start.min(self.bytes.len()),
                format!("{what} takes {count} bytes, {left} are left"),
            )
        })
    }

    /// `N` bytes starting at `start`, least significant first.
    pub(super) fn array<const N: usize>(&self, start: usize, big: bool, what: &str) -> Result<[u8; N]> {
        self.slice(start, N, what).map(|bytes| ordered(bytes, big))
    }
}

/// The name of the operation of reading a file, for errors.
pub(super) fn reading(name: &str) -> String {
    format!("reading {}", shown_name(name))
}

/// The error for too many items for 32-bit indices.
pub(super) fn too_many(name: &str, what: &str, count: impl std::fmt::Display) -> Error {
    let message = format!("{count} {what} are more than 32-bit indices count ({})", u32::MAX);
    Error::Structure { operation: reading(name), message }
}

/// The kind of an element, and its size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementKind {
    Signed(usize),
    Unsigned(usize),
    Float(usize),
    Complex(usize),
}

impl ElementKind {
    pub(super) const fn bytes(self) -> usize {
        match self {
            ElementKind::Signed(n) | ElementKind::Unsigned(n) => n,
            ElementKind::Float(n) | ElementKind::Complex(n) => n,
        }
    }

    const fn is_whole(self) -> bool {
        matches!(self, ElementKind::Signed(_) | ElementKind::Unsigned(_))
    }
}

/// Real numbers read from text before a number type is chosen.
#[derive(Default)]
pub(super) struct Decimals {
    pub(super) doubles: Vec<f64>,
    /// The `f32` nearest to the text, by position, where it is not the one nearest to the `f64`.
    pub(super) singles: Vec<(usize, f32)>,
}

/// Whether the `f32` nearest to a text may differ from the one nearest to its `f64`: if that is halfway
/// between two, or so small that `f32` has fewer digits.
#[inline]
pub(super) fn may_round_twice(value: f64) -> bool {
    value.to_bits() & 0x1FFF_FFFF == 0x1000_0000 || value.abs() < 2.0 * f64::from(f32::MIN_POSITIVE)
}

/// An array in the bytes of a file.
#[derive(Clone)]
pub(super) struct Elements {
    pub(super) contents: Arc<Contents>,
    start: usize,
    count: usize,
    kind: ElementKind,
    big: bool,
    /// As [`Decimals::singles`]; complex elements count twice.
    singles: Arc<[(usize, f32)]>,
}

impl Elements {
    /// `count` elements starting at byte `start`.
    pub(super) fn new(
        contents: &Arc<Contents>,
        start: usize,
        count: u64,
        kind: ElementKind,
        big: bool,
    ) -> Result<Self> {
        let left = contents.bytes.len().saturating_sub(start) as u64;
        if count.saturating_mul(kind.bytes() as u64) > left {
            let message =
                format!("{count} elements of {} bytes should follow, {left} bytes are left", kind.bytes());
            return Err(contents.malformed(start.min(contents.bytes.len()), message));
        }
        let (contents, singles) = (contents.clone(), Arc::default());
        Ok(Elements { contents, start, count: count as usize, kind, big, singles })
    }

    /// The first elements of a possibly longer array.
    pub(super) fn first(mut self, count: u64) -> Result<Self> {
        if count > self.count as u64 {
            let message = format!("{count} elements should follow, got {}", self.count);
            return Err(self.contents.malformed(self.start, message));
        }
        self.count = count as usize;
        Ok(self)
    }

    /// An array of numbers read from text.
    pub(super) fn of_decimals(name: &str, numbers: Decimals, kind: ElementKind) -> Self {
        let Decimals { doubles, singles } = numbers;
        let bytes = bytemuck::cast_slice(&doubles).to_vec();
        let count = bytes.len() / kind.bytes();
        let contents = Arc::new(Contents { name: name.into(), bytes });
        let big = cfg!(target_endian = "big");
        Elements { contents, start: 0, count, kind, big, singles: singles.into() }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The end of the array: the first byte after it.
    pub(super) fn end(&self) -> usize {
        self.start + self.count * self.kind.bytes()
    }

    /// The start of element `k`.
    pub(super) fn offset(&self, k: usize) -> usize {
        self.start + k * self.kind.bytes()
    }

    /// Real numbers per element.
    fn parts(&self) -> usize {
        if matches!(self.kind, ElementKind::Complex(_)) { 2 } else { 1 }
    }

    fn bytes(&self) -> &[u8] {
        &self.contents.bytes[self.start..self.end()]
    }

    /// The narrowest suitable number type.
    pub(super) fn number_type(&self) -> NumberType {
        match self.kind {
            ElementKind::Float(4) => NumberType::F32,
            ElementKind::Complex(8) => NumberType::C32,
            ElementKind::Complex(_) => NumberType::C64,
            _ => NumberType::F64,
        }
    }

    /// The same elements without the bytes around them.
    pub(super) fn detached(&self) -> Self {
        let contents = Contents { name: self.contents.name.clone(), bytes: self.bytes().to_vec() };
        Elements { contents: Arc::new(contents), start: 0, singles: self.singles.clone(), ..*self }
    }

    /// Calls `f` with the position and value of each integer.
    fn try_whole<E>(&self, mut f: impl FnMut(usize, i128) -> Result<(), E>) -> Result<(), E> {
        macro_rules! each {
            ($type:ty) => {
                self.bytes()
                    .chunks_exact(size_of::<$type>())
                    .map(|bytes| <$type>::from_le_bytes(ordered(bytes, self.big)))
                    .enumerate()
                    .try_for_each(|(k, value)| f(k, i128::from(value)))
            };
        }
        match self.kind {
            ElementKind::Signed(1) => each!(i8),
            ElementKind::Signed(2) => each!(i16),
            ElementKind::Signed(4) => each!(i32),
            ElementKind::Signed(_) => each!(i64),
            ElementKind::Unsigned(1) => each!(u8),
            ElementKind::Unsigned(2) => each!(u16),
            ElementKind::Unsigned(4) => each!(u32),
            ElementKind::Unsigned(_) => each!(u64),
            ElementKind::Float(_) | ElementKind::Complex(_) => Ok(()),
        }
    }

    fn check_whole(&self, what: &str) -> Result<()> {
        match self.kind.is_whole() {
            true => Ok(()),
            false => Err(self.contents.malformed(self.start, format!("{what}s should be whole numbers"))),
        }
    }

    /// Integers from 0 to `limit - 1`.
    pub(super) fn indices(&self, what: &str, limit: u64) -> Result<Vec<u32>> {
        self.check_whole(what)?;
        let mut indices: Vec<u32> = pages::zeroed(&reading(&self.contents.name), self.count)?;
        self.try_whole(|k, value| {
            if value < 0 || value >= i128::from(limit) || value > i128::from(u32::MAX) {
                let expected = match limit {
                    0 => "there should be none".to_string(),
                    limit => format!("expected 0 to {}", limit - 1),
                };
                return Err(self.contents.malformed(self.offset(k), format!("{what} {value}: {expected}")));
            }
            indices[k] = value as u32;
            Ok(())
        })?;
        Ok(indices)
    }

    /// The start of each row (or column) and the end of the last: nondecreasing, from 0 to `entries`.
    pub(super) fn pointers(&self, what: &str, entries: u64) -> Result<Vec<u32>> {
        let pointers = self.indices(what, entries.saturating_add(1))?;
        let wrong = |k: usize, message: String| Err(self.contents.malformed(self.offset(k), message));
        if let Some(k) = pointers.windows(2).position(|w| w[1] < w[0]) {
            return wrong(k + 1, format!("{what} {} comes after {}", pointers[k + 1], pointers[k]));
        }
        match (pointers.first(), pointers.last()) {
            (Some(&first), _) if first != 0 => wrong(0, format!("the first {what} should be 0, got {first}")),
            (_, Some(&last)) if u64::from(last) != entries => {
                let message =
                    format!("the last {what} should be the number of entries {entries}, got {last}");
                wrong(pointers.len() - 1, message)
            }
            (None, _) => wrong(0, format!("no {what} at all, expected at least one")),
            _ => Ok(pointers),
        }
    }

    /// Integers of any size.
    pub(super) fn wholes(&self, what: &str) -> Result<Vec<i64>> {
        self.check_whole(what)?;
        let mut wholes = Vec::with_capacity(self.count);
        self.try_whole(|k, value| {
            let message = || format!("{what} {value} does not fit 64 bits");
            let value =
                i64::try_from(value).map_err(|_| self.contents.malformed(self.offset(k), message()))?;
            wholes.push(value);
            Ok::<(), Error>(())
        })?;
        Ok(wholes)
    }

    /// The elements converted to a number type, each rounded once.
    pub(super) fn numbers<T: Scalar>(&self) -> Result<Vec<T>> {
        let mut values = pages::zeroed::<T>(&reading(&self.contents.name), self.count)?;
        macro_rules! real {
            ($type:ty) => {
                self.fill(&mut values, |bytes| T::from_real(<$type>::from_le_bytes(bytes) as f64))
            };
        }
        // Rounded once.
        let single = matches!(T::KIND, NumberType::F32 | NumberType::C32);
        macro_rules! long {
            ($type:ty) => {
                self.fill(&mut values, |bytes| {
                    let n = <$type>::from_le_bytes(bytes);
                    T::from_real(if single { f64::from(n as f32) } else { n as f64 })
                })
            };
        }
        macro_rules! complex {
            ($type:ty) => {
                self.fill(&mut values, |bytes: [u8; 2 * size_of::<$type>()]| {
                    // In the other byte order, the bytes of the two parts are reversed together.
                    let (a, b) = bytes.split_at(size_of::<$type>());
                    let part = |bytes| f64::from(<$type>::from_le_bytes(ordered(bytes, false)));
                    if self.big { T::from_parts(part(b), part(a)) } else { T::from_parts(part(a), part(b)) }
                })
            };
        }
        match self.kind {
            ElementKind::Signed(1) => real!(i8),
            ElementKind::Signed(2) => real!(i16),
            ElementKind::Signed(4) => real!(i32),
            ElementKind::Signed(_) => long!(i64),
            ElementKind::Unsigned(1) => real!(u8),
            ElementKind::Unsigned(2) => real!(u16),
            ElementKind::Unsigned(4) => real!(u32),
            ElementKind::Unsigned(_) => long!(u64),
            ElementKind::Float(4) => real!(f32),
            ElementKind::Float(_) => real!(f64),
            ElementKind::Complex(8) => complex!(f32),
            ElementKind::Complex(_) => complex!(f64),
        }
        let parts = self.parts();
        for &(k, part) in self.singles.iter().filter(|_| single) {
            let Some(value) = values.get_mut(k / parts) else { break };
            *value = match k % parts {
                0 => T::from_parts(part.into(), value.im()),
                _ => T::from_parts(value.re(), part.into()),
            };
        }
        Ok(values)
    }

    fn fill<T: Scalar, const N: usize>(&self, values: &mut [T], number: impl Fn([u8; N]) -> T + Sync) {
        let runs = values.chunks_mut(RUN).zip(self.bytes().chunks(RUN * N));
        parallel::for_each(runs, |(values, bytes)| {
            for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(N)) {
                *value = number(ordered(bytes, self.big));
            }
        });
    }

    /// A note about numbers not representable in the number type, if there are any.
    pub(super) fn losses<T: Scalar>(&self, values: &[T]) -> Option<String> {
        let (mut count, mut first) = (0, None);
        let name = T::KIND.name();
        if self.kind.is_whole() && self.kind.bytes() >= 4 {
            let _ = self.try_whole(|k, whole| {
                let became = values[k].re();
                if became as i128 != whole {
                    count += 1;
                    let said = || format!("element {k}, {whole}, is not exact in {name} and became {became}");
                    first.get_or_insert_with(said);
                }
                Ok::<(), ()>(())
            });
        } else if matches!(self.kind, ElementKind::Float(8) | ElementKind::Complex(16)) {
            let single = matches!(T::KIND, NumberType::F32 | NumberType::C32);
            let parts =
                self.bytes().chunks_exact(8).map(|bytes| f64::from_le_bytes(ordered(bytes, self.big)));
            let each = self.parts();
            for (k, part) in parts.enumerate().filter(|(_, part)| single && *part != 0.0) {
                let value = values[k / each];
                let became = if k % each == 0 { value.re() } else { value.im() };
                if became == 0.0 {
                    count += 1;
                    let k = k / each;
                    let said = || format!("element {k}, {part:e}, is too small for {name} and became 0");
                    first.get_or_insert_with(said);
                }
            }
        }
        let more =
            if count > 1 { format!("; the same is true of {} more", count - 1) } else { String::new() };
        first.map(|first| format!("{}: {first}{more}", shown_name(&self.contents.name)))
    }
}

/// The bytes with the least significant first.
pub(super) fn ordered<const N: usize>(bytes: &[u8], big: bool) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    if big {
        array.reverse();
    }
    array
}
