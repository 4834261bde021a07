//! Plots as SVG or PNG, drawn by the same code, with a bundled font.
pub(crate) mod axis;
mod convergence;
pub(crate) mod figure;
mod race;
mod speeds;
mod spy;

pub(crate) use convergence::convergence;
pub(crate) use figure::check_name;
pub(crate) use race::race;
pub(crate) use speeds::speeds;
pub(crate) use spy::spy;
