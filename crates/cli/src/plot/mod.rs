//! Plots as SVG; with the feature `png` also as PNG, drawn by the same code.
mod convergence;
mod file;
#[cfg(feature = "png")]
mod png;
mod race;
mod spectrum;
mod speeds;
mod spy;

pub(crate) use convergence::convergence;
pub(crate) use file::{check_name, save};
pub(crate) use race::race;
pub(crate) use spectrum::spectrum;
pub(crate) use speeds::speeds;
pub(crate) use spy::spy;
