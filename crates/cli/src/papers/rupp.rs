//! Rupp, Weinbub, Jüngel and Grasser 2016.
use super::table::{Table, error, microseconds, percent, two};
use super::{Paper, Stage, backends, find, matrices, over_size, short, vectors};
use lacuna_measure::bus::{DOWNLOAD, UPLOAD};
use lacuna_measure::calls::{BICGSTAB_BY_CALLS, CG_BY_CALLS, FUSED, IN_TWO};
use lacuna_measure::failure::Result;
use lacuna_measure::number::TypeName::F64;
use lacuna_measure::quantity::thousands;
use lacuna_measure::record::Case;
use lacuna_measure::session::{Ending, MODEL_PROBLEMS, Work, names};

pub(super) const PAPER: Paper = Paper {
    title: "Rupp et al. 2016",
    differs: "Linear triangles on a perturbed mesh of exactly their sizes (Figure 4), elasticity at sizes near theirs (Figure 5), and matrices \
              like those of Table I: the rows, entries and structure of each, with values that are dominated by the diagonal, so that solves \
              converge where theirs need not. Columns by calls are one operation for each call of BLAS, the conventional baseline. \
              Their pipelined GMRES is `pipelined-gmres`",
    sections: &[transfers, fusion, triangles, elasticity, difference_and_share],
    missing: &[
        "CUSP, MAGMA and PARALUTION are not here; `--peers` shows Eigen, ViennaCL, PETSc, MKL and SciPy beside (Figures 4 to 8)",
        "Their classical GMRES (Algorithm 5) and one that reflects are no methods here; a GMRES by calls is not written",
        "CUDA against OpenCL (Figure 9) is on the page of `--html`, where both backends are",
    ],
};

/// Doubles in a message.
const MESSAGES: [usize; 8] = [1, 16, 128, 1_250, 12_500, 125_000, 1_250_000, 12_500_000];

fn transfers(stage: &mut Stage<'_, '_>) -> Result<()> {
    let work = Work {
        suite: Some(stage.paper.into()),
        lengths: stage.sizes(&MESSAGES, 5).to_vec(),
        methods: names(&[UPLOAD, DOWNLOAD]),
        types: vec![F64],
        ending: Ending::Named("transfers"),
        ..Work::default()
    };
    let cases = stage.measure(&work)?;
    let title = "Figure 2: blocking transfers by the size of the message (theirs: 8 µs to the device and twice that back below 10 kB)";
    let mut table = Table::new(title, &["bytes", "backend", "to, µs", "from, µs", "to, GB/s", "from, GB/s"]);
    for &n in stage.sizes(&MESSAGES, 5) {
        for backend in backends(&cases) {
            let of = |way: &str| find(&cases, |c| c.system.n == n && c.backend == backend && c.method == way);
            let time = |way: &str| microseconds(of(way).map(|m| m.again.median));
            let rate = |way: &str| two(of(way).map(|m| m.rate() / 1e9));
            let cells = [time(UPLOAD), time(DOWNLOAD), rate(UPLOAD), rate(DOWNLOAD)];
            table.row([thousands(8 * n as u64), backend.clone()].into_iter().chain(cells));
        }
    }
    stage.table(&table)?;
    stage.figure("rupp-2", || {
        over_size("Figure 2: transfers", "time, s", &cases, |c| c.method.clone(), |m| Some(m.again.median))
    })
}

