//! `lacuna-bench run`
use crate::against;
use crate::args::{RunArgs, RunningArgs, Suite};
use crate::measure::{ASSEMBLE, ByHand, Host, READ, TO};
use clap::ValueEnum;
use lacuna_measure::failure::Result;
use lacuna_measure::pass::PASSES;
use lacuna_measure::session::{Ending, MODEL_PROBLEMS, Session, Work, names};
use lacuna_measure::{Target, of_everything, out, record};
use std::process::ExitCode;

/// Exit code of measurements that are slower than those kept earlier.
const SLOWER: u8 = 1;

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
/// Further solves, in addition to those of the model problems.
const ELASTICITY: [&str; 4] =
    ["gen:elasticity3d:4", "gen:elasticity3d:8", "gen:elasticity3d:16", "gen:elasticity3d:47"];
/// Lengths of vectors: far larger than the caches, about the size of the last cache, inside the second,
/// inside the first.
const LENGTHS: [usize; 4] = [16_777_216, 1_000_000, 20_000, 2_000];

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    let suites = match args.suites.is_empty() {
        true => Suite::value_variants(),
        false => &args.suites,
    };
    measured(&args.running, |session| suites.iter().try_for_each(|suite| measure(*suite, args, session)))
}

/// Runs measurements, and compares their results with those kept earlier if that is requested.
pub(crate) fn measured(
    args: &RunningArgs,
    measure: impl FnOnce(&mut Session<'_>) -> Result<()>,
) -> Result<ExitCode> {
    args.measuring.check_outputs(&[])?;
    let old = args.against.as_deref().map(record::read).transpose()?;
    let (code, lines) = Session::run(&args.measuring, of_everything, measure)?;
    let Some(old) = old else { return Ok(code) };
    let [old, new] = [&old, &lines].map(|lines| record::cases(lines).collect::<Vec<_>>());
    let verdict = against::judge(&old, &new);
    out::say(args.measuring.aside(), &verdict.text())?;
    Ok(if verdict.is_slower() && code == ExitCode::SUCCESS { ExitCode::from(SLOWER) } else { code })
}

fn measure(suite: Suite, args: &RunArgs, session: &mut Session<'_>) -> Result<()> {
    match suite {
        Suite::Passes => beside_loops_by_hand(session, |session| session.measure(&passes(args))),
        Suite::Spmv => session.measure(&products(args)),
        Suite::Solvers => session.measure(&solvers(args)),
        Suite::Matrices => {
            on_the_host(session, |session| matrices(args).iter().try_for_each(|work| session.measure(work)))
        }
    }
}

/// Measures loops written by hand too, if the CPU backend is present.
fn beside_loops_by_hand<'a>(
    session: &mut Session<'a>,
    measure: impl FnOnce(&mut Session<'a>) -> Result<()>,
) -> Result<()> {
    let backends = session.targets.len();
    if let Some(cpu) = cpu(session) {
        let by_hand = ByHand::new(cpu.device().units, cpu.copy());
        session.targets.push(Box::new(by_hand));
    }
    let done = measure(session);
    session.targets.truncate(backends);
    done
}

/// Measures work that needs no backend, if the CPU backend is present.
fn on_the_host<'a>(
    session: &mut Session<'a>,
    measure: impl FnOnce(&mut Session<'a>) -> Result<()>,
) -> Result<()> {
    let Some(cpu) = cpu(session) else { return Ok(()) };
    let host: Box<dyn Target> = Box::new(Host::new(&cpu.device().name, cpu.copy()));
    let backends = std::mem::replace(&mut session.targets, vec![host]);
    let done = measure(session);
    session.targets = backends;
    done
}

fn cpu<'s>(session: &'s Session<'_>) -> Option<&'s dyn Target> {
    session.targets.iter().map(|target| &**target).find(|target| target.device().backend == "cpu")
}

fn passes(args: &RunArgs) -> Work {
    let lengths = if args.running.small { &LENGTHS[2..] } else { &LENGTHS };
    Work {
        suite: Some("passes".into()),
        lengths: lengths.to_vec(),
        methods: names(&PASSES.map(|pass| pass.name)),
        ending: Ending::Named("passes"),
        types: args.types.clone(),
        ..Work::default()
    }
}

fn products(args: &RunArgs) -> Work {
    Work {
        suite: Some("products".into()),
        matrices: if args.running.small { names(&SMALL_PRODUCTS) } else { names(&PRODUCTS) },
        methods: names(&["spmv"]),
        formats: names(&["all"]),
        types: args.types.clone(),
        ..Work::default()
    }
}

/// Reading and assembling the first matrix, and converting both to suitable formats.
fn matrices(args: &RunArgs) -> [Work; 2] {
    let [grid, blocks] = if args.running.small { SMALL_MATRICES } else { MATRICES };
    let to = |formats: &[&str]| formats.iter().map(|f| format!("{TO}{f}")).collect::<Vec<_>>();
    let on_grid = [names(&[READ, ASSEMBLE]), to(&["coo", "dia", "ell", "sell", "packed"])].concat();
    [(grid, on_grid), (blocks, to(&["bcsr3"]))].map(|(matrix, methods)| Work {
        suite: Some("matrices".into()),
        matrices: names(&[matrix]),
        methods,
        ending: Ending::Named("once"),
        types: args.types.clone(),
        ..Work::default()
    })
}

fn solvers(args: &RunArgs) -> Work {
    let (models, elasticity) =
        if args.running.small { (3, 2) } else { (MODEL_PROBLEMS.len(), ELASTICITY.len()) };
    Work {
        suite: Some("solvers".into()),
        matrices: [names(&MODEL_PROBLEMS[..models]), names(&ELASTICITY[..elasticity])].concat(),
        methods: names(&["cg", "classical-cg", "bicgstab", "classical-bicgstab", "gmres", "gmres-once"]),
        types: args.types.clone(),
        ..Work::default()
    }
}
