//! Jost, Contassot-Vivier and Vialle 2009.
use super::table::{Table, error, milliseconds};
use super::{Paper, Stage, backends, find, matrices, over_size, short, vectors};
use lacuna::Norm;
use lacuna_measure::Measured;
use lacuna_measure::failure::Result;
use lacuna_measure::number::TypeName::{self, F32, F64};
use lacuna_measure::quantity::thousands;
use lacuna_measure::record::Case;
use lacuna_measure::session::Ending;

pub(super) const PAPER: Paper = Paper {
    title: "Jost et al. 2009",
    differs: "Artificial matrices of a few diagonals at seven sizes from 100 to 3 000 000 (Figures 1 to 3) are `gen:banded`: five \
              diagonals at 0, ±1 and ±√n, the main one 1.5 times the sum of the others. Of the six real matrices two are made by their rule \
              (`gen:wathen`, `gen:obstacle`) and one is alike (`gen:least-surface`); errors are absolute maximum norms of b - A x, \
              computed in double precision, with right-hand sides of ones, random ones in the tables. Their pairs are a CPU core and a GPU; ours \
              are all backends here. Gauss-Seidel goes in the order of the rows, as on their CPU",
    sections: &[single, double, real_single, real_double],
    missing: &[
        "ex1, mcca and dw4096 are files of the SuiteSparse collection: `lacuna compare ex1.tar.gz --methods \
         gauss-seidel:order=natural,jacobi,bicg,bicgstab --formats csr --types f32,f64 --rtol 1e-12`",
        "Compensated sums and products without fused multiply-add are no options: sums are pairwise, and the order of every operation is fixed",
    ],
};

/// The methods by their names here and in the paper.
const METHODS: [(&str, &str); 4] =
    [("gauss-seidel:order=natural", "GS"), ("jacobi", "Jacobi"), ("bicg", "BiCG"), ("bicgstab", "BiCG-S")];

const SIZES: [usize; 7] = [100, 1_000, 10_000, 100_000, 300_000, 1_000_000, 3_000_000];

fn single(stage: &mut Stage<'_, '_>) -> Result<()> {
    artificial(
        stage,
        F32,
        1e-6,
        "Figures 1 and 2: time in ms, and absolute error, single precision",
        [Some("jost-1"), Some("jost-2")],
    )
}

fn double(stage: &mut Stage<'_, '_>) -> Result<()> {
    artificial(
        stage,
        F64,
        1e-13,
        "Figure 3: absolute error, double precision, with the time in ms",
        [None, Some("jost-3")],
    )
}

fn artificial(
    stage: &mut Stage<'_, '_>,
    number: TypeName,
    rtol: f64,
    title: &str,
    figures: [Option<&str>; 2],
) -> Result<()> {
    let sizes = stage.sizes(&SIZES, 3).iter();
    let names: Vec<String> =
        sizes.map(|n| (n, n.isqrt())).map(|(n, s)| format!("gen:banded:{n}:-{s},-1,1,{s}:1.5")).collect();
    let cases = solve(stage, &names, ("dia", "ones"), number, rtol)?;
    let head =
        ["n", "backend", "GS ms", "error", "Jacobi ms", "error", "BiCG ms", "error", "BiCG-S ms", "error"];
    let mut table = Table::new(title, &head);
    for (matrix, n) in matrices(&cases) {
        for backend in backends(&cases) {
            let mut row = vec![thousands(n as u64), backend.clone()];
            for (method, _) in METHODS {
                let m =
                    find(&cases, |c| c.system.matrix == matrix && c.backend == backend && c.method == method);
                row.push(milliseconds(m.map(|m| m.again.median)));
                row.push(error(m.and_then(|m| m.largest_error)));
            }
            table.row(row);
        }
    }
    stage.table(&table)?;
    let [time, error] = figures;
    if let Some(figure) = time {
        stage.figure(figure, || over_size(title, "time, s", &cases, name_of, |m| Some(m.again.median)))?;
    }
    if let Some(figure) = error {
        stage.figure(figure, || {
            over_size(title, "‖b − A x‖∞", &cases, name_of, |m| m.largest_error)
        })?;
    }
    Ok(())
}

/// The name of a method in the paper.
fn name_of(case: &Case) -> String {
    METHODS.iter().find(|(method, _)| *method == case.method).map_or(case.method.clone(), |m| m.1.into())
}

