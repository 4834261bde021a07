//! The promise of equal bits as one table: formats × methods × preconditioners, each pair of two of them in some row. Number types,
//! threads and ways of executing are those that [`conformance!`](crate::conformance) is called with; what is new in one of the lists
//! joins by itself.
//!
//! Where each program needs a compiler, the whole takes too long for every day. With `LACUNA_TABLE=cover` a device runs a part of the
//! rows in which each method, preconditioner and format occurs; on the host the whole runs always.
use crate::formats::every;
use crate::numbers::generated;
use crate::on_both;
use crate::solves::{Solve, right_hand_side, solve_with, solver_in};
use lacuna_engine::{Device, Scalar};
use lacuna_solvers::{METHODS, MethodInfo, Options, PRECONDITIONERS, PrecondInfo, Stop};

/// Three segments of rows, so that several threads have some. All methods, preconditioners and formats take it.
const SUITS_ALL: &str = "gen:poisson2d:28x21";
/// One that is not Hermitian, for those that take it.
const GENERAL: &str = "gen:convection:28x21";

/// A method, a preconditioner and a format.
pub type Row = (&'static MethodInfo, &'static PrecondInfo, &'static str);

/// Every method with every preconditioner it takes and with every format, in turns.
pub fn rows(formats: &[&'static str]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (turn, info) in METHODS.iter().enumerate() {
        let preconds: Vec<_> = PRECONDITIONERS.iter().filter(|p| info.accepts(p)).collect();
        for at in 0..preconds.len().max(formats.len()) {
            rows.push((info, preconds[at % preconds.len()], formats[(at + turn) % formats.len()]));
        }
    }
    rows
}

/// The rows with a method, a preconditioner or a format that no row before has.
pub fn cover(rows: &[Row]) -> Vec<Row> {
    let mut seen = Vec::new();
    let mut new = |row: &&Row| {
        let names = [("method", row.0.name), ("preconditioner", row.1.name), ("format", row.2)];
        let new = names.into_iter().filter(|name| !seen.contains(name)).collect::<Vec<_>>();
        seen.extend(&new);
        !new.is_empty()
    };
    rows.iter().filter(&mut new).copied().collect()
}

/// The rows that run on a backend. What notices a fault in all of them does so in those.
fn chosen(backend: &str, formats: &[&'static str]) -> Vec<Row> {
    let all = rows(formats);
    let whole = std::env::var("LACUNA_TABLE").map_or(true, |table| table != "cover");
    let some = cover(&all);
    match backend {
        "wrong" => return some,
        "cpu" | "reference" => return all,
        _ if whole => return all,
        _ => {}
    }
    crate::loudly(&format!("LACUNA_TABLE=cover: {} of {} rows of table::equal_bits", some.len(), all.len()));
    some
}

/// The rows of the table: `x`, residuals, history and reason.
pub fn equal_bits<T: Scalar>(make: fn() -> Device) {
    let [suits_all, general] = [SUITS_ALL, GENERAL].map(|name| {
        let a = generated::<T>(name);
        let formats = every(make, &a);
        (name, a, formats)
    });
    let b = right_hand_side::<T>(suits_all.1.rows(), 1);
    let options = Options::default().restart(4);
    let max_iters = 6;
    let stop = Stop::default().rtol(0.0).max_iters(max_iters);
    let formats: Vec<_> = suits_all.2.iter().map(|(name, _)| *name).collect();
    for (info, precond, format) in chosen(make().info().backend, &formats) {
        let any = !info.hermitian() && !precond.needs_hermitian && !precond.needs_stencil;
        let (matrix, a, formats) = match any && general.2.iter().any(|(name, _)| *name == format) {
            true => &general,
            false => &suits_all,
        };
        let stored = formats.iter().find(|(name, _)| *name == format).map(|(_, stored)| stored.clone());
        let stored = stored.unwrap_or_else(|| panic!("{matrix} in {format}"));
        let case = Solve { matrix, method: info.name, precond: precond.name, max_iters };
        on_both!(make, format!("{case:?} in {format}"), |dev| {
            let (_, mut solver) = solver_in(dev, a, stored.clone(), &case, &options, stop);
            solve_with::<T>(dev, &mut solver, &b, &mut vec![T::zero(); b.len()])
        });
    }
}
