//! Text with holes for numbers, so that two texts that differ in numbers alone are the same.

/// A text; a hole is written `@k@`.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    pub(super) text: String,
    /// The number of each hole.
    pub(super) holes: Vec<u32>,
    names: usize,
    /// Lines that come before all others.
    pub(super) early: String,
}

impl Text {
    /// A hole for a number: what to write in its place.
    pub(super) fn hole(&mut self, value: u32) -> String {
        self.holes.push(value);
        format!("@{}@", self.holes.len() - 1)
    }
    /// A number that no name of this text has yet.
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
