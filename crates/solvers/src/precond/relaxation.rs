//! What the sweeps of over-relaxation share: their options, and the order of the rows.
use super::inverse_diagonal;
use crate::Parts;
use crate::named::{OptionInfo, Settings};
use lacuna_engine::{Result, Scalar};
use lacuna_formats::{Csr, Permutation, by_colours};
use std::borrow::Cow;

pub(super) const OMEGA: OptionInfo =
    OptionInfo { key: "omega", default: "1", about: "over-relaxation, above 0 and below 2" };
pub(super) const ORDER: OptionInfo =
    OptionInfo { key: "order", default: "colours", about: "of the rows: colours or natural" };

/// The relaxation, and whether rows are ordered by colours.
pub(super) fn named(settings: &Settings<'_>) -> Result<(f64, bool)> {
    let orders = [("colours", true), ("natural", false)];
    let omega = settings.number("omega", "a number above 0 and below 2", |w| *w > 0.0 && *w < 2.0)?;
    Ok((omega, settings.choice("order", &orders)?.unwrap_or(true)))
}

/// The options that differ from their defaults.
pub(super) fn said(omega: f64, coloured: bool) -> Vec<String> {
    let omega = (omega != 1.0).then(|| format!("omega={omega}"));
    omega.into_iter().chain((!coloured).then(|| "order=natural".into())).collect()
}

/// A matrix with its rows in the order of the sweeps.
pub(super) struct Ordered<'a, T: Scalar> {
    pub(super) a: Cow<'a, Csr<T>>,
    /// The inverse of its diagonal.
    pub(super) inverse: Vec<T>,
    /// The order by colours, and their number.
    colours: Option<(Permutation, usize)>,
}

impl<'a, T: Scalar> Ordered<'a, T> {
    /// # Errors
    /// As [`inverse_diagonal`], with rows of the matrix as given.
    pub(super) fn new(a: &'a Csr<T>, coloured: bool) -> Result<Self> {
        let inverse = inverse_diagonal(a)?;
        if !coloured {
            return Ok(Ordered { a: Cow::Borrowed(a), inverse, colours: None });
        }
        let (order, count) = by_colours(a);
        let inverse = order.order().iter().map(|&row| inverse[row as usize]).collect();
        Ok(Ordered { a: Cow::Owned(a.permuted(&order)?), inverse, colours: Some((order, count)) })
    }
    /// The row of the matrix as given for each row in this order.
    pub(super) fn names(&self) -> Option<&[u32]> {
        self.colours.as_ref().map(|(order, _)| order.order())
    }
    /// Adds the number of colours to the report.
    pub(super) fn report(&self, parts: Parts<T>) -> Parts<T> {
        match self.colours {
            Some((_, count)) => parts.report("colours", count),
            None => parts,
        }
    }
}
