//! Reads text in blocks of whole lines.
use std::io::{self, Read};

/// Bytes of a block: its entries stay in a core's cache while it is processed.
const BLOCK: usize = 1 << 20;
/// Maximum length of a line.
const LONGEST_LINE: usize = 1 << 24;

/// A source of text split at line ends.
pub(super) struct Blocks<R> {
    source: R,
    /// The start of a line whose end has not been read.
    rest: Vec<u8>,
}

impl<R: Read> Blocks<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, rest: Vec::new() }
    }

    /// Appends everything not yet returned to `text`.
    pub(super) fn into_rest(mut self, text: &mut Vec<u8>) -> io::Result<()> {
        text.append(&mut self.rest);
        self.source.read_to_end(text).map(|_| ())
    }

    /// Reads whole lines into `block`, at least one; none at the end of the text. Adds a missing line end to
    /// the last line.
    pub(super) fn next(&mut self, block: &mut Vec<u8>) -> io::Result<bool> {
        block.clear();
        block.append(&mut self.rest);
        let mut searched = 0;
        loop {
            let wanted = BLOCK.saturating_sub(block.len()).max(BLOCK / 4);
            let got = self.source.by_ref().take(wanted as u64).read_to_end(block)?;
            if got == 0 {
                if block.last().is_some_and(|&b| b != b'\n') {
                    block.push(b'\n');
                }
                return Ok(!block.is_empty());
            }
            if let Some(end) = block[searched..].iter().rposition(|&b| b == b'\n') {
                self.rest.extend_from_slice(&block[searched + end + 1..]);
                block.truncate(searched + end + 1);
                return Ok(true);
            }
            searched = block.len();
            if searched > LONGEST_LINE {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("a line of more than {LONGEST_LINE} bytes: this is no Matrix Market file"),
                ));
            }
        }
    }
}
