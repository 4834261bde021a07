//! Buatois, Caumon and Lévy 2009.
use super::table::{Table, microseconds, percent, two};
use super::{Paper, Stage, backends, find, matrices, over_size, short, vectors};
use crate::plot;
use lacuna_measure::Measured;
use lacuna_measure::failure::Result;
use lacuna_measure::number::TypeName::F32;
use lacuna_measure::pass::BLAS;
use lacuna_measure::quantity::thousands;
use lacuna_measure::record::Case;
use lacuna_measure::session::{Ending, Work, names};

pub(super) const PAPER: Paper = Paper {
    title: "Buatois et al. 2009",
    differs: "Hilly surfaces of as many points stand for the meshes of Table 3: `gen:lscm` is the parameterisation, `gen:smooth` the smoothing; \
              both take a mesh of yours too, `gen:lscm:head.obj`. Beside them stand systems with 4 and 2 unknowns a node in full blocks. The \
              normal equations of the map have 14 entries a row where theirs have 33 to 42. Speeds count useful operations alone, as theirs do. `--simd none` is their CPU without SSE3",
    sections: &[meshes, vectors_of_blas, products, history],
    missing: &[
        "The dense product SGEMM of Figure 10 is not here, nor baselines in OpenGL and CTM, whose machines are gone",
        "Their stopping test is on the preconditioned residual; ours is the true residual",
        "The peak of a device in operations is not known, so that Figure 10 has the efficiency of its bandwidth alone",
    ],
};

/// Cells of a surface of as many points as each mesh, odd so that blocks of 4 fit; and the paper's unknowns and entries of both tasks.
const MESHES: [(usize, &str, [&str; 4]); 5] = [
    (27, "Girl Face 1", ["1.5K", "50.8K", "2.3K", "52.9K"]),
    (57, "Girl Face 2", ["6.5K", "246.7K", "9.8K", "290.5K"]),
    (113, "Girl Face 3", ["25.9K", "1.0M", "38.8K", "1.6M"]),
    (227, "Girl Face 4", ["103.1K", "4.2M", "154.7K", "6.3M"]),
    (577, "Phlegmatic Dragon", ["671.4K", "19.5M", "1.0M", "19.6M"]),
];
const FORMATS: [&str; 3] = ["csr", "bcsr2", "bcsr4"];

fn tasks(stage: &Stage<'_, '_>) -> Vec<String> {
    let sizes = stage.sizes(&MESHES, 1);
    let of = |task: &str| sizes.iter().map(|(m, ..)| format!("gen:{task}:{m}")).collect::<Vec<_>>();
    let blocks = |task: &str, rows: usize| {
        let side = |m: usize| ((m + 1) * (m + 1) / rows).isqrt().max(2) & !1;
        sizes
            .iter()
            .map(|(m, ..)| format!("gen:{task}").replace('M', &side(*m).to_string()))
            .collect::<Vec<_>>()
    };
    [of("lscm"), of("smooth"), blocks("cross-diffusion:M:4", 2), blocks("elasticity2d:M", 1)].concat()
}

fn meshes(stage: &mut Stage<'_, '_>) -> Result<()> {
    let mut work = stage.work(&tasks(stage), &["spmv"], &["csr"], F32);
    work.vectors = vectors("ones");
    let cases = stage.measure(&work)?;
    let title = "Table 3: unknowns and entries of a parameterisation and of a smoothing";
    let mut table = Table::new(title, &["mesh", "unknowns", "theirs", "entries", "theirs"]);
    for (m, name, theirs) in stage.sizes(&MESHES, 1) {
        for (task, [unknowns, entries]) in
            [("lscm", [theirs[0], theirs[1]]), ("smooth", [theirs[2], theirs[3]])]
        {
            let matrix = format!("gen:{task}:{m}");
            let Some(case) = cases.iter().find(|c| c.system.matrix == matrix) else { continue };
            let [n, nnz] = [case.system.n, case.system.nnz].map(|count| thousands(count as u64));
            table.row([format!("{name}, {task}:{m}"), n, unknowns.into(), nnz, entries.into()]);
        }
    }
    stage.table(&table)
}

const LENGTHS: [usize; 8] = [1_000, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];

/// Useful operations of a call: `2 n`, or `2 n − 1` for a sum of products.
fn operations(name: &str, n: usize) -> f64 {
    2.0 * n as f64 - if name == "axpy" { 0.0 } else { 1.0 }
}

