//! Lines of fields.
use super::fortran::Format;
use crate::elements::{Contents, Decimals, may_round_twice, reading};
use lacuna_engine::text::{escaped, shown_word};
use lacuna_engine::{Error, Result, memory, pages};
use std::ops::RangeInclusive;

/// The lines of a file.
pub(super) struct Lines<'a> {
    contents: &'a Contents,
    at: usize,
    /// The number of the last line read, counted from 1.
    number: u64,
}

/// The words of a line with their start positions.
pub(super) fn words(line: &[u8]) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    let mut at = 0;
    for word in line.split(u8::is_ascii_whitespace) {
        if !word.is_empty() {
            words.push((at, String::from_utf8_lossy(word).into_owned()));
        }
        at += word.len() + 1;
    }
    words
}

impl<'a> Lines<'a> {
    pub(super) fn new(contents: &'a Contents) -> Self {
        Lines { contents, at: 0, number: 0 }
    }

    pub(super) fn name(&self) -> &'a str {
        &self.contents.name
    }

    /// The error at the last line read. Columns count from 1; 0 means the whole line.
    pub(super) fn wrong(&self, column: usize, message: String) -> Error {
        let (source_name, line) = (self.contents.name.clone(), self.number.max(1));
        Error::Parse { source_name, line, column: column as u64, message: escaped(&message).into_owned() }
    }

    /// The next line.
    pub(super) fn next(&mut self, what: &str) -> Result<&'a [u8]> {
        let rest = &self.contents.bytes[self.at..];
        if rest.is_empty() {
            return Err(self.wrong(0, format!("the file ends after this line, {what} should follow")));
        }
        let length = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
        self.at += (length + 1).min(rest.len());
        self.number += 1;
        let line = &rest[..length];
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// An integer at byte `at` of the last line read.
    pub(super) fn whole(&self, at: usize, word: &str, what: &str, range: RangeInclusive<u64>) -> Result<u64> {
        match word.parse::<u64>() {
            Ok(number) if range.contains(&number) => Ok(number),
            Ok(_) => {
                let (first, last, got) = (range.start(), range.end(), shown_word(word));
                Err(self.wrong(at + 1, format!("{what} should be {first} to {last}, got {got}")))
            }
            Err(_) => {
                let message = format!("{what} should be a whole number, got `{}`", shown_word(word));
                Err(self.wrong(at + 1, message))
            }
        }
    }

    /// The formats of a line.
    pub(super) fn formats(&self, line: &[u8]) -> Result<Vec<Format>> {
        let (mut formats, mut depth, mut start) = (Vec::new(), 0, 0);
        for (at, &byte) in line.iter().enumerate() {
            match byte {
                b'(' => {
                    if depth == 0 {
                        start = at;
                    }
                    depth += 1;
                }
                b')' if depth > 0 => {
                    depth -= 1;
                    if depth == 0 {
                        let text = String::from_utf8_lossy(&line[start..=at]);
                        let format = Format::parse(&text).ok_or_else(|| {
                            let expected = "expected a Fortran format of numbers such as (10I8)";
                            self.wrong(start + 1, format!("{expected}, got `{}`", shown_word(&*text)))
                        })?;
                        formats.push(format);
                    }
                }
                _ => {}
            }
        }
        Ok(formats)
    }

    /// Calls `take` with each of `count` fields and the column that it begins at.
    fn fields(
        &mut self,
        format: &Format,
        count: u64,
        what: &str,
        mut take: impl FnMut(&Self, usize, usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        // Each takes at least one character.
        let left = (self.contents.bytes.len() - self.at) as u64;
        if count > left {
            let message = format!("{count} fields should follow, each a {what}; {left} characters are left");
            return Err(self.wrong(0, message));
        }
        let mut taken = 0;
        while taken < count {
            let line = self.next(&format!("{} more fields, each a {what},", count - taken))?;
            let most = (count - taken).min(1 << 20) as usize;
            let columns = |start: usize, width: usize| {
                line.get(start.min(line.len())..(start + width).min(line.len())).unwrap_or_default()
            };
            // Files that do not follow their declared format have several words in one field.
            let words = format.fields.iter().take(most).any(|f| has_words(columns(f.start, f.width)));
            let mut at = 0;
            for (k, field) in format.fields.iter().enumerate().take(most) {
                let (start, text) = if words {
                    at += line[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                    let length = line[at..].iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
                    at += length;
                    (at - length, &line[at - length..at])
                } else {
                    (field.start, columns(field.start, field.width))
                };
                if words && text.is_empty() {
                    break;
                }
                if text.trim_ascii().is_empty() {
                    let message = format!("a {what} is missing: expected field {} of the line", k + 1);
                    return Err(self.wrong(start + 1, message));
                }
                take(self, k, start, text)?;
                taken += 1;
            }
        }
        Ok(())
    }

    /// Integers in a range that begins at 1, minus 1.
    pub(super) fn wholes(
        &mut self,
        format: &Format,
        count: u64,
        what: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Vec<u32>> {
        let mut wholes: Vec<u32> = Vec::new();
        self.reserve(&mut wholes, count)?;
        self.fields(format, count, what, |lines, _, start, text| {
            let word = String::from_utf8_lossy(text.trim_ascii());
            let blanks = text.len() - text.trim_ascii_start().len();
            let number = lines.whole(start + blanks, &word, &format!("a {what}"), range.clone())?;
            wholes.push((number - 1) as u32);
            Ok(())
        })?;
        Ok(wholes)
    }

    /// Real numbers.
    pub(super) fn numbers(&mut self, format: &Format, count: u64, what: &str) -> Result<Decimals> {
        let mut numbers = Decimals::default();
        self.reserve(&mut numbers.doubles, count)?;
        self.fields(format, count, what, |lines, k, start, text| {
            let field = format.fields[k];
            let number = field.real::<f64>(text).filter(|number| number.is_finite());
            let number = number.ok_or_else(|| {
                let got = shown_word(text.trim_ascii());
                lines.wrong(start + 1, format!("a {what} should be a finite real number, got `{got}`"))
            })?;
            let single = if may_round_twice(number) { field.real::<f32>(text) } else { None };
            if let Some(single) = single.filter(|single| *single != number as f32) {
                numbers.singles.push((numbers.doubles.len(), single));
            }
            numbers.doubles.push(number);
            Ok(())
        })?;
        Ok(numbers)
    }

    /// Reserves space for as many elements as there may be.
    fn reserve<T: bytemuck::Zeroable>(&self, array: &mut Vec<T>, count: u64) -> Result<()> {
        let left = (self.contents.bytes.len() - self.at) as u64;
        let operation = reading(self.name());
        memory::check(&operation, count.min(left).saturating_mul(size_of::<T>() as u64))?;
        *array = pages::zeroed(&operation, count.min(left) as usize)?;
        array.clear();
        Ok(())
    }
}

/// Whether a field has several words. A blank may replace the sign of an exponent.
fn has_words(text: &[u8]) -> bool {
    let ends = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    text.trim_ascii().windows(2).any(|pair| ends(&pair[0]) && pair[1] == b' ')
}
