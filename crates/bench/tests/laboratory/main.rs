//! The laboratory as it is used.
#[path = "../../../cli/tests/command/bench.rs"]
mod bench;
mod documents;
#[cfg(unix)]
mod readme;
mod reports;
mod runs;

pub(crate) use bench::Bench;
use serde_json::{Value, json};

/// The command.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_lacuna-bench");

/// A line of `lacuna compare --json`: 30 iterations that take `us` microseconds each.
pub(crate) fn solve(matrix: &str, [method, precond, format, stop]: [&str; 4], us: f64) -> String {
    let time = |us: f64| json!({ "median": 30e-6 * us, "low": 29e-6 * us, "high": 31e-6 * us, "rounds": 7 });
    line(
        json!({ "matrix": matrix, "method": method, "precond": precond, "format": format, "stop": stop }),
        json!({
            "iterations": 30, "fresh": time(us + 1.0), "again": time(us), "on_device": time(0.9 * us),
        }),
    )
}

/// The same of products, one of which takes `us` microseconds; `auto` takes `dia-sym`.
pub(crate) fn product(matrix: &str, format: &str, us: f64) -> String {
    let subject = json!({
        "matrix": matrix, "method": "spmv", "precond": "none", "format": format, "auto": "dia-sym", "stop": "products",
    });
    let again = json!({ "median": 1e-6 * us, "low": 1e-6 * us, "high": 1e-6 * us, "rounds": 7 });
    line(subject, json!({ "iterations": 1, "again": again }))
}

fn line(subject: Value, measured: Value) -> String {
    let mut line = json!({
        "kind": "case", "n": 81, "nnz": 377, "type": "f64", "backend": "cpu", "device": "it", "units": 1, "copy": 1e10,
        "measured": { "bytes": 100_000, "first_setup": 0.001, "reproducible": true },
        "date": "2026-11-26", "machine": "it x 1", "version": "0.1.0", "compiler": "rustc",
        "command": "lacuna compare gen:poisson-p1:9",
    });
    let mut add = |at: &str, more: Value| {
        let more = more.as_object().unwrap().clone();
        line.pointer_mut(at).unwrap().as_object_mut().unwrap().extend(more);
    };
    add("", subject);
    add("/measured", measured);
    format!("{line}\n")
}
