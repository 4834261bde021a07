//! Digests of solves, pinned in `tests/digests.txt`: all backends and the reference cannot change together unnoticed.
//!
//! After a change that is meant to change bits, `LACUNA_PIN=1 cargo test -p lacuna-tests --test reference digests_are_pinned`
//! writes the file anew.
//!
//! Left out is `direct`, whose factors depend on the instruction set.
use crate::bits::Trace;
use crate::numbers::generated;
use crate::solves::{Solve, right_hand_side, solve_with, solver_in};
use lacuna_engine::NumberType::{self, C32, C64, F32, F64};
use lacuna_engine::{Complex32, Complex64, Device, Error, Scalar, with_number};
use lacuna_formats::convert;
use lacuna_solvers::{Options, Stop};
use std::sync::Arc;

/// The pinned lines: number type, method, preconditioner, format, matrix, digest.
const PINNED: &str = include_str!("../digests.txt");
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/digests.txt");
const HOW: &str = "where bits are meant to change, run \
    `LACUNA_PIN=1 cargo test -p lacuna-tests --test reference digests_are_pinned`";

/// Number type; method, preconditioner, format, matrix.
type Row = (NumberType, [&'static str; 4]);

const CASES: &[Row] = &[
    (F32, ["pipelined-cg", "jacobi", "ell", "gen:poisson2d:61x47"]),
    (F32, ["flexible-cg", "chebyshev", "csr", "gen:poisson2d:31x37"]),
    (F32, ["bicgstab-l", "spai", "sell", "gen:convection:29x28:20"]),
    (F32, ["cg", "fsai", "csr", "gen:poisson3d:13x12x11:27"]),
    (F64, ["cg", "none", "csr", "gen:poisson2d:300x301"]),
    (F64, ["cg", "ic0", "sell", "gen:poisson3d:13x12x11"]),
    (F64, ["cg", "amg:coarsest=16", "csr", "gen:poisson2d:41x39"]),
    (F64, ["cg", "multigrid:coarsest=40", "stencil", "gen:poisson2d:41x30"]),
    (F64, ["bicgstab", "ilu0", "csr", "gen:convection:29x28:40"]),
    (F64, ["bicgstab", "amg:coarsest=16", "csr", "gen:convection:29x28:40"]),
    (F64, ["gmres", "jacobi", "hyb", "gen:power-law:2000"]),
    (F64, ["minres", "jacobi", "dia", "gen:poisson2d:41x39"]),
    (F64, ["cg", "block-jacobi:size=3", "bcsr3", "gen:elasticity3d:6"]),
    (F64, ["cb-gmres", "neumann", "csr", "gen:convection:29x28:40"]),
    (F64, ["lsqr", "none", "csr", "gen:random:400:9:3"]),
    (F64, ["idr", "sor", "dense", "gen:convection:9x8:40"]),
    (C32, ["bicgstab", "jacobi", "csr", "gen:helmholtz:20x19"]),
    (C32, ["gmres", "ilut", "sell", "gen:convection:29x28:40"]),
    (C32, ["cr", "ssor", "csr", "gen:poisson2d:41x39"]),
    (C64, ["qmr", "jacobi", "csr", "gen:helmholtz:20x19"]),
    (C64, ["tfqmr", "block-ilu", "csr", "gen:convection:29x28:40"]),
    (C64, ["cgs", "none", "bcsr2", "gen:random:400:9:3"]),
    (C64, ["pipelined-gmres", "jacobi", "coo", "gen:helmholtz:20x19"]),
];

/// The line of a case, computed on a backend; `None` if it does not take the format.
fn line<T: Scalar>(make: fn() -> Device, case: &Row) -> Option<String> {
    let (kind, [method, precond, format, matrix]) = *case;
    let a = generated::<T>(matrix);
    let stored = convert(&Arc::new(a.clone()), format).unwrap();
    let dev = &make().scope();
    if let Err(Error::Unsupported { .. }) = dev.matrix(stored.clone()) {
        return None;
    }
    let options = Options::default().restart(12);
    let max_iters = 20;
    let stop = Stop::default().rtol(0.0).max_iters(max_iters);
    let case_of = Solve { matrix, method, precond, max_iters };
    let (_, mut solver) = solver_in(dev, &a, stored, &case_of, &options, stop);
    let mut x = vec![T::zero(); a.cols()];
    let trace: Trace<T> = solve_with(dev, &mut solver, &right_hand_side(a.rows(), 1), &mut x);
    Some(format!("{} {} {:016x}", kind.name(), case.1.join(" "), trace.digest()))
}

fn pinned() -> impl Iterator<Item = &'static str> {
    PINNED.lines().filter(|line| !line.starts_with('#'))
}

/// Solves have the pinned digests.
pub fn agree<T: Scalar>(make: fn() -> Device) {
    assert_eq!(pinned().count(), CASES.len(), "pinned digests; {HOW}");
    for (case, want) in CASES.iter().zip(pinned()).filter(|((kind, _), _)| *kind == T::KIND) {
        if let Some(got) = line::<T>(make, case) {
            assert_eq!(got, want, "{HOW}");
        }
    }
}

/// Compares all digests with those of a backend; with `LACUNA_PIN` set, writes them instead.
///
/// # Panics
/// If they differ, or if they cannot be written.
pub fn agree_or_pin(make: fn() -> Device) {
    if std::env::var_os("LACUNA_PIN").is_none() {
        agree::<f32>(make);
        agree::<f64>(make);
        agree::<Complex32>(make);
        return agree::<Complex64>(make);
    }
    let mut text = "# Written by a test: see tests/src/digests.rs.\n".to_string();
    for case in CASES {
        let line = with_number!(case.0, T => line::<T>(make, case));
        text += &(line.unwrap_or_else(|| panic!("{case:?}: the backend does not take the format")) + "\n");
    }
    std::fs::write(FILE, text).unwrap_or_else(|e| panic!("{FILE}: {e}"));
    crate::loudly(&format!("PINNED: {} digests in {FILE}", CASES.len()));
}
