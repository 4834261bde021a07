//! `NAME:key=value,…`: the syntax that names methods and preconditioners with their options.
use lacuna_engine::text::did_you_mean;
use lacuna_engine::{Error, Result};
use std::fmt::Display;
use std::str::FromStr;

/// An option of a method or preconditioner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// Its key.
    pub key: &'static str,
    /// Its value if none is given.
    pub default: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
}

/// The numbers that an option may have.
pub(crate) struct Bounds<N> {
    /// Their description.
    pub(crate) expected: &'static str,
    pub(crate) least: N,
    pub(crate) most: N,
}

impl<N: PartialOrd + Display + Copy> Bounds<N> {
    fn contain(&self, number: &N) -> bool {
        (self.least..=self.most).contains(number)
    }

    /// Fails for a number that is not among them.
    pub(crate) fn check(&self, what: &str, key: &str, number: N) -> Result<()> {
        if self.contain(&number) {
            return Ok(());
        }
        let message = format!("{key}: expected {}, got {number}", self.expected);
        Err(Error::Argument { what: what.into(), message })
    }
}

/// The part of `NAME:key=value,…` before the colon.
pub fn name_of(text: &str) -> &str {
    text.split_once(':').map_or(text, |(name, _)| name)
}

/// The options given with a name, checked against those that are known.
pub(crate) struct Settings<'a> {
    what: &'static str,
    name: &'a str,
    given: Vec<(&'a str, &'a str)>,
    known: &'static [OptionInfo],
    /// Options that all items of this kind have.
    shared: &'static [OptionInfo],
}

impl<'a> Settings<'a> {
    /// The options in a text.
    ///
    /// # Errors
    /// [`Error::Argument`] for a key that is unknown or given twice, with the known keys, and for text that
    /// is not `key=value`.
    pub(crate) fn parse(what: &'static str, text: &'a str, known: &'static [OptionInfo]) -> Result<Self> {
        Self::parse_with(what, text, known, &[])
    }

