//! Plots as SVG; with the feature `png` also as PNG, drawn by the same code.
mod columns;
mod convergence;
mod curves;
mod file;
#[cfg(feature = "png")]
mod png;
mod race;
mod residuals;
mod rows;
mod spectrum;
mod speeds;
mod spy;

pub(crate) use columns::columns;
pub(crate) use convergence::convergence;
pub(crate) use curves::{Curves, Over};
pub(crate) use file::{check_name, check_option, save};
pub(crate) use race::race;
pub(crate) use residuals::residuals;
pub(crate) use rows::rows;
pub(crate) use spectrum::{plane, spectrum};
pub(crate) use speeds::speeds;
pub(crate) use spy::spy;