fn fusion(stage: &mut Stage<'_, '_>) -> Result<()> {
    let sizes = [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000];
    let of = |n: &usize| [4, 28].map(|entries| format!("gen:random:{n}:{entries}"));
    let listed: Vec<String> = stage.sizes(&sizes, 2).iter().flat_map(of).collect();
    let work = stage.work(&listed, &[FUSED, IN_TWO], &["ell"], F64);
    let cases = stage.measure(&work)?;
    let title = "Figure 3: q = A p and <p, q>, fused and in two (theirs: 20 % to 10 000 rows of 4 entries, 10 % for small systems of 28)";
    let mut table = Table::new(title, &["matrix", "backend", "fused, µs", "in two, µs", "ratio"]);
    for (matrix, _) in matrices(&cases) {
        for backend in backends(&cases) {
            let of = |way: &str| {
                find(&cases, |c| c.system.matrix == matrix && c.backend == backend && c.method == way)
            };
            let [fused, two_of] = [FUSED, IN_TWO].map(|way| of(way).map(|m| m.again.median));
            let ratio = two(two_of.zip(fused).map(|(b, a)| b / a));
            table.row([
                short(&matrix).into(),
                backend.clone(),
                microseconds(fused),
                microseconds(two_of),
                ratio,
            ]);
        }
    }
    stage.table(&table)?;
    stage.figure("rupp-3", || {
        let name =
            |case: &Case| format!("{}, {}", case.method, case.system.matrix.rsplit(':').next().unwrap_or(""));
        over_size("Figure 3: fused and in two", "time, s", &cases, name, |m| Some(m.again.median))
    })
}

const METHODS: [&str; 8] = [
    "cg",
    "classical-cg",
    CG_BY_CALLS,
    "bicgstab",
    "classical-bicgstab",
    BICGSTAB_BY_CALLS,
    "pipelined-gmres",
    "gmres-once",
];

fn triangles(stage: &mut Stage<'_, '_>) -> Result<()> {
    let listed = names(stage.sizes(&MODEL_PROBLEMS, 2));
    iterations(
        stage,
        &listed,
        "Figure 4: µs an iteration, linear triangles (theirs: pipelined 2 to 3 times as fast as conventional below 10 000 unknowns)",
        "rupp-4",
    )
}

fn elasticity(stage: &mut Stage<'_, '_>) -> Result<()> {
    let listed = ["gen:elasticity3d:6", "gen:elasticity3d:12", "gen:elasticity3d:24", "gen:elasticity3d:47"];
    let listed = names(stage.sizes(&listed, 1));
    iterations(
        stage,
        &listed,
        "Figure 5: µs an iteration, linear elasticity (theirs: 2 times at the smallest size)",
        "rupp-5",
    )
}

fn iterations(stage: &mut Stage<'_, '_>, listed: &[String], title: &str, figure: &str) -> Result<()> {
    let mut work = stage.work(listed, &METHODS, &["ell"], F64);
    work.vectors = vectors("ones");
    let cases = stage.measure(&work)?;
    let head: Vec<&str> = ["n", "backend"].into_iter().chain(METHODS).collect();
    let mut table = Table::new(title, &head);
    for (matrix, n) in matrices(&cases) {
        for backend in backends(&cases) {
            let each = |way: &str| {
                let m =
                    find(&cases, |c| c.system.matrix == matrix && c.backend == backend && c.method == way);
                microseconds(m.and_then(|m| m.each_fresh()))
            };
            table.row([thousands(n as u64), backend.clone()].into_iter().chain(METHODS.map(each)));
        }
    }
    stage.table(&table)?;
    stage.figure(figure, || {
        over_size(title, "time of an iteration, s", &cases, |c| c.method.clone(), |m| m.each_fresh())
    })
}

