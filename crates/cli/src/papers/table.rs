//! Tables as Markdown, with columns of equal width.

/// A table below its title.
pub(super) struct Table {
    title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(title: &str, head: &[&str]) -> Self {
        Table { title: title.into(), head: head.iter().map(|h| h.to_string()).collect(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut row: Vec<String> = cells.into_iter().collect();
        row.resize(self.head.len(), String::new());
        self.rows.push(row);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The title, an empty line, and the table.
    pub(super) fn text(&self) -> String {
        let width = |k: usize| {
            self.rows.iter().chain([&self.head]).map(|row| row[k].chars().count()).max().unwrap_or(0).max(3)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(k, (cell, &width))| match k {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
        };
        let rule = |(k, &width): (usize, &usize)| match k {
            0 => "-".repeat(width + 2),
            _ => "-".repeat(width + 1) + ":",
        };
        let rules = widths.iter().enumerate().map(rule).collect::<Vec<_>>().join("|");
        let rows = self.rows.iter().map(line).collect::<Vec<_>>().join("\n");
        format!("{}\n\n{}\n|{rules}|\n{rows}", self.title, line(&self.head))
    }
}

/// A number in the form of the papers: 1.19e-6; a dash where there is none.
pub(super) fn error(value: Option<f64>) -> String {
    value.map_or("-".into(), |v| format!("{v:.2e}"))
}

/// A number with two digits behind the point.
pub(super) fn two(value: Option<f64>) -> String {
    value.filter(|v| v.is_finite()).map_or("-".into(), |v| format!("{v:.2}"))
}

/// Seconds as milliseconds.
pub(super) fn milliseconds(seconds: Option<f64>) -> String {
    seconds.map_or("-".into(), |s| {
        let ms = 1e3 * s;
        if ms < 10.0 { format!("{ms:.3}") } else { format!("{ms:.1}") }
    })
}

/// Seconds as microseconds.
pub(super) fn microseconds(seconds: Option<f64>) -> String {
    seconds.map_or("-".into(), lacuna_measure::quantity::micros)
}

/// A part of one as per cent.
pub(super) fn percent(part: Option<f64>) -> String {
    part.filter(|v| v.is_finite()).map_or("-".into(), |v| format!("{:.1} %", 100.0 * v))
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new("A table", &["matrix", "µs"]);
        table.row(["a".into(), "1.25".into()]);
        table.row(["banded".into()]);
        let expected =
            "A table\n\n| matrix |   µs |\n|--------|-----:|\n| a      | 1.25 |\n| banded |      |";
        assert_eq!(table.text(), expected);
    }
}
