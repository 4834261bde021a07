//! How a solve ended, as it is printed and shown in a notebook.
use lacuna::Outcome;
use pyo3::prelude::*;
use std::fmt::Write;

/// How a solve ended.
#[pyclass(frozen, module = "lacuna_sparse._core")]
pub(crate) struct Report {
    outcome: Outcome,
    x: Py<PyAny>,
    setup: f64,
}

impl Report {
    pub(crate) fn new(outcome: Outcome, x: Py<PyAny>, setup: f64) -> Self {
        Report { outcome, x, setup }
    }

    /// Name and value of each line.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let outcome = &self.outcome;
        let mut lines = vec![("", outcome.reason.to_string())];
        let restarts = match outcome.restarts {
            0 => String::new(),
            count => format!(", {count} restarts"),
        };
        lines.push(("iterations", format!("{}{restarts}", outcome.iterations)));
        let mut line = |name, value: f64, unit: &str| {
            if !value.is_nan() {
                lines.push((name, format!("{value:.2e}{unit}")));
            }
        };
        line("true residual", outcome.true_residual, " |b|");
        line("backward error", outcome.backward_error, "");
        line("misfit", outcome.misfit, " |b|");
        let seconds = outcome.time.as_secs_f64();
        lines.push(("time", format!("{seconds:.4} s, after a set-up of {:.4} s", self.setup)));
        lines.extend(outcome.choices.iter().map(|choice| ("chosen", choice.clone())));
        lines.extend(outcome.notes.iter().map(|note| ("note", note.clone())));
        if !outcome.why.is_empty() {
            lines.push(("why", outcome.why.clone()));
            lines.push(("try", outcome.advice.clone()));
        }
        lines
    }
}

#[pymethods]
impl Report {
    /// The solution, or the best vector that was found: the array that the solve returned.
    #[getter]
    fn x(&self, py: Python<'_>) -> Py<PyAny> {
        self.x.clone_ref(py)
    }
    #[getter]
    fn reason(&self) -> &'static str {
        self.outcome.reason.name()
    }
    #[getter]
    fn code(&self) -> i32 {
        self.outcome.reason.code()
    }
    #[getter]
    fn message(&self) -> String {
        self.outcome.reason.to_string()
    }
    #[getter]
    fn converged(&self) -> bool {
        self.outcome.converged()
    }
    #[getter]
    fn iterations(&self) -> u64 {
        self.outcome.iterations
    }
    #[getter]
    fn restarts(&self) -> u64 {
        self.outcome.restarts
    }
    #[getter]
    fn residual(&self) -> f64 {
        self.outcome.residual
    }
    #[getter]
    fn true_residual(&self) -> f64 {
        self.outcome.true_residual
    }
    #[getter]
    fn target(&self) -> f64 {
        self.outcome.target
    }
    #[getter]
    fn backward_error(&self) -> f64 {
        self.outcome.backward_error
    }
    #[getter]
    fn misfit(&self) -> f64 {
        self.outcome.misfit
    }
    #[getter]
    fn normal_residual(&self) -> f64 {
        self.outcome.normal_residual
    }
    #[getter]
    fn norm_a(&self) -> f64 {
        self.outcome.norm_a
    }
    #[getter]
    fn cond_a(&self) -> f64 {
        self.outcome.cond_a
    }
    #[getter]
    fn history<'py>(&self, py: Python<'py>) -> Bound<'py, numpy::PyArray1<f64>> {
        numpy::PyArray1::from_slice(py, &self.outcome.history)
    }
    #[getter]
    fn choices(&self) -> Vec<String> {
        self.outcome.choices.clone()
    }
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.outcome.notes.clone()
    }
    #[getter]
    fn why(&self) -> &str {
        &self.outcome.why
    }
    #[getter]
    fn advice(&self) -> &str {
        &self.outcome.advice
    }
    #[getter]
    fn time(&self) -> f64 {
        self.outcome.time.as_secs_f64()
    }
    #[getter]
    fn setup_time(&self) -> f64 {
        self.setup
    }

    fn __str__(&self) -> String {
        let line = |(name, value): &(&str, String)| match *name {
            "" => value.clone(),
            name => format!("{name:<15}{value}"),
        };
        self.lines().iter().map(line).collect::<Vec<_>>().join("\n")
    }
    fn __repr__(&self) -> String {
        let Outcome { reason, iterations, true_residual, .. } = &self.outcome;
        format!("<Report: {}, {iterations} iterations, residual {true_residual:.2e}>", reason.name())
    }
    fn _repr_html_(&self) -> String {
        let mut html = String::from("<div><table>");
        for (name, value) in self.lines() {
            // Writing to a string cannot fail.
            let _ =
                write!(html, "<tr><th style=\"text-align:left\">{name}</th><td style=\"text-align:left\">");
            html += &escaped(&value);
            html += "</td></tr>";
        }
        html += "</table>";
        html += &curve(&self.outcome.history);
        html + "</div>"
    }
}

/// The text with what HTML reads as tags replaced.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Width and height of a curve, and the space for its labels.
const SIZE: (f64, f64) = (420.0, 160.0);
const LABEL: f64 = 46.0;

/// Residuals over iterations, the former by decades; nothing for fewer than two.
fn curve(history: &[f64]) -> String {
    let points: Vec<_> = history.iter().enumerate().filter(|(_, r)| **r > 0.0 && r.is_finite()).collect();
    let (Some(&(first, _)), Some(&(last, _))) = (points.first(), points.last()) else { return String::new() };
    if last <= first {
        return String::new();
    }
    let decades = || points.iter().map(|(_, r)| r.log10());
    let (top, bottom) = (decades().fold(f64::MIN, f64::max), decades().fold(f64::MAX, f64::min));
    let (top, bottom) = (top.ceil(), bottom.floor().min(top.ceil() - 1.0));
    let (width, height) = SIZE;
    let x = |k: usize| LABEL + (width - LABEL) * (k - first) as f64 / (last - first) as f64;
    let y = |r: f64| 10.0 + (height - 30.0) * (top - r.log10()) / (top - bottom);
    let line: Vec<_> = points.iter().map(|(k, r)| format!("{:.1},{:.1}", x(*k), y(**r))).collect();
    let label = |x: f64, y: f64, text: String| {
        format!("<text x=\"{x:.0}\" y=\"{y:.0}\" font-size=\"11\" fill=\"currentColor\">{text}</text>")
    };
    let base = height - 20.0;
    format!(
        "<svg width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"residual by iteration\">\
         <polyline points=\"{}\" fill=\"none\" stroke=\"#3366aa\" stroke-width=\"1.5\"/>\
         <path d=\"M{LABEL} 10V{base}H{width}\" fill=\"none\" stroke=\"currentColor\"/>{}{}{}</svg>",
        line.join(" "),
        label(2.0, 16.0, format!("1e{top}")),
        label(2.0, base, format!("1e{bottom}")),
        label(width - 90.0, height - 4.0, format!("{last} iterations")),
    )
}