fn vectors_of_blas(stage: &mut Stage<'_, '_>) -> Result<()> {
    let work = Work {
        suite: Some(stage.paper.into()),
        lengths: stage.sizes(&LENGTHS, 3).to_vec(),
        methods: names(&BLAS.map(|pass| pass.name)),
        types: vec![F32],
        ending: Ending::Named("passes"),
        ..Work::default()
    };
    let cases = stage.measure(&work)?;
    let title = "Figure 8: GFLOP/s of SAXPY, SDOT and SNRM2 over the size (theirs at best: SAXPY 0.62 on the CPU, 11.0 on the GPU; SNRM2 0.94 and 15.5); of copy: Figure 10";
    let head = ["n", "backend", "SAXPY", "SDOT", "SNRM2", "SAXPY of copy", "SDOT of copy", "SNRM2 of copy"];
    let mut table = Table::new(title, &head);
    for &n in stage.sizes(&LENGTHS, 3) {
        for backend in backends(&cases) {
            let of =
                |pass: &str| find(&cases, |c| c.system.n == n && c.backend == backend && c.method == pass);
            let copy = cases.iter().find(|c| c.backend == backend).map_or(f64::NAN, |c| c.copy);
            let speed = |pass: &str| two(of(pass).map(|m| operations(pass, n) / m.again.median / 1e9));
            let part = |pass: &str| percent(of(pass).map(|m| m.rate() / copy));
            let names = BLAS.map(|pass| pass.name);
            let cells = names.map(speed).into_iter().chain(names.map(part));
            table.row([thousands(n as u64), backend.clone()].into_iter().chain(cells));
        }
    }
    stage.table(&table)?;
    stage.figure("buatois-8", || {
        let speed = |m: &Measured| Some(m.bytes as f64 / m.again.median / 1e9);
        over_size("Figure 8: SAXPY, SDOT and SNRM2", "GB/s", &cases, |case| case.method.clone(), speed)
    })
}

fn products(stage: &mut Stage<'_, '_>) -> Result<()> {
    let mut work = stage.work(&tasks(stage), &["spmv", "cg"], &FORMATS, F32);
    work.preconds = names(&["jacobi"]);
    let cases = stage.measure(&work)?;
    let title = "Figure 9: products in GFLOP/s (of the bandwidth of a copy, Figure 10), and iterations of conjugate gradients with \
                 Jacobi's preconditioner in µs (theirs: 2x2 blocks 18 % faster than rows on the CPU and 300 % on the GPU, 4x4 33 % and 50 % faster than 2x2)";
    let head = ["matrix", "backend", "CRS", "2x2", "4x4", "of copy", "2x2", "4x4", "CG, CRS", "2x2", "4x4"];
    let mut table = Table::new(title, &head);
    for (matrix, _) in matrices(&cases) {
        for backend in backends(&cases) {
            let of = |method: &str, format: &str| {
                cases.iter().find(|c| {
                    c.system.matrix == matrix
                        && c.backend == backend
                        && c.method == method
                        && c.format == format
                })
            };
            let speed = |format: &str| {
                two(of("spmv", format)
                    .and_then(|c| Some(2.0 * c.system.nnz as f64 / c.measured.as_ref()?.again.median / 1e9)))
            };
            let part = |format: &str| {
                percent(of("spmv", format).and_then(|c| Some(c.measured.as_ref()?.rate() / c.copy)))
            };
            let each = |format: &str| {
                microseconds(of("cg", format).and_then(|c| c.measured.as_ref()).map(|m| m.each()))
            };
            let cells = FORMATS.map(speed).into_iter().chain(FORMATS.map(part)).chain(FORMATS.map(each));
            table.row([short(&matrix).to_string(), backend.clone()].into_iter().chain(cells));
        }
    }
    stage.table(&table)
}

fn history(stage: &mut Stage<'_, '_>) -> Result<()> {
    let m = if stage.small { 27 } else { 577 };
    let mut work = stage.work(&[format!("gen:lscm:{m}")], &["classical-cg"], &["csr"], F32);
    work.preconds = names(&["jacobi"]);
    work.vectors = vectors("model");
    work.ending = Ending::Iterations(if stage.small { 200 } else { 2000 });
    let cases = stage.measure(&work)?;
    let title = "Figure 11: relative error of conjugate gradients in single precision after so many iterations (theirs: 1e-8 after 500, and no more from there on)";
    let mut table = Table::new(title, &["matrix", "backend", "iterations", "by the recurrence", "true"]);
    for case in &cases {
        let Some(m) = &case.measured else { continue };
        let residual = |r: Option<f64>| super::table::error(r);
        table.row([
            short(&case.system.matrix).to_string(),
            case.backend.clone(),
            m.iterations.to_string(),
            residual(m.residual),
            residual(m.true_residual),
        ]);
    }
    stage.table(&table)?;
    let listed: Vec<&Case> = cases.iter().collect();
    stage.figure("buatois-11", || plot::residuals(&listed, None))
}
