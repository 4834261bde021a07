//! How a solve ended, as it is printed and shown in a notebook.
use lacuna::Outcome;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::fmt::Write;

/// What Python shows of an [`Outcome`], in plain numbers and texts: the state of a pickle.
#[derive(Clone, FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
struct State {
    reason: String,
    code: i32,
    message: String,
    iterations: u64,
    restarts: u64,
    residual: f64,
    true_residual: f64,
    target: f64,
    backward_error: f64,
    misfit: f64,
    normal_residual: f64,
    norm_a: f64,
    cond_a: f64,
    history: Vec<f64>,
    history_stride: u64,
    /// Seconds.
    time: f64,
    method: String,
    preconditioner: String,
    before: Vec<String>,
    choices: Vec<String>,
    notes: Vec<String>,
    why: String,
    advice: String,
}

impl From<Outcome> for State {
    fn from(outcome: Outcome) -> Self {
        let name = |chosen: &lacuna::Chosen| chosen.name.to_string();
        let (method, preconditioner, before) = match outcome.finished_by() {
            Some((way, before)) => {
                let before = before.iter().map(|way| way.to_string()).collect();
                (name(&way.method), name(&way.preconditioner), before)
            }
            None => Default::default(),
        };
        State {
            method,
            preconditioner,
            before,
            reason: outcome.reason.name().into(),
            code: outcome.reason.code(),
            message: outcome.reason.to_string(),
            iterations: outcome.iterations,
            restarts: outcome.restarts,
            residual: outcome.residual,
            true_residual: outcome.true_residual,
            target: outcome.target,
            backward_error: outcome.backward_error,
            misfit: outcome.misfit,
            normal_residual: outcome.normal_residual,
            norm_a: outcome.norm_a,
            cond_a: outcome.cond_a,
            history: outcome.history,
            history_stride: outcome.history_stride,
            time: outcome.time.as_secs_f64(),
            choices: outcome.choices,
            notes: outcome.notes,
            why: outcome.why,
            advice: outcome.advice,
        }
    }
}

/// How a solve ended.
///
/// It prints as a table, shows itself with the history of the residual in a notebook, and pickles. Residuals and tolerances are
/// relative: numbers without a unit, multiples of `‖b‖`, or of `‖Aᴴ b‖` for least squares. A number that is not known is NaN.
///
/// Attributes
/// ----------
/// x : ndarray
///     The solution, or the best vector that was found: the array that the solve returned.
/// reason : str
///     Why the solve ended: the name of a `Reason` in lower case.
/// code : int
///     The same as a number: the value of a `Reason`, 0 if it converged.
/// message : str
///     The same as a sentence.
/// converged : bool
///     Whether `x` was confirmed to meet the tolerance.
/// iterations, restarts : int
///     Iterations, and restarts from the true residual.
/// residual, true_residual, target : float
///     The relative residual by the recurrence of the method, that of `x`, and the one to reach.
/// backward_error : float
///     The smallest relative change of `A` and `b` that makes `x` exact.
/// misfit, normal_residual : float
///     Least squares: the part of `b` outside the range of `A`, and `‖Aᴴ (b − A x)‖`.
/// norm_a, cond_a : float
///     Estimates of the Frobenius norm and of the condition number of `A` by `lsqr` and `lsmr`.
/// history : ndarray
///     The relative residual every `history_stride` iterations.
/// history_stride : int
///     Iterations between two values of `history`.
/// method, preconditioner : str
///     What finished the solve.
/// before : list of str
///     What was tried before that: a method, ``with`` and a preconditioner each.
/// choices, notes : list of str
///     What was chosen, and what happened.
/// why, advice : str
///     Why it fell short, and what to try.
/// time, setup_time : float
///     Seconds of the solve, and of the set-up before it.
#[pyclass(frozen, module = "lacuna_sparse._core")]
pub(crate) struct Report {
    state: State,
    x: Py<PyAny>,
    setup: f64,
}

impl Report {
    pub(crate) fn new(outcome: Outcome, x: Py<PyAny>, setup: f64) -> Self {
        Report { state: outcome.into(), x, setup }
    }

    /// Name and value of each line.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let state = &self.state;
        let mut lines = vec![("", state.message.clone())];
        let restarts = match state.restarts {
            0 => String::new(),
            count => format!(", {count} restarts"),
        };
        lines.push(("iterations", format!("{}{restarts}", state.iterations)));
        let mut line = |name, value: f64, unit: &str| {
            if !value.is_nan() {
                lines.push((name, format!("{value:.2e}{unit}")));
            }
        };
        line("true residual", state.true_residual, " |b|");
        line("backward error", state.backward_error, "");
        line("misfit", state.misfit, " |b|");
        let seconds = state.time;
        lines.push(("time", format!("{seconds:.4} s, after a set-up of {:.4} s", self.setup)));
        lines.extend(state.choices.iter().map(|choice| ("chosen", choice.clone())));
        lines.extend(state.notes.iter().map(|note| ("note", note.clone())));
        if !state.why.is_empty() {
            lines.push(("why", state.why.clone()));
            lines.push(("try", state.advice.clone()));
        }
        lines
    }
}

#[pymethods]
impl Report {
    /// What a pickle is made of.
    #[new]
    fn restored(state: State, x: Py<PyAny>, setup: f64) -> Self {
        Report { state, x, setup }
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (State, Py<PyAny>, f64)) {
        (py.get_type::<Report>(), (self.state.clone(), self.x.clone_ref(py), self.setup))
    }

