//! Tables in Markdown.

/// Rows of cells under headings; a heading that begins with `>` marks a column of numbers.
pub(super) struct Grid {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    pub(super) fn new(headings: Vec<String>) -> Self {
        Grid { headings, rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(super) fn text(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let cells: String = cells.map(|cell| format!(" {cell} |")).collect();
            format!("|{cells}\n")
        };
        let under: String =
            self.headings.iter().map(|h| if h.starts_with('>') { "--:|" } else { "---|" }).collect();
        let mut text = line(&mut self.headings.iter().map(|h| h.trim_start_matches('>')));
        text += &format!("|{under}\n");
        text.extend(self.rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
        text
    }
}
