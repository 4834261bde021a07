//! Bell and Garland 2008.
use super::table::{Table, two};
use super::{Paper, Stage, backends, find, matrices, short};
use crate::info::Lengths;
use crate::plot;
use lacuna::io::{Spec, look_alikes};
use lacuna_measure::failure::Result;
use lacuna_measure::number::TypeName::{F32, F64};
use lacuna_measure::record::{Case, distinct};
use lacuna_measure::session::names;

pub(super) const PAPER: Paper = Paper {
    title: "Bell and Garland 2008",
    differs: "Structured matrices are theirs. For the unstructured ones stand generated ones of the same rows, columns and entries a row: nodes of \
              a box that are joined where they are near, of one to six unknowns; the lattice of QCD as it is; for the others graphs with rows \
              of a like shape. Values are random. Formats are all that Lacuna has; CSR (scalar) is `csr:lanes=1`, CSR (vector) `csr:lanes=32`; a product overwrites its result",
    sections: &[strides, structured, unstructured, tall, lengths],
    missing: &[
        "With and without the texture cache, every figure's a and b: there is no switch",
        "`coo` walks short rows by one thread each and long ones in pieces; there is no segmented reduction",
        "Packets are of rows as they are given: `lacuna spmv MATRIX --format pkt --reorder packets` partitions them first",
        "The multicore processors of Table 5 and Figures 36 and 37 are gone; `--backends cpu,cuda` compares yours",
    ],
};

fn strides(stage: &mut Stage<'_, '_>) -> Result<()> {
    let n = if stage.small { 4_000 } else { 1_000_000 };
    let all = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
    let listed: Vec<String> =
        stage.sizes(&all, 3).iter().map(|stride| format!("gen:strided:{n}:{stride}")).collect();
    let mut cases = Vec::new();
    for number in [F32, F64] {
        let work = stage.work(&listed, &["spmv"], &["csr"], number);
        cases.extend(stage.measure(&work)?);
    }
    let title = "Figures 2 and 3: GB/s of useful bytes where every k-th element of a vector is read, by a product with one entry in each row \
                 (theirs: a kernel that updates every k-th element; more than ten times slower at large strides)";
    let mut table = Table::new(title, &["matrix", "backend", "f32", "f64"]);
    for (matrix, _) in matrices(&cases) {
        for backend in backends(&cases) {
            let rate = |number: &str, bytes: f64| {
                let is =
                    |c: &Case| c.system.matrix == matrix && c.backend == backend && c.system.number == number;
                // A value, a column and an element read, the result written.
                two(find(&cases, is).map(|m| n as f64 * (3.0 * bytes + 4.0) / m.again.median / 1e9))
            };
            table.row([short(&matrix).into(), backend.clone(), rate("f32", 4.0), rate("f64", 8.0)]);
        }
    }
    stage.table(&table)
}

/// CSR (scalar) and CSR (vector) of the paper.
const SCALAR: &str = "csr:lanes=1";
const VECTOR: &str = "csr:lanes=32";

/// The formats of the paper, and their bytes for an operation by Table 1, in single and in double precision.
const TABLE_1: [(&str, [u32; 2]); 6] = [
    ("dia", [4, 8]),
    ("ell", [6, 10]),
    ("csr", [6, 10]),
    ("coo", [8, 12]),
    ("hyb", [6, 10]),
    ("pkt", [4, 6]),
];

fn structured(stage: &mut Stage<'_, '_>) -> Result<()> {
    let listed: &[&str] = match stage.small {
        true => &["gen:poisson2d:60x60", "gen:poisson3d:12x12x12:27"],
        false => &[
            "gen:poisson1d:1000000",
            "gen:poisson2d:1000x1000",
            "gen:poisson3d:100x100x100",
            "gen:poisson2d:1000x1000:9",
            "gen:poisson3d:100x100x100:27",
        ],
    };
    let cases = products(stage, &names(listed))?;
    speeds(
        stage,
        &cases,
        "Table 3, Figures 27 and 29: GFLOP/s of products, structured (theirs with 27 points: DIA 36.8 in f32 and 16.7 in f64)",
    )?;
    speeds_in_bytes(stage, &cases, "Figures 28 and 30: GB/s")?;
    let title = "Table 1: bytes for an operation, of the largest matrix; all arrays and vectors counted once, which the paper leaves out in part";
    let mut table = Table::new(title, &["format", "f32", "theirs", "f64", "theirs"]);
    let Some((last, _)) = matrices(&cases).last().cloned() else { return Ok(()) };
    for (format, theirs) in TABLE_1 {
        let of = |number: &str| {
            let is = |c: &&Case| c.system.matrix == last && c.format == format && c.system.number == number;
            let case = cases.iter().find(is)?;
            Some(case.measured.as_ref()?.bytes as f64 / (2.0 * case.system.nnz as f64))
        };
        let [single, double] = theirs.map(|bytes| bytes.to_string());
        table.row([format.into(), two(of("f32")), single, two(of("f64")), double]);
    }
    stage.table(&table)
}

