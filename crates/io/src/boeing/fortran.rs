//! Fortran formats: the positions of numbers on a line, and their values without a decimal point or an
//! exponent.
use std::str::FromStr;

/// Maximum number of fields of a line.
const FIELDS: usize = 1 << 12;
/// Maximum number of characters of a line.
const COLUMNS: usize = 1 << 16;
/// Maximum nesting depth of groups.
const DEPTH: usize = 8;

/// The fields of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) fields: Vec<Field>,
}

/// A number on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// The first character, counted from 0.
    pub(super) start: usize,
    /// Number of characters.
    pub(super) width: usize,
    /// Digits after the decimal point if none is written.
    pub(super) decimals: i32,
    /// The power of ten that a number without exponent is divided by.
    pub(super) scale: i32,
}

impl Format {
    /// Parses a format with its parentheses, such as `(1P,4E20.12)`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text: Vec<u8> =
            text.bytes().filter(|b| !b.is_ascii_whitespace()).map(|b| b.to_ascii_uppercase()).collect();
        let mut parser = Parser { text: &text, at: 0, column: 0, scale: 0, fields: Vec::new() };
        parser.group(0)?;
        (parser.at == text.len() && !parser.fields.is_empty()).then_some(Format { fields: parser.fields })
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    column: usize,
    scale: i32,
    fields: Vec<Field>,
}

impl Parser<'_> {
    fn accept(&mut self, symbol: u8) -> bool {
        let is_there = self.text.get(self.at) == Some(&symbol);
        self.at += usize::from(is_there);
        is_there
    }

    fn number(&mut self) -> Option<usize> {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        std::str::from_utf8(&self.text[start..self.at]).ok()?.parse().ok().filter(|&n| n <= COLUMNS)
    }

    /// Items between parentheses.
    fn group(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH || !self.accept(b'(') {
            return None;
        }
        while !self.accept(b')') {
            self.item(depth)?;
            self.accept(b',');
        }
        Some(())
    }

    fn item(&mut self, depth: usize) -> Option<()> {
        let negative = self.accept(b'-');
        let count = if self.text.get(self.at)?.is_ascii_digit() { Some(self.number()?) } else { None };
        if self.accept(b'P') {
            let scale = i32::try_from(count?).ok()?;
            self.scale = if negative { -scale } else { scale };
            return (scale < 100).then_some(());
        }
        let repeats = count.unwrap_or(1);
        if negative || repeats == 0 {
            return None;
        }
        if self.text.get(self.at) == Some(&b'(') {
            let begin = self.at;
            for _ in 0..repeats {
                self.at = begin;
                let before = self.fields.len();
                self.group(depth + 1)?;
                // Otherwise repeating an empty group could take long without any result.
                if self.fields.len() == before {
                    return None;
                }
            }
            return Some(());
        }
        let letter = *self.text.get(self.at)?;
        self.at += 1;
        match letter {
            b'X' => self.advance(repeats),
            b'I' | b'F' | b'E' | b'D' | b'G' => {
                // EN and ES are read like E.
                if letter == b'E' && matches!(self.text.get(self.at), Some(b'N' | b'S')) {
                    self.at += 1;
                }
                let width = self.number().filter(|&width| width > 0)?;
                let decimals = if self.accept(b'.') { self.number().filter(|&d| d < 100)? } else { 0 };
                if matches!(letter, b'E' | b'G' | b'D') && self.accept(b'E') {
                    self.number()?;
                }
                let decimals = if letter == b'I' { 0 } else { decimals as i32 };
                for _ in 0..repeats {
                    let field = Field { start: self.column, width, decimals, scale: self.scale };
                    self.fields.push(field);
                    self.advance(width)?;
                }
                Some(())
            }
            _ => None,
        }
    }

    fn advance(&mut self, columns: usize) -> Option<()> {
        self.column += columns;
        (self.column <= COLUMNS && self.fields.len() <= FIELDS).then_some(())
    }
}

impl Field {
    /// The number in a field, rounded once, by Fortran's rules: blanks are ignored, and the letter of an
    /// exponent may be missing.
    pub(super) fn real<T: FromStr>(self, text: &[u8]) -> Option<T> {
        let mut plain = String::with_capacity(text.len() + 8);
        let (mut has_point, mut has_exponent) = (false, false);
        for &byte in text {
            match byte {
                b' ' | b'\t' => {}
                b'D' | b'd' | b'E' | b'e' | b'Q' | b'q' if !has_exponent => {
                    has_exponent = true;
                    plain.push('e');
                }
                b'+' | b'-' => {
                    if !plain.is_empty() && !plain.ends_with('e') && !has_exponent {
                        has_exponent = true;
                        plain.push('e');
                    }
                    plain.push(char::from(byte));
                }
                b'.' if !has_exponent => {
                    has_point = true;
                    plain.push('.');
                }
                b'0'..=b'9' => plain.push(char::from(byte)),
                _ => return None,
            }
        }
        let mut power = 0;
        if !has_point {
            power -= self.decimals;
        }
        if !has_exponent {
            power -= self.scale;
        }
        if power != 0 {
            // The scale is merged into the exponent, so that the number is rounded once.
            let (digits, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
            let exponent = exponent.trim_start_matches('+').parse::<i32>().ok()?;
            plain = format!("{digits}e{}", exponent.checked_add(power)?);
        }
        plain.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_real_files() {
        let parsed = |text: &str| {
            let format = Format::parse(text)?;
            let last = *format.fields.last()?;
            Some((format.fields.len(), last.start, last.width, last.decimals, last.scale))
        };
        for (text, expected) in [
            ("(16I5)", (16, 75, 5, 0, 0)),
            ("(4E20.12)", (4, 60, 20, 12, 0)),
            ("(1P,5D16.8)", (5, 64, 16, 8, 1)),
            ("(1p4e20.13)", (4, 60, 20, 13, 1)),
            ("( 10 F8.3 )", (10, 72, 8, 3, 0)),
            ("(3(1X,E25.16E3))", (3, 53, 25, 16, 0)),
            ("(I14)", (1, 0, 14, 0, 0)),
            ("(2I8,1X,I4)", (3, 17, 4, 0, 0)),
        ] {
            assert_eq!(parsed(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "()",
            "(16I)",
            "16I5",
            "(I5",
            "(A8)",
            "(9999999I5)",
            "(99999(I5))",
            "(I0)",
            "((((((((((I5))))))))))",
            "(9(9(9(1X))))",
            "(65536(65536(1P)))",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_as_fortran_reads_them() {
        let field = |decimals, scale| Field { start: 0, width: 20, decimals, scale };
        for (text, decimals, scale, expected) in [
            (" 1.5D+02", 3, 1, Some(150.0)),
            ("-1.5-002", 3, 0, Some(-0.015)),
            ("12345", 2, 0, Some(123.45)),
            ("12345E1", 2, 0, Some(1234.5)),
            ("12.5", 2, 1, Some(1.25)),
            (" 1 2 ", 0, 0, Some(12.0)),
            ("*****", 2, 0, None),
            ("nan", 2, 0, None),
            ("1e1e1", 2, 0, None),
            ("", 2, 0, None),
        ] {
            assert_eq!(field(decimals, scale).real::<f64>(text.as_bytes()), expected, "{text}");
        }
    }
}
