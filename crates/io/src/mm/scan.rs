//! Parses numbers and words of a line of text.
use super::rounded::Rounding;
use crate::elements::may_round_twice;
use lacuna_engine::text::shown_word;
use std::ops::RangeInclusive;

/// A syntax error, at a byte of a line or block.
#[derive(Debug)]
pub(super) struct Fault {
    /// The byte, counted from 0; `None` for a whole line.
    pub(super) at: Option<usize>,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(at: usize, message: String) -> Self {
        Self { at: Some(at), message }
    }

    /// An error of a whole line.
    pub(super) fn line(message: String) -> Self {
        Self { at: None, message }
    }
}

/// The words of a line with their start positions.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = (usize, String)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        at += line[at..].iter().position(|b| !b.is_ascii_whitespace())?;
        let length = word_length(&line[at..]);
        let word = (at, shown_word(&line[at..at + length]));
        at += length;
        Some(word)
    })
}

/// Bytes up to the next blank.
fn word_length(text: &[u8]) -> usize {
    text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len())
}

/// Powers of ten that are exact in `f64`.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// A position in text that ends with a line end.
pub(super) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// Whether numbers are rounded to `f32`.
    single: bool,
    /// Numbers whose rounding is worth reporting.
    pub(super) rounding: Rounding,
}

impl<'a> Scanner<'a> {
    /// `text` must be empty or end with `\n`.
    pub(super) fn new(text: &'a [u8], single: bool) -> Self {
        debug_assert!(text.last().is_none_or(|&b| b == b'\n'));
        Self { text, at: 0, single, rounding: Rounding::default() }
    }

    #[inline(always)]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    #[inline(always)]
    pub(super) fn at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    #[inline(always)]
    fn byte(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(b'\n')
    }