    /// The solution, or the best vector that was found, no worse than the guess: the array that the solve returned.
    #[getter]
    fn x(&self, py: Python<'_>) -> Py<PyAny> {
        self.x.clone_ref(py)
    }
    /// Why the solve ended: the name of a `Reason` in lower case, as `"converged"` or `"limit"`.
    #[getter]
    fn reason(&self) -> &str {
        &self.state.reason
    }
    /// Why the solve ended, as a number: the value of a `Reason`. 0 if it converged, positive if `x` is as good as the limit of
    /// iterations or the number type let it be, negative if the method failed or was stopped.
    #[getter]
    fn code(&self) -> i32 {
        self.state.code
    }
    /// Why the solve ended, as a sentence.
    #[getter]
    fn message(&self) -> &str {
        &self.state.message
    }
    /// Whether it converged: `true_residual` was confirmed to be at most `target`, up to rounding.
    #[getter]
    fn converged(&self) -> bool {
        self.state.code == 0
    }
    /// Iterations, those of all methods that were tried.
    #[getter]
    fn iterations(&self) -> u64 {
        self.state.iterations
    }
    /// Restarts: how often a cycle ended, or the recurrence met the tolerance and the true residual did not.
    #[getter]
    fn restarts(&self) -> u64 {
        self.state.restarts
    }
    /// `‖r‖ / ‖b‖` by the recurrence of the method, at the last iteration; relative to `‖Aᴴ b‖` for least squares. NaN if the method
    /// computed none.
    #[getter]
    fn residual(&self) -> f64 {
        self.state.residual
    }
    /// `‖b − A x‖ / ‖b‖` of the `x` that is returned, or `‖Aᴴ (b − A x)‖ / ‖Aᴴ b‖` for least squares. NaN for a method that does not
    /// confirm.
    #[getter]
    fn true_residual(&self) -> f64 {
        self.state.true_residual
    }
    /// The relative residual to converge to: `max(rtol, atol / ‖b‖)`, with `‖Aᴴ b‖` for least squares. NaN if nothing was solved.
    #[getter]
    fn target(&self) -> f64 {
        self.state.target
    }
    /// `‖b − A x‖ / (‖A‖ ‖x‖ + ‖b‖)`: the smallest relative change of `A` and `b` that makes `x` exact. At best about the unit
    /// roundoff, 1e-16 in double precision. NaN if the matrix is not known, as for operators.
    #[getter]
    fn backward_error(&self) -> f64 {
        self.state.backward_error
    }
    /// Least squares: `‖b − A x‖ / ‖b‖`, the part of `b` outside the range of `A`. NaN for other systems, and if the matrix is not
    /// known.
    #[getter]
    fn misfit(&self) -> f64 {
        self.state.misfit
    }
    /// Least squares: `‖Aᴴ (b − A x)‖`, in the units of `Aᴴ b`, when it was confirmed last. NaN for other systems.
    #[getter]
    fn normal_residual(&self) -> f64 {
        self.state.normal_residual
    }
    /// An estimate from below of the Frobenius norm of `A` by `lsqr` and `lsmr`, in the units of `A`. NaN for other methods.
    #[getter]
    fn norm_a(&self) -> f64 {
        self.state.norm_a
    }
    /// An estimate of the condition number of `A` by `lsqr` and `lsmr`. NaN for other methods.
    #[getter]
    fn cond_a(&self) -> f64 {
        self.state.cond_a
    }
    /// `‖r‖ / ‖b‖` at iterations 0, `history_stride`, 2 `history_stride`, … by the recurrence. The first is NaN if it is not known.
    #[getter]
    fn history<'py>(&self, py: Python<'py>) -> Bound<'py, numpy::PyArray1<f64>> {
        numpy::PyArray1::from_slice(py, &self.state.history)
    }
    /// Iterations between two values of `history`: 1 if the limit is below 1 048 576 iterations.
    #[getter]
    fn history_stride(&self) -> u64 {
        self.state.history_stride
    }
    /// The method that finished the solve.
    #[getter]
    fn method(&self) -> &str {
        &self.state.method
    }
    /// The preconditioner that finished the solve; ``none`` if there was none.
    #[getter]
    fn preconditioner(&self) -> &str {
        &self.state.preconditioner
    }
    /// What was tried before that: a method, ``with`` and a preconditioner each.
    #[getter]
    fn before(&self) -> Vec<String> {
        self.state.before.clone()
    }
    /// What was chosen, in words: the method, the preconditioner, the format, each with why.
    #[getter]
    fn choices(&self) -> Vec<String> {
        self.state.choices.clone()
    }
    /// What happened during the solve, and what explains its end, in words.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.state.notes.clone()
    }
    /// Why it fell short, in a line; empty if it converged, and with `strict`.
    #[getter]
    fn why(&self) -> &str {
        &self.state.why
    }
    /// What to try then, in a line; empty if `why` is.
    #[getter]
    fn advice(&self) -> &str {
        &self.state.advice
    }
    /// Seconds of the solve itself: the iterations, transfers to the device and back, and the set-up of what continued.
    #[getter]
    fn time(&self) -> f64 {
        self.state.time
    }
    /// Seconds of the set-up before it: once for each `Solver`, however many solves follow.
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
        let State { reason, iterations, true_residual, .. } = &self.state;
        format!("<Report: {reason}, {iterations} iterations, residual {true_residual:.2e}>")
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
        html += &curve(&self.state.history);
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
