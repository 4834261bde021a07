//! Text with holes for numbers, so that two texts that differ only in numbers are equal.

/// A text; hole `k` is written `@k@`.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    pub(super) text: String,
    /// The number of each hole.
    pub(super) holes: Vec<u32>,
    names: usize,
    /// Lines placed before all others.
    pub(super) early: String,
}

impl Text {
    /// Adds a hole for a number; returns the placeholder.
    pub(super) fn hole(&mut self, value: u32) -> String {
        self.holes.push(value);
        format!("@{}@", self.holes.len() - 1)
    }
    /// A new number for a name in this text.
    pub(super) fn names(&mut self) -> usize {
        self.names += 1;
        self.names
    }
    /// Adds a line.
    pub(super) fn line(&mut self, line: &str) {
        self.text += "        ";
        self.text += line;
        self.text.push('\n');
    }
}

/// The text with its holes filled.
pub(super) fn fill(text: &str, places: &[String]) -> String {
    let parts = text.split('@').enumerate();
    parts
        .map(|(i, part)| match (i % 2, part.parse::<usize>()) {
            (1, Ok(hole)) => places[hole].as_str(),
            _ => part,
        })
        .collect()
}