fn unstructured(stage: &mut Stage<'_, '_>) -> Result<()> {
    let part = if stage.small { ":256" } else { "" };
    let listed = look_alikes().map(|name| format!("gen:alike:{name}{part}"));
    let cases = products(stage, stage.sizes(&listed, 3))?;
    speeds(
        stage,
        &cases,
        "Table 4, Figures 31 and 34: GFLOP/s of products, unstructured (theirs at best: HYB 22.3 in f32 on FEM/Spheres, CSR 14.2 in f64 on Dense)",
    )?;
    speeds_in_bytes(stage, &cases, "Figures 32 and 35: GB/s")
}

fn tall(stage: &mut Stage<'_, '_>) -> Result<()> {
    let matrix = if stage.small { "gen:dense:300x128" } else { "gen:dense:30000x128" };
    let cases = products(stage, &names(&[matrix]))?;
    speeds(
        stage,
        &cases,
        "Section 5.2.1: a dense matrix of 30 K rows and 128 columns, GFLOP/s (theirs: HYB 30.83 in f32)",
    )
}

fn products(stage: &mut Stage<'_, '_>, listed: &[String]) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for number in [F32, F64] {
        let work = stage.work(listed, &["spmv"], &["all", SCALAR, VECTOR], number);
        cases.extend(stage.measure(&work)?);
    }
    Ok(cases)
}

fn speeds(stage: &mut Stage<'_, '_>, cases: &[Case], title: &str) -> Result<()> {
    by_format(stage, cases, title, |case| {
        Some(2.0 * case.system.nnz as f64 / case.measured.as_ref()?.again.median / 1e9)
    })
}

fn speeds_in_bytes(stage: &mut Stage<'_, '_>, cases: &[Case], title: &str) -> Result<()> {
    by_format(stage, cases, title, |case| Some(case.measured.as_ref()?.rate() / 1e9))
}

/// A column for each format that some matrix has.
fn by_format(
    stage: &mut Stage<'_, '_>,
    cases: &[Case],
    title: &str,
    of: impl Fn(&Case) -> Option<f64>,
) -> Result<()> {
    let formats = distinct(cases.iter().filter(|c| c.measured.is_some()).map(|c| c.format.as_str()));
    let head: Vec<&str> = ["matrix", "type", "backend"].into_iter().chain(formats.iter().copied()).collect();
    let mut table = Table::new(title, &head);
    let rows = distinct(cases.iter().map(|c| (&c.system.matrix, &c.system.number, &c.backend)));
    for (matrix, number, backend) in rows {
        let cell = |format: &&str| {
            let is = |c: &&Case| {
                (&c.system.matrix, &c.system.number, &c.backend) == (matrix, number, backend)
                    && c.format == *format
            };
            two(cases.iter().find(is).and_then(&of))
        };
        let first = [short(matrix).to_string(), number.clone(), backend.clone()];
        table.row(first.into_iter().chain(formats.iter().map(cell)));
    }
    stage.table(&table)
}

fn lengths(stage: &mut Stage<'_, '_>) -> Result<()> {
    let part = if stage.small { ":64" } else { "" };
    for name in ["lp", "wind-tunnel"] {
        let matrix = format!("alike:{name}{part}");
        let title = format!("Figure 33: entries of the rows of {matrix}");
        let mut table = Table::new(&title, &["entries", "rows"]);
        let lengths = Lengths::of(&Spec::parse(&matrix)?.build::<f32>()?);
        for [first, last, rows] in lengths.classes.iter().filter(|class| class[2] > 0) {
            table.row([format!("{first} to {last}"), rows.to_string()]);
        }
        stage.table(&table)?;
        stage.figure(&format!("bell-33-{name}"), || plot::rows(&matrix, &lengths))?;
    }
    Ok(())
}
