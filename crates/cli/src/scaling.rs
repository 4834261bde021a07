//! How a matrix is scaled, and its structural rank, for `lacuna info --why`.
use lacuna::formats::matching;
use lacuna::{Csr, Scalar};
use lacuna_measure::quantity::{many, thousands};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// How the sizes of the entries spread, and the rank that their positions allow.
pub(crate) struct Scaling {
    /// The smallest and the largest modulus of the nonzero entries, of the largest in a row, and of the largest in a
    /// column.
    entries: [f64; 2],
    rows: [f64; 2],
    columns: [f64; 2],
    empty_columns: usize,
    /// Of a matrix whose values are chosen freely, on the same nonzero pattern.
    structural_rank: usize,
}

impl Scaling {
    /// `None` without any nonzero entry.
    pub(crate) fn of<T: Scalar>(a: &Csr<T>) -> Option<Self> {
        let spread = |moduli: &mut dyn Iterator<Item = f64>| {
            let nonzero = moduli.filter(|modulus| *modulus > 0.0).map(|modulus| [modulus; 2]);
            nonzero.reduce(|[low, high], [a, b]| [f64::min(low, a), f64::max(high, b)])
        };
        let mut largest = [vec![0.0; a.rows()], vec![0.0; a.cols()]];
        for (i, j, v) in a.entries() {
            let [rows, columns] = &mut largest;
            for most in [&mut rows[i], &mut columns[j]] {
                *most = f64::max(*most, v.modulus());
            }
        }
        let [rows, columns] = &largest;
        Some(Scaling {
            entries: spread(&mut a.entries().map(|(_, _, v)| v.modulus()))?,
            rows: spread(&mut rows.iter().copied())?,
            columns: spread(&mut columns.iter().copied())?,
            empty_columns: columns.iter().filter(|most| **most == 0.0).count(),
            structural_rank: matching(a).iter().flatten().count(),
        })
    }

    pub(crate) fn write(&self, text: &mut String, most: usize) -> std::fmt::Result {
        let between = |[low, high]: [f64; 2]| format!("{low:.1e} to {high:.1e}");
        let [entries, rows, columns] = [self.entries, self.rows, self.columns].map(between);
        let empty = match self.empty_columns {
            0 => String::new(),
            count => format!("; {} without a nonzero entry", many(count, "column", "columns")),
        };
        writeln!(text, "  values      {entries}; the largest of a row {rows}, of a column {columns}{empty}")?;
        let rank = self.structural_rank;
        let singular =
            if rank < most { ": rows or columns depend on others, whatever the values" } else { "" };
        let [rank, most] = [rank, most].map(|count| thousands(count as u64));
        writeln!(text, "  rank        {rank} of {most} by the positions of the entries{singular}")
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "entries": self.entries,
            "rows": self.rows,
            "columns": self.columns,
            "empty_columns": self.empty_columns,
            "structural_rank": self.structural_rank,
        })
    }
}