    /// The word that starts at `start`.
    fn word(&self, start: usize) -> &'a [u8] {
        &self.text[start..start + word_length(&self.text[start..])]
    }

    #[inline(always)]
    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.byte(), b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    /// Skips the line if it is blank or a comment.
    #[inline(always)]
    pub(super) fn skip_empty_line(&mut self) -> bool {
        self.skip_blanks();
        match self.byte() {
            b'\n' => self.at += 1,
            b'%' => {
                let rest = &self.text[self.at..];
                self.at += rest.iter().position(|&b| b == b'\n').map_or(rest.len(), |end| end + 1);
            }
            _ => return false,
        }
        true
    }

    /// Advances past the end of the line; nothing may come before the end.
    #[inline(always)]
    pub(super) fn end_line(&mut self, expected: &str) -> Result<(), Fault> {
        self.skip_blanks();
        if self.byte() != b'\n' {
            return Err(self.more(expected));
        }
        self.at += 1;
        Ok(())
    }

    #[cold]
    fn more(&self, expected: &str) -> Fault {
        let word = shown_word(self.word(self.at));
        let blanks = self.text[..self.at].iter().rev().take_while(|b| b.is_ascii_whitespace());
        let why = if blanks.into_iter().any(|&b| b == b'\r') {
            "; a carriage return ends a line only where the first line ends so"
        } else {
            ""
        };
        Fault::new(self.at, format!("nothing should follow {expected}, got `{word}`{why}"))
    }

    /// The error for an unexpected word.
    #[cold]
    fn unexpected(&self, start: usize, what: &str, expected: &str) -> Fault {
        match self.word(start) {
            [] => {
                // The position after the last word of the line.
                let line = self.text[..start].iter().rposition(|&b| b == b'\n').map_or(0, |end| end + 1);
                let end = line + self.text[line..start].trim_ascii_end().len();
                Fault::new(end, format!("the {what} is missing"))
            }
            word => Fault::new(start, format!("the {what} should be {expected}, got `{}`", shown_word(word))),
        }
    }

    /// An index, counted from 1 in the text and from 0 in the result.
    #[inline(always)]
    pub(super) fn index(&mut self, what: &str, range: RangeInclusive<u32>) -> Result<u32, Fault> {
        self.skip_blanks();
        let start = self.at;
        let mut n = 0u64;
        loop {
            let digit = self.byte().wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            n = n.wrapping_mul(10).wrapping_add(u64::from(digit));
            self.at += 1;
        }
        let digits = self.at - start;
        if digits == 0
            || digits > 18
            || n < 1
            || n > u64::from(*range.end())
            || !self.byte().is_ascii_whitespace()
        {
            return Err(self.bad_index(start, what, *range.end()));
        }
        Ok(n as u32 - 1)
    }

    #[cold]
    fn bad_index(&self, start: usize, what: &str, count: u32) -> Fault {
        let word = self.word(start);
        if word.is_empty() || !word.iter().all(u8::is_ascii_digit) {
            return self.unexpected(start, &format!("{what} index"), "a whole number from 1");
        }
        let word = shown_word(word);
        if word.bytes().all(|b| b == b'0') {
            return Fault::new(start, format!("the {what} index counts from 1, got {word}"));
        }
        Fault::new(start, format!("{what} {word} is outside the matrix of {count} {what}s"))
    }

    /// A finite real number.
    #[inline(always)]
    pub(super) fn real(&mut self, what: &str) -> Result<f64, Fault> {
        self.skip_blanks();
        let start = self.at;
        let negative = self.byte() == b'-';
        self.at += usize::from(matches!(self.byte(), b'-' | b'+'));
        let (mut mantissa, mut exponent) = (0u64, 0i32);
        let first_digit = self.at;
        self.digits(&mut mantissa);
        let mut digits = self.at - first_digit;
        if self.byte() == b'.' {
            self.at += 1;
            let first_digit = self.at;
            self.digits(&mut mantissa);
            digits += self.at - first_digit;
            exponent = -((self.at - first_digit) as i32);
        }
        if digits == 0 || digits > 19 || mantissa >= 1 << 53 {
            return self.slow_real(start, what);
        }
        if matches!(self.byte(), b'e' | b'E' | b'd' | b'D') {
            self.at += 1;
            let down = self.byte() == b'-';
            self.at += usize::from(matches!(self.byte(), b'-' | b'+'));
            let (first_digit, mut n) = (self.at, 0u64);
            self.digits(&mut n);
            if self.at == first_digit || self.at - first_digit > 4 {
                return self.slow_real(start, what);
            }
            exponent += if down { -(n as i32) } else { n as i32 };
        }
        if exponent.unsigned_abs() > 22 || !self.byte().is_ascii_whitespace() {
            return self.slow_real(start, what);
        }
        // Clinger: an exact integer times or divided by an exact power of ten is rounded once.
        let size = mantissa as f64;
        let power = POWERS[exponent.unsigned_abs() as usize];
        let size = if exponent < 0 { size / power } else { size * power };
        let value = if negative { -size } else { size };
        if self.single { self.round_to_single(value, start, what) } else { Ok(value) }
    }

    #[inline(always)]
    fn digits(&mut self, n: &mut u64) {
        loop {
            let digit = self.byte().wrapping_sub(b'0');
            if digit > 9 {
                return;
            }
            *n = n.wrapping_mul(10).wrapping_add(u64::from(digit));
            self.at += 1;
        }
    }

    /// Parses a number that is long, huge, tiny, or invalid.
    #[cold]
    fn slow_real(&mut self, start: usize, what: &str) -> Result<f64, Fault> {
        let text = self.decimal(start, what)?;
        let value: f64 = text.parse().map_err(|_| self.unexpected(start, what, "a real number"))?;
        self.at = start + self.word(start).len();
        if !value.is_finite() {
            return Err(Fault::new(
                start,
                format!("the {what} {} is too large for f64", shown_word(text.as_bytes())),
            ));
        }
        if self.single {
            return self.round_to_single(value, start, what);
        }
        self.note_vanished(value, start, what);
        Ok(value)
    }

    /// Records a nonzero number that became zero.
    fn note_vanished(&mut self, value: f64, start: usize, what: &str) {
        let word = self.word(start);
        let mantissa = word.split(|b| b.is_ascii_alphabetic()).next().unwrap_or_default();
        if value == 0.0 && mantissa.iter().any(|b| (b'1'..=b'9').contains(b)) {
            self.rounding.vanished.push(start, || format!("the {what} {}", shown_word(word)), value);
        }
    }

    /// The word at `start` in Rust's syntax for decimal numbers.
    fn decimal(&self, start: usize, what: &str) -> Result<String, Fault> {
        let word = self.word(start);
        let plain = |b: &u8| b.is_ascii_digit() || b"+-.eEdD".contains(b);
        if word.is_empty() || !word.iter().all(plain) {
            let text = String::from_utf8_lossy(word);
            return Err(match text.parse::<f64>() {
                Ok(_) => Fault::new(start, format!("the {what} should be finite, got `{text}`")),
                Err(_) => self.unexpected(start, what, "a real number"),
            });
        }
        Ok(String::from_utf8_lossy(word).replace(['d', 'D'], "e"))
    }

    /// The `f32` nearest to the text, which may differ from that of `value`.
    fn round_to_single(&mut self, value: f64, start: usize, what: &str) -> Result<f64, Fault> {
        let single = if may_round_twice(value) {
            let text = self.decimal(start, what)?;
            let single: f32 = text.parse().map_err(|_| self.unexpected(start, what, "a real number"))?;
            self.note_vanished(f64::from(single), start, what);
            single
        } else {
            value as f32
        };
        if !single.is_finite() {
            return Err(Fault::new(
                start,
                format!("the {what} {} is too large for f32", shown_word(self.word(start))),
            ));
        }
        Ok(f64::from(single))
    }

    /// A 64-bit integer.
    pub(super) fn integer(&mut self, what: &str) -> Result<f64, Fault> {
        self.skip_blanks();
        let start = self.at;
        let word = self.word(start);
        self.at += word.len();
        let text = std::str::from_utf8(word).unwrap_or_default();
        match text.parse::<i64>() {
            Ok(n) => {
                let value = if self.single { f64::from(n as f32) } else { n as f64 };
                // `i64::MAX` rounds to one more in floating point, which is not an `i64`.
                if value as i128 != i128::from(n) {
                    self.rounding.inexact.push(start, || format!("the {what} {}", shown_word(word)), value);
                }
                Ok(value)
            }
            Err(e)
                if matches!(
                    e.kind(),
                    std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow
                ) =>
            {
                Err(Fault::new(
                    start,
                    format!("the {what} {} is too large for a 64-bit integer", shown_word(word)),
                ))
            }
            Err(_) => Err(self.unexpected(start, what, "a whole number")),
        }
    }
}