fn solve(
    stage: &mut Stage<'_, '_>,
    names: &[String],
    (format, rhs): (&str, &'static str),
    number: TypeName,
    rtol: f64,
) -> Result<Vec<Case>> {
    let methods = METHODS.map(|(method, _)| method);
    let mut work = stage.work(names, &methods, &[format], number);
    work.vectors = vectors(rhs);
    work.ending = Ending::Tolerance { rtol, max_iters: Some(20_000), norm: Norm::Two };
    stage.measure(&work)
}

/// A row of a table of the paper: errors of GS on the CPU, Jacobi on the GPU, BiCG and BiCG-Stab on both; and the matrix that stands for
/// theirs here.
type Row = (&'static str, Option<&'static str>, [&'static str; 6]);

const WATHEN: &str = "gen:wathen:100x100";
const OBSTACLE: &str = "gen:obstacle:200x200";
const SURFACE: &str = "gen:least-surface:202x202";

const TABLE_1: [Row; 6] = [
    ("minsurfo", Some(SURFACE), ["7.15e-7", "1.19e-6", "8.34e-6", "6.32e-6", "2.15e-6", "2.04e-5"]),
    ("obstclae", Some(OBSTACLE), ["7.15e-7", "1.19e-6", "1.86e-5", "7.15e-6", "1.91e-6", "2.96e-6"]),
    ("wathen100", Some(WATHEN), ["1.91e-6", "", "1.42e-5", "1.60e-5", "7.39e-6", "7.74e-6"]),
    ("ex1", None, ["", "", "5.25e-6", "4.77e-6", "4.77e-6", "1.60e-1"]),
    ("mcca", None, ["", "", "6.20e-6", "7.63e-6", "4.77e-6", "2.16e+0"]),
    ("dw4096", None, ["", "", "", "", "1.41e+2", "4.00e-2"]),
];

const TABLE_2: [Row; 6] = [
    ("minsurfo", Some(SURFACE), ["1.33e-15", "5.76e-11", "1.24e-14", "1.05e-7", "6.07e-11", "6.98e-9"]),
    ("obstclae", Some(OBSTACLE), ["1.33e-15", "1.06e-7", "6.66e-15", "4.59e-8", "3.42e-9", "4.61e-9"]),
    ("wathen100", Some(WATHEN), ["3.55e-15", "3.02e-2", "3.11e-14", "1.79e-7", "1.42e-14", "8.72e-8"]),
    ("ex1", None, ["", "", "9.33e-15", "6.48e-8", "9.10e-9", "6.27e-3"]),
    ("mcca", None, ["", "", "1.15e-14", "3.74e-8", "1.29e-9", "2.55e+1"]),
    ("dw4096", None, ["", "", "3.88e+0", "6.81e+0", "3.07e-2", "1.23e+5"]),
];

fn real_single(stage: &mut Stage<'_, '_>) -> Result<()> {
    real(stage, F32, 1e-7, "Table 1: absolute error, single precision", &TABLE_1)
}

fn real_double(stage: &mut Stage<'_, '_>) -> Result<()> {
    real(stage, F64, 1e-15, "Table 2: absolute error, double precision", &TABLE_2)
}

fn real(stage: &mut Stage<'_, '_>, number: TypeName, rtol: f64, title: &str, rows: &[Row]) -> Result<()> {
    let there: Vec<String> = rows.iter().filter_map(|row| row.1).map(String::from).collect();
    let there =
        if stage.small { vec!["gen:wathen:10x10".into(), "gen:obstacle:20x20".into()] } else { there };
    let cases = solve(stage, &there, ("csr", "random:1"), number, rtol)?;
    let head = ["matrix", "", "GS", "Jacobi", "BiCG", "BiCG-S", "iterations"];
    let mut table = Table::new(title, &head);
    for (matrix, _) in matrices(&cases) {
        for backend in backends(&cases) {
            let of = |method: &str| {
                find(&cases, |c| c.system.matrix == matrix && c.backend == backend && c.method == method)
            };
            let errors = METHODS.map(|(method, _)| {
                let converges = |m: &&Measured| m.true_residual.is_some_and(|r| r < 1e-2);
                error(of(method).filter(converges).and_then(|m| m.largest_error))
            });
            let counts =
                METHODS.map(|(method, _)| of(method).map_or("-".into(), |m| m.iterations.to_string()));
            let first = [short(&matrix).to_string(), format!("ours, {backend}")];
            table.row(first.into_iter().chain(errors).chain([counts.join(", ")]));
        }
    }
    for (name, ours, [gs, jacobi, bicg, bicg_gpu, stab, stab_gpu]) in rows {
        let alike = ours.map_or("no matrix here".into(), |ours| format!("as {}", short(ours)));
        let shown = |cell: &str| if cell.is_empty() { "-".to_string() } else { cell.to_string() };
        let both = |cpu: &str, gpu: &str| format!("{}, {}", shown(cpu), shown(gpu));
        let cells = [shown(gs), shown(jacobi), both(bicg, bicg_gpu), both(stab, stab_gpu), alike];
        table.row([name.to_string(), "theirs: CPU, GPU".into()].into_iter().chain(cells));
    }
    stage.table(&table)
}
