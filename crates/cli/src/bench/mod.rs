//! `lacuna bench`
mod against;
mod papers;

use crate::args::{BenchArgs, Suite};
use crate::compare::{LADDER, Session, Work, names};
use crate::failure::{NOT_CONVERGED, Result};
use crate::measure::{ASSEMBLE, READ, TO};
use crate::{out, record};
use std::process::ExitCode;

/// Matrices of products: structured and unstructured, inside the caches and larger than them.
const PRODUCTS: [&str; 7] = [
    "gen:poisson2d:1000x1000",
    "gen:poisson3d:100x100x100",
    "gen:poisson3d:100x100x100:27",
    "gen:poisson-p1:255",
    "gen:poisson-p1:511",
    "gen:elasticity3d:47",
    "gen:power-law:1000000",
];
const SMALL_PRODUCTS: [&str; 4] =
    ["gen:poisson2d:100x100", "gen:poisson3d:20x20x20:27", "gen:elasticity3d:8", "gen:power-law:10000"];
/// Generated matrices: on a grid, and of 3x3 blocks.
const MATRICES: [&str; 2] = ["gen:poisson3d:100x100x100:27", "gen:elasticity3d:47"];
const SMALL_MATRICES: [&str; 2] = ["gen:poisson3d:20x20x20:27", "gen:elasticity3d:8"];
/// Further solves, in addition to those of the ladder.
const ELASTICITY: [&str; 4] =
    ["gen:elasticity3d:4", "gen:elasticity3d:8", "gen:elasticity3d:16", "gen:elasticity3d:47"];
/// Lengths of vectors: far larger than the caches, about the size of the last cache, inside the second,
/// inside the first.
const LENGTHS: [usize; 4] = [16_777_216, 1_000_000, 20_000, 2_000];

pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode> {
    let old = args.against.as_deref().map(record::read).transpose()?;
    let (code, lines) = Session::run(&args.measuring, |session| measure(args, session))?;
    let Some(old) = old else { return Ok(code) };
    let verdict =
        against::judge(&record::cases(&old).collect::<Vec<_>>(), &record::cases(&lines).collect::<Vec<_>>());
    out::say(args.measuring.aside(), &verdict.text())?;
    Ok(if verdict.is_slower() && code == ExitCode::SUCCESS { ExitCode::from(NOT_CONVERGED) } else { code })
}

/// Runs the requested suites.
fn measure(args: &BenchArgs, session: &mut Session<'_>) -> Result<()> {
    let suites = match args.suites.is_empty() {
        true => vec![Suite::Passes, Suite::Spmv, Suite::Solvers, Suite::Matrices],
        false => args.suites.clone(),
    };
    for suite in suites {
        match suite {
            Suite::Passes => {
                session.beside_loops_by_hand();
                session.measure(&passes(args))?;
                session.without_loops_by_hand();
            }
            Suite::Spmv => session.measure(&products(args))?,
            Suite::Solvers => session.measure(&solvers(args))?,
            Suite::Matrices => session
                .on_the_host(|session| matrices(args).iter().try_for_each(|work| session.measure(work)))?,
            Suite::Papers => {
                for paper in papers::all(args.small).iter().filter(|paper| paper.is_among(&args.papers)) {
                    session.note(paper.name, &paper.about())?;
                    for work in &paper.works {
                        session.measure(work)?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn passes(args: &BenchArgs) -> Work {
    let lengths = if args.small { &LENGTHS[2..] } else { &LENGTHS };
    Work {
        suite: Some("passes".into()),
        lengths: lengths.to_vec(),
        types: args.types.clone(),
        ..Work::default()
    }
}

fn products(args: &BenchArgs) -> Work {
    Work {
        suite: Some("products".into()),
        matrices: if args.small { names(&SMALL_PRODUCTS) } else { names(&PRODUCTS) },
        methods: names(&["spmv"]),
        formats: names(&["all"]),
        types: args.types.clone(),
        ..Work::default()
    }
}

/// Reading and assembling the first matrix, and converting both to suitable formats.
fn matrices(args: &BenchArgs) -> [Work; 2] {
    let [grid, blocks] = if args.small { SMALL_MATRICES } else { MATRICES };
    let to = |formats: &[&str]| formats.iter().map(|f| format!("{TO}{f}")).collect::<Vec<_>>();
    let on_grid = [names(&[READ, ASSEMBLE]), to(&["coo", "dia", "ell", "sell", "packed"])].concat();
    [(grid, on_grid), (blocks, to(&["bcsr3"]))].map(|(matrix, methods)| Work {
        suite: Some("matrices".into()),
        matrices: names(&[matrix]),
        methods,
        types: args.types.clone(),
        ..Work::default()
    })
}

fn solvers(args: &BenchArgs) -> Work {
    let (ladder, elasticity) = if args.small { (3, 2) } else { (LADDER.len(), ELASTICITY.len()) };
    Work {
        suite: Some("solvers".into()),
        matrices: [names(&LADDER[..ladder]), names(&ELASTICITY[..elasticity])].concat(),
        methods: names(&["cg", "classical-cg", "bicgstab", "classical-bicgstab", "gmres", "gmres-once"]),
        types: args.types.clone(),
        ..Work::default()
    }
}
