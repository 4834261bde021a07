//! The promise of equal bits as one table: formats × methods × preconditioners, each pair of two of them in some row. Number types,
//! threads and ways of executing are those that [`conformance!`](crate::conformance) is called with; what is new in one of the lists
//! joins by itself.
use crate::formats::every;
use crate::numbers::generated;
use crate::on_both;
use crate::solves::{Case, right_hand_side, solve_with, solver_in};
use lacuna_engine::{Device, Scalar};
use lacuna_solvers::{METHODS, Options, PRECONDITIONERS, Stop};

/// Three segments of rows, so that several threads have some. All methods, preconditioners and formats take it.
const SUITS_ALL: &str = "gen:poisson2d:28x21";
/// One that is not Hermitian, for those that take it.
const GENERAL: &str = "gen:convection:28x21";

/// Every method with every preconditioner it takes and with every format, in turns: `x`, residuals, history and reason.
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
    for (turn, info) in METHODS.iter().enumerate() {
        let preconds: Vec<_> = PRECONDITIONERS.iter().filter(|p| info.accepts(p)).collect();
        for at in 0..preconds.len().max(suits_all.2.len()) {
            let precond = preconds[at % preconds.len()];
            let (_, _, formats) = &suits_all;
            let (format, _) = formats[(at + turn) % formats.len()];
            let any = !info.hermitian() && !precond.needs_hermitian && !precond.needs_stencil;
            let (matrix, a, formats) = match any && general.2.iter().any(|(name, _)| *name == format) {
                true => &general,
                false => &suits_all,
            };
            let Some((_, stored)) = formats.iter().find(|(name, _)| *name == format) else { continue };
            let case = Case { matrix, method: info.name, precond: precond.name, max_iters };
            on_both!(make, format!("{case:?} in {format}"), |dev| {
                let (_, mut solver) = solver_in(dev, a, stored.clone(), &case, &options, stop);
                solve_with::<T>(dev, &mut solver, &b, &mut vec![T::zero(); b.len()])
            });
        }
    }
}
