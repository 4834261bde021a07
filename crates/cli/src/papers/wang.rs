//! Wang, Klie, Parashar and Sudan 2009.
use super::table::{Table, error, milliseconds, percent, two};
use super::{Paper, Stage, backends, find, matrices, short, vectors};
use crate::plot;
use lacuna::Norm;
use lacuna_measure::failure::Result;
use lacuna_measure::number::TypeName::F64;
use lacuna_measure::quantity::thousands;
use lacuna_measure::record::Case;
use lacuna_measure::session::{Ending, Work};

pub(super) const PAPER: Paper = Paper {
    title: "Wang et al. 2009",
    differs: "Generated reservoirs (`gen:spe10-like`) with a five-spot of wells as right-hand side stand for the oil fields, of the sizes of \
              theirs. GMRES restarts after 20 iterations and ends at a residual of 1e-2. Their serial preconditioner is an incomplete \
              factorisation of the whole matrix, ours `ilu0`; the parallel one `block-ilu` with blocks of 32 and a polynomial of order 1. Blocks \
              are of consecutive rows in Table 1, as theirs, and of connected ones in Figure 3",
    sections: &[table, figure],
    missing: &[
        "One kernel for an application, without a launch or a barrier between levels",
        "Times are of one machine: with `--backends cpu,cuda` the serial row of the CPU stands beside the parallel row of the GPU",
    ],
};

const SERIAL: &str = "ilu0";
const PARALLEL: &str = "block-ilu:size=32,blocks=consecutive,order=1";

/// The paper's name, a matrix of that size, and their numbers: unknowns, iterations of both, times in s, speed-up, share of transfers.
type Row = (&'static str, &'static str, [&'static str; 7]);

const TABLE_1: [Row; 5] = [
    ("Sample 1", "gen:spe10-like:2:14x14x10", ["1946", "3", "6", "0.0018", "0.0060", "0.3", "5.3 %"]),
    ("Sample 2", "gen:spe10-like:3:58x58x57", ["192096", "10", "20", "9.41", "1.16", "8.1", "2.3 %"]),
    ("Sample 3", "gen:spe10-like:4:58x57x56", ["184102", "13", "19", "7.67", "0.326", "23.5", "3.6 %"]),
    ("SPE10_1", "gen:spe10-like:1:60x220x10", ["132000", "40", "40", "4.82", "0.70", "6.8", "2.7 %"]),
    ("SPE10_2", "gen:spe10-like:1", ["1122000", "140", "100", "436.33", "22.10", "19.7", "1.3 %"]),
];

fn to_one_percent(
    stage: &Stage<'_, '_>,
    matrices: &[String],
    preconds: &[String],
    rhs: &'static str,
) -> Work {
    let mut work = stage.work(matrices, &["gmres"], &[], F64);
    work.preconds = preconds.to_vec();
    work.restart = Some(20);
    work.vectors = vectors(rhs);
    work.ending = Ending::Tolerance { rtol: 1e-2, max_iters: Some(400), norm: Norm::Two };
    work.keeps_solutions = true;
    work
}

fn table(stage: &mut Stage<'_, '_>) -> Result<()> {
    let rows = stage.sizes(&TABLE_1, 1);
    let names: Vec<String> = rows.iter().map(|row| row.1.into()).collect();
    let work = to_one_percent(stage, &names, &[SERIAL.into(), PARALLEL.into()], "model");
    let cases = stage.measure(&work)?;
    let head = [
        "matrix",
        "",
        "N",
        "serial its",
        "parallel its",
        "serial ms",
        "parallel ms",
        "speed-up",
        "transfers",
        "difference",
    ];
    let mut table = Table::new("Table 1: whole against block incomplete factors", &head);
    for (name, matrix, theirs) in rows {
        for backend in backends(&cases) {
            let of = |precond: &str| {
                find(&cases, |c| c.system.matrix == *matrix && c.backend == backend && c.precond == precond)
            };
            let (Some(serial), Some(parallel)) = (of(SERIAL), of(PARALLEL)) else { continue };
            let times = [serial, parallel].map(|m| m.again.median);
            let n = matrices(&cases).into_iter().find(|known| known.0 == *matrix).map_or(0, |known| known.1);
            table.row([
                name.to_string(),
                format!("{}, {backend}", short(matrix)),
                thousands(n as u64),
                serial.iterations.to_string(),
                parallel.iterations.to_string(),
                milliseconds(Some(times[0])),
                milliseconds(Some(times[1])),
                two(Some(times[0] / times[1])),
                percent(parallel.transfers.map(|t| t.median / times[1])),
                error(difference(&parallel.solution, &serial.solution)),
            ]);
        }
        let [n, serial, parallel, serial_s, parallel_s, speed_up, transfers] = theirs.map(String::from);
        let ms = |s: String| milliseconds(s.parse().ok());
        let times = [ms(serial_s), ms(parallel_s)];
        let [a, b] = times;
        table.row([
            name.to_string(),
            "theirs".into(),
            n,
            serial,
            parallel,
            a,
            b,
            speed_up,
            transfers,
            "1e-5 to 2e-2".into(),
        ]);
    }
    stage.table(&table)
}

/// `‖x₁ − x₂‖ / ‖x₂‖`
fn difference(x1: &[f64], x2: &[f64]) -> Option<f64> {
    let squares = |sum: f64, v: f64| sum + v * v;
    let apart = x1.iter().zip(x2).map(|(a, b)| a - b).fold(0.0, squares);
    (x1.len() == x2.len() && !x1.is_empty()).then(|| (apart / x2.iter().copied().fold(0.0, squares)).sqrt())
}

/// Orders of the polynomial, and the iterations of a run of the published reservoir's size with random right-hand side 1, in which the
/// order of the curves is that of the paper's figure.
const ORDERS: [(u32, &str); 6] = [(0, "108"), (1, "51"), (2, "53"), (4, "39"), (6, "-"), (8, "29")];

fn figure(stage: &mut Stage<'_, '_>) -> Result<()> {
    let matrix = if stage.small { "gen:spe10-like:1:12x22x8" } else { "gen:spe10-like:1" };
    let preconds: Vec<String> =
        ORDERS.iter().map(|(order, _)| format!("block-ilu:size=32,order={order}")).collect();
    let all = [vec![SERIAL.into()], preconds.clone()].concat();
    let mut work = to_one_percent(stage, &[matrix.into()], &all, "random:1");
    work.keeps_solutions = false;
    let cases = stage.measure(&work)?;
    let mut table = Table::new(
        "Figure 3: iterations and time to 1e-2 by the order p of the polynomial, random right-hand side",
        &["preconditioner", "backend", "iterations", "first run, 1 122 000 cells", "ms"],
    );
    for backend in backends(&cases) {
        for precond in &all {
            let m = find(&cases, |c| c.backend == backend && c.precond == *precond);
            let known = preconds.iter().position(|p| p == precond).map_or("-", |k| ORDERS[k].1);
            let iterations = m.map_or("-".into(), |m| m.iterations.to_string());
            let time = milliseconds(m.map(|m| m.again.median));
            table.row([precond.clone(), backend.clone(), iterations, known.into(), time]);
        }
    }
    stage.table(&table)?;
    let listed: Vec<&Case> = cases.iter().collect();
    stage.figure("wang-3", || plot::residuals(&listed, Some(1e-2)))
}
