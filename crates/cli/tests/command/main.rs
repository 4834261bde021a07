//! The command as people and scripts use it.
mod advise;
mod bench;
mod compare;
#[cfg(unix)]
mod faults;
mod files;
mod formats;
#[cfg(unix)]
mod guide;
mod hostile;
mod json;
mod other;
mod page;
mod papers;
#[cfg(feature = "png")]
mod png;
mod ranks;
mod solve;
mod spectra;

pub(crate) use bench::{Bench, Ran};

/// The command.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_lacuna");

/// The backends of this build, in order of preference.
pub(crate) fn built_in() -> Vec<&'static str> {
    lacuna::backends().into_iter().filter(|b| b.built_in).map(|b| b.name).collect()
}

/// The backend that is used if none is named.
pub(crate) fn preferred() -> &'static str {
    lacuna::default_device().unwrap().info().backend
}

impl Bench {
    /// Writes a general real matrix; each entry is a line, counted from 1.
    pub(crate) fn matrix(&self, name: &str, rows: usize, cols: usize, entries: &[&str]) -> &Self {
        let lines = entries.join("\n");
        let sizes = format!("{rows} {cols} {}", entries.len());
        self.file(name, &format!("%%MatrixMarket matrix coordinate real general\n{sizes}\n{lines}\n"))
    }

    pub(crate) fn vector(&self, name: &str, elements: &[f64]) -> &Self {
        let lines: String = elements.iter().map(|v| format!("{v}\n")).collect();
        let count = elements.len();
        self.file(name, &format!("%%MatrixMarket matrix array real general\n{count} 1\n{lines}"))
    }

    /// Writes columns of `rows` elements each as an array of NumPy.
    pub(crate) fn columns(&self, name: &str, rows: usize, values: &[f64]) -> &Self {
        let array = lacuna::io::DenseArray { rows, cols: values.len() / rows, values: values.to_vec() };
        lacuna::io::write_columns(self.path(name), &array).unwrap();
        self
    }

    /// The matrix most tests use: `A (1, 1, 1) = (5, 5, 6)`.
    pub(crate) fn with_spd(self) -> Self {
        self.matrix("a.mtx", 3, 3, &["1 1 4", "2 2 3", "3 3 5", "1 2 1", "2 1 1", "2 3 1", "3 2 1"]);
        self
    }

    /// Solves and returns the JSON.
    pub(crate) fn solve(&self, args: &str) -> (i32, serde_json::Value) {
        let ran = self.run(&format!("solve --quiet --json - {args}"));
        assert_eq!(ran.err, "", "{args}");
        (ran.code, serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{args}: {e}: {}", ran.out)))
    }
}
