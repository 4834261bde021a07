//! Every combination of a system, prepared and measured in rounds that take turns.
use crate::args::CompareArgs;
use crate::failure::Result;
use crate::measure::{SPMV, System, Target, Task};
use crate::progress::Counting;
use crate::record::{Case, Entry, Kept, SystemKey};
use lacuna::Stop;
use lacuna::formats::FORMATS;
use lacuna::solvers::METHODS;

/// The methods where none are named.
const DEFAULT_METHODS: [&str; 3] = ["cg", "bicgstab", "gmres"];
/// Iterations at the most where a tolerance decides.
const MOST_ITERATIONS: u64 = 100_000;

/// A combination, once it is ready, or why it cannot be.
struct Combination {
    target: usize,
    task: Task,
    case: Option<usize>,
    why: Option<String>,
}

impl Combination {
    /// Takes note of what became of it.
    fn note(&mut self, done: lacuna::Result<usize>) {
        match done {
            Ok(case) => self.case = Some(case),
            Err(error) => (self.case, self.why) = (None, Some(error.to_string())),
        }
    }
}

/// Measures all that was asked for of a system.
pub(super) fn measure(
    args: &CompareArgs,
    name: &str,
    system: &System,
    targets: &mut [Box<dyn Target>],
    kept: &mut Kept,
    progress: &Counting,
    enough: &dyn Fn() -> bool,
) -> Result<()> {
    let (stop, stop_words) = stop(args, system);
    let mut combinations = combinations(args, system, targets, stop);
    progress.steps(combinations.len(), args.rounds.into());
    for combination in &mut combinations {
        if enough() {
            break;
        }
        if combination.why.is_none() {
            let ready = targets[combination.target].prepare(system, &combination.task);
            combination.note(ready);
        }
        progress.step();
    }
    'rounds: for _ in 0..args.rounds {
        for combination in &mut combinations {
            if enough() {
                break 'rounds;
            }
            if let Some(case) = combination.case {
                let done = targets[combination.target].round(case);
                combination.note(done.map(|()| case));
            }
            progress.step();
        }
    }
    let structure = system.structure();
    let system = SystemKey {
        matrix: name.into(),
        n: structure.rows,
        nnz: structure.nnz,
        number: system.kind().name().into(),
    };
    for Combination { target, task, case, why } in combinations {
        let target = &targets[target];
        let (device, spmv) = (target.device(), task.method == SPMV);
        let measured = case.and_then(|case| target.measured(case));
        let why =
            why.or_else(|| measured.is_none().then(|| "the run was ended before it was measured".into()));
        kept.push(Entry::Case(Case {
            system: system.clone(),
            method: task.method,
            precond: task.precond,
            format: task.format.into(),
            stop: if spmv { "products".into() } else { stop_words.clone() },
            backend: device.backend.into(),
            device: device.name.clone(),
            units: device.units,
            copy: target.copy(),
            why,
            measured: measured.map(Box::new),
        }))?;
    }
    targets.iter_mut().for_each(|target| target.clear());
    Ok(())
}

/// When solves stop, and that in words.
fn stop(args: &CompareArgs, system: &System) -> (Stop, String) {
    match args.rtol {
        Some(rtol) => {
            let most =
                args.max_iters.unwrap_or((10 * system.structure().rows as u64).clamp(1000, MOST_ITERATIONS));
            let stop = Stop { rtol, max_iters: most, ..Stop::default() };
            (stop, format!("to |b - A x| <= {rtol:e} |b|"))
        }
        None => {
            let stop = Stop { rtol: 0.0, atol: 0.0, max_iters: args.iterations, dtol: f64::INFINITY };
            (stop, format!("{} iterations", args.iterations))
        }
    }
}

/// Methods times formats times backends.
fn combinations(
    args: &CompareArgs,
    system: &System,
    targets: &[Box<dyn Target>],
    stop: Stop,
) -> Vec<Combination> {
    let methods: Vec<&str> = match args.methods.is_empty() {
        true => DEFAULT_METHODS.to_vec(),
        false => args.methods.iter().map(String::as_str).collect(),
    };
    let formats = formats(&args.formats, system, targets);
    let mut list = Vec::new();
    for method in methods {
        for &format in &formats {
            for target in 0..targets.len() {
                let precond = if method == SPMV { "none" } else { &args.precond };
                let task = Task {
                    method: method.into(),
                    precond: precond.into(),
                    format,
                    stop,
                    restart: args.restart.map(|m| m as usize),
                };
                let why = unsuited(method, system).filter(|_| args.methods.is_empty());
                list.push(Combination { target, task, case: None, why });
            }
        }
    }
    list
}

/// Formats by name. `auto` is what the choice falls on, on any of the backends: so each is seen with its own and with
/// the others' choice, and bits can be compared.
fn formats(asked: &[String], system: &System, targets: &[Box<dyn Target>]) -> Vec<&'static str> {
    let choices = || targets.iter().map(|target| target.choose_format(system));
    let mut list = Vec::new();
    for name in asked {
        let named = FORMATS.iter().map(|f| f.name).filter(|f| name == "all" || f == name);
        list.extend(named);
        list.extend(choices().filter(|_| name == "auto"));
    }
    if asked.is_empty() {
        list.extend(choices());
    }
    let mut seen = Vec::new();
    list.retain(|name| !seen.contains(name) && (seen.push(*name), true).1);
    list
}

/// Why a method that nobody asked for is not tried.
fn unsuited(method: &str, system: &System) -> Option<String> {
    let s = system.structure();
    let needs = METHODS.iter().any(|m| m.name == method && m.positive_definite);
    (needs && !(s.hermitian && s.diagonal_positive)).then(|| {
        let what = if s.hermitian { "its diagonal is not positive" } else { "it is not Hermitian" };
        format!("the matrix is not positive definite: {what}; --methods {method} tries all the same")
    })
}
