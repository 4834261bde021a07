//! Arguments of the form `--name value`.
use std::collections::HashMap;
use std::str::FromStr;

/// The arguments of a program.
pub struct Args(HashMap<String, String>);

impl Args {
    /// Reads the process's arguments. The usage names every argument as `--name`; anything else, and `--help`, ends
    /// the program with the usage.
    pub fn parse(usage: &str) -> Self {
        let mut given = std::env::args().skip(1);
        let mut values = HashMap::new();
        while let Some(name) = given.next() {
            let known = usage.split_whitespace().any(|word| word.trim_start_matches('[') == name);
            match given.next() {
                Some(value) if known && name.starts_with("--") => values.insert(name, value),
                _ => {
                    eprintln!("{usage}");
                    std::process::exit(if name == "--help" { 0 } else { 2 });
                }
            };
        }
        Args(values)
    }

    /// The text given for `name`, or `otherwise`.
    pub fn text<'a>(&'a self, name: &str, otherwise: &'a str) -> &'a str {
        self.0.get(name).map_or(otherwise, |value| value)
    }

    /// The text given for `name`, if any.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.as_str())
    }

    /// The comma-separated values given for `name`, or those of `otherwise`.
    ///
    /// # Errors
    /// Where one is not what it should be.
    pub fn list<T: FromStr>(&self, name: &str, otherwise: &str) -> Result<Vec<T>, String> {
        let text = self.text(name, otherwise);
        let items = text.split(',').filter(|item| !item.is_empty());
        items.map(|item| item.parse().map_err(|_| format!("{name}: cannot read `{item}`"))).collect()
    }

    /// The number given for `name`, or `otherwise`.
    ///
    /// # Errors
    /// Where it is not a number.
    pub fn number<T: FromStr>(&self, name: &str, otherwise: T) -> Result<T, String> {
        self.given(name)
            .map_or(Ok(otherwise), |v| v.parse().map_err(|_| format!("{name}: cannot read `{v}`")))
    }
}