/// A matrix of Table I: its name, the look-alike, whether it is symmetric, and of the paper the relative differences of CG, BiCGStab and
/// GMRES (Table II); a dash where there is none.
type Row = (&'static str, &'static str, bool, [&'static str; 3]);

const TABLE_2: [Row; 12] = [
    ("pdb1HYS", "protein", true, ["2.9e-12", "1.9e-2", "2.3e-15"]),
    ("cant", "cantilever", true, ["1.4e-14", "1.2e-6", "2.8e-11"]),
    ("consph", "spheres", true, ["3.0e-15", "7.3e-7", "9.8e-10"]),
    ("shipsec1", "ship", true, ["7.4e-12", "1.4e-2", "4.0e-10"]),
    ("pwtk", "wind-tunnel", true, ["3.0e-14", "1.2e-6", "6.5e-11"]),
    ("rma10", "harbor", false, ["-", "4.1e-1", "5.3e-8"]),
    ("cop20k_A", "accelerator", false, ["-", "3.4e-6", "1.8e-11"]),
    ("scircuit", "circuit", false, ["-", "1.4e-2", "2.1e-8"]),
    ("mac_econ_fwd500", "economics", false, ["-", "1.5e-1", "4.6e-14"]),
    ("RM07R", "rm07r", false, ["-", "2.2e-1", "1.4e-11"]),
    ("Hamrle3", "hamrle3", false, ["-", "1.1e-1", "1.1e-16"]),
    ("kkt_power", "kkt-power", false, ["-", "4.7e-2", "4.9e-12"]),
];

/// Iterations after which the look-alikes, whose diagonals dominate, have not converged.
const BEFORE_CONVERGENCE: u64 = 10;

/// A pipelined method, its classical form, and the products of an iteration.
const PAIRS: [(&str, &str, f64); 3] =
    [("cg", "classical-cg", 1.0), ("bicgstab", "classical-bicgstab", 2.0), ("pipelined-gmres", "gmres", 1.0)];

fn difference_and_share(stage: &mut Stage<'_, '_>) -> Result<()> {
    let part = if stage.small { ":256" } else { "" };
    let rows = stage.sizes(&TABLE_2, 12);
    let mut cases = Vec::new();
    for symmetric in [true, false] {
        let of = |row: &&Row| row.2 == symmetric;
        let listed: Vec<String> =
            rows.iter().filter(of).map(|row| format!("gen:alike:{}{part}", row.1)).collect();
        let methods: &[&str] = match symmetric {
            true => {
                &["spmv", "cg", "classical-cg", "bicgstab", "classical-bicgstab", "pipelined-gmres", "gmres"]
            }
            false => &["spmv", "bicgstab", "classical-bicgstab", "pipelined-gmres", "gmres"],
        };
        let mut work = stage.work(&listed, methods, &[], F64);
        work.ending = Ending::Iterations(BEFORE_CONVERGENCE);
        work.vectors = vectors("ones");
        cases.extend(stage.measure(&work)?);
    }
    let title = "Tables I and II: relative differences of the residuals of pipelined and classical methods, by the recurrences, after 10 iterations \
                 (theirs after 30, when these matrices have converged)";
    let head = ["matrix", "n", "entries a row", "CG", "theirs", "BiCGStab", "theirs", "GMRES", "theirs"];
    let mut table = Table::new(title, &head);
    let share_title = "Table III: share of the products in an iteration (theirs on average: CG 85 %, BiCGStab 66 %, GMRES 40 %)";
    let mut shares = Table::new(share_title, &["matrix", "backend", "CG", "BiCGStab", "GMRES"]);
    for (name, alike, _, theirs) in rows {
        let matrix = format!("gen:alike:{alike}{part}");
        let Some(case) = cases.iter().find(|c| c.system.matrix == matrix) else { continue };
        let (n, nnz) = (case.system.n, case.system.nnz);
        let of = |method: &str, backend: &str| {
            find(&cases, |c| c.system.matrix == matrix && c.backend == backend && c.method == method)
        };
        let first = case.backend.clone();
        let apart = PAIRS.map(|(pipelined, classical, _)| {
            let last = |method: &str| {
                of(method, &first).filter(|m| m.iterations == BEFORE_CONVERGENCE).and_then(|m| m.residual)
            };
            error(last(pipelined).zip(last(classical)).map(|(p, c)| (p - c).abs() / c))
        });
        let both = apart.into_iter().zip(theirs).flat_map(|(ours, theirs)| [ours, theirs.to_string()]);
        let sizes =
            [format!("{name}, {alike}"), thousands(n as u64), two(Some(nnz as f64 / n.max(1) as f64))];
        table.row(sizes.into_iter().chain(both));
        for backend in backends(&cases) {
            let product = of("spmv", &backend).map(|m| m.again.median);
            let share = PAIRS.map(|(pipelined, _, products)| {
                let each = of(pipelined, &backend).and_then(|m| m.each_on_device());
                percent(product.zip(each).map(|(product, each)| products * product / each))
            });
            shares.row([name.to_string(), backend].into_iter().chain(share));
        }
    }
    stage.table(&table)?;
    stage.table(&shares)
}