    /// [`Settings::parse`] with additional options that all items of this kind have.
    ///
    /// # Errors
    /// As [`Settings::parse`].
    pub(crate) fn parse_with(
        what: &'static str,
        text: &'a str,
        known: &'static [OptionInfo],
        shared: &'static [OptionInfo],
    ) -> Result<Self> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let mut settings = Settings { what, name, given: Vec::new(), known, shared };
        for option in options.split(',').filter(|option| !option.trim().is_empty()) {
            let Some((key, value)) = option.split_once('=') else {
                return Err(settings.refused(format!("expected `key=value`, got `{option}`")));
            };
            let (key, value) = (key.trim(), value.trim());
            if !settings.options().any(|option| option.key == key) {
                let near = did_you_mean(settings.options().map(|option| option.key), key);
                return Err(settings.refused(format!("{}, got `{key}`{near}", settings.keys())));
            }
            if settings.given.iter().any(|(earlier, _)| *earlier == key) {
                return Err(settings.refused(format!("`{key}` is given twice")));
            }
            settings.given.push((key, value));
        }
        Ok(settings)
    }

    fn options(&self) -> impl Iterator<Item = &'static OptionInfo> + use<> {
        self.known.iter().chain(self.shared)
    }

    fn keys(&self) -> String {
        let described = |option: &OptionInfo| format!("{}={} ({})", option.key, option.default, option.about);
        let list: Vec<_> = self.options().map(described).collect();
        match &list[..] {
            [] => "it has no options".into(),
            _ => format!("its options are {}", list.join(", ")),
        }
    }

    fn refused(&self, message: String) -> Error {
        Error::Argument { what: format!("{} {}", self.what, self.name), message }
    }

    /// The text given for a key, if any.
    pub(crate) fn given(&self, key: &str) -> Option<&'a str> {
        self.given.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    /// The one of several keys for the same option that was given, or the last.
    ///
    /// # Errors
    /// [`Error::Argument`] if several were given.
    pub(crate) fn one_of<'k>(&self, keys: &[&'k str]) -> Result<&'k str> {
        let mut given = keys.iter().filter(|key| self.given(key).is_some());
        match (given.next(), given.next()) {
            (Some(one), Some(other)) => {
                Err(self.refused(format!("`{one}` and `{other}` are the same option; expected one of them")))
            }
            (one, _) => Ok(one.or(keys.last()).copied().unwrap_or_default()),
        }
    }

    /// Fails for two numbers in the wrong order.
    pub(crate) fn below(&self, [low, high]: [&str; 2], [less, more]: [f64; 2]) -> Result<()> {
        if less < more {
            return Ok(());
        }
        Err(self.refused(format!("{low}: expected a number below {high}={more}, got {less}")))
    }

    /// The number given for a key, or its default.
    ///
    /// # Errors
    /// [`Error::Argument`] for text that is not such a number or that `holds` rejects; `expected` describes a
    /// valid value.
    pub(crate) fn number<N: FromStr>(
        &self,
        key: &str,
        expected: &str,
        holds: impl Fn(&N) -> bool,
    ) -> Result<N> {
        let default = self.options().find(|option| option.key == key).map_or("", |option| option.default);
        let text = self.given(key).unwrap_or(default);
        let number = text.parse().ok().filter(holds);
        number.ok_or_else(|| self.refused(format!("{key}: expected {expected}, got `{text}`")))
    }

    /// The number given for a key, or its default, within bounds.
    ///
    /// # Errors
    /// As [`Settings::number`].
    pub(crate) fn within<N: FromStr + PartialOrd + Display + Copy>(
        &self,
        key: &str,
        bounds: &Bounds<N>,
    ) -> Result<N> {
        self.number(key, bounds.expected, |number| bounds.contain(number))
    }

    /// The choice given for a key, if any.
    ///
    /// # Errors
    /// [`Error::Argument`] for an invalid value, with the valid choices.
    pub(crate) fn choice<V: Copy>(&self, key: &str, choices: &[(&str, V)]) -> Result<Option<V>> {
        let Some(text) = self.given(key) else { return Ok(None) };
        let found = choices.iter().find(|(name, _)| *name == text);
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        let refused = || self.refused(format!("{key}: expected one of {}, got `{text}`", names.join(", ")));
        found.map(|(_, value)| Some(*value)).ok_or_else(refused)
    }
}

/// The error for an unknown name.
pub(crate) fn unknown<'n>(what: &str, names: impl Iterator<Item = &'n str>, got: &str) -> Error {
    let names: Vec<_> = names.collect();
    let near = did_you_mean(names.iter().copied(), name_of(got));
    Error::Argument {
        what: what.into(),
        message: format!("expected one of {}, got `{got}`{near}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{OptionInfo, Settings};

    const KNOWN: &[OptionInfo] = &[
        OptionInfo { key: "order", default: "2", about: "products" },
        OptionInfo { key: "omega", default: "0.5", about: "damping" },
    ];

    #[test]
    fn options_are_read_and_the_rest_are_defaults() {
        let settings = Settings::parse("preconditioner", "poly:order=3, omega=0.25", KNOWN).unwrap();
        assert_eq!(settings.number("order", "a count", |_: &usize| true).unwrap(), 3);
        assert_eq!(settings.number("omega", "a number", |_: &f64| true).unwrap(), 0.25);
        let settings = Settings::parse("preconditioner", "poly", KNOWN).unwrap();
        assert_eq!(settings.number("order", "a count", |_: &usize| true).unwrap(), 2);
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_do() {
        let parse = |text: &'static str| match Settings::parse("preconditioner", text, KNOWN) {
            Ok(settings) => settings.number("order", "a count", |_: &usize| true).map(drop),
            Err(error) => Err(error),
        };
        let error = |text| parse(text).unwrap_err().to_string();
        for (text, part) in [
            ("poly:degree=3", "its options are order=2 (products), omega=0.5 (damping), got `degree`"),
            ("poly:order", "expected `key=value`, got `order`"),
            ("poly:order=1,order=2", "`order` is given twice"),
            ("poly:order=x", "order: expected a count, got `x`"),
        ] {
            assert!(error(text).contains(part), "{}", error(text));
        }
    }
}
