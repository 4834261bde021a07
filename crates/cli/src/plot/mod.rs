//! Plots as SVG; with the feature `png` also as PNG, drawn by the same code.
pub(crate) mod axis;
mod convergence;
pub(crate) mod figure;
#[cfg(feature = "png")]
mod png;
mod race;
mod speeds;
mod spy;

pub(crate) use convergence::convergence;
pub(crate) use figure::check_name;
pub(crate) use race::race;
pub(crate) use speeds::speeds;
pub(crate) use spy::spy;
