//! Prepares every combination on a subject, and measures them in alternating rounds.
use super::{Session, Work};
use crate::failure::{BAD_INPUT, Result, code_of};
use crate::record::{Case, Entry, PRODUCTS, SystemKey, distinct};
use crate::{SPMV, Subject, Target, Task};
use lacuna::formats::FORMATS;
use lacuna::solvers::{Combined, METHODS, Needs, name_of};
use lacuna::{Stop, Structure};

/// The default methods, and those for a matrix that is not square.
const DEFAULT_METHODS: [&str; 3] = ["cg", "bicgstab", "gmres"];
const DEFAULT_LEAST_SQUARES: [&str; 3] = ["cgls", "lsqr", "lsmr"];
/// Shown as the format if there is no matrix.
const NO_FORMAT: &str = "-";

/// A combination: prepared, or the reason why it cannot be.
struct Combination {
    target: usize,
    task: Task,
    case: Option<usize>,
    why: Option<String>,
}

impl Combination {
    /// Records the result of the preparation. Returns the exit code of an error.
    fn note(&mut self, done: lacuna::Result<usize>) -> Option<u8> {
        match done {
            Ok(case) => {
                self.case = Some(case);
                None
            }
            Err(error) => {
                (self.case, self.why) = (None, Some(error.to_string()));
                Some(code_of(&error))
            }
        }
    }
}

/// Runs all measurements on a subject and keeps the results.
pub(super) fn measure(session: &mut Session<'_>, work: &Work, name: &str, subject: &Subject) -> Result<()> {
    let (n, nnz) = subject.size();
    for method in &work.methods {
        let known = subject.structure();
        if let Some(why) = known.and_then(|s| unsuited(method, || s.clone())) {
            session.warn(format!("{name}: {why}"));
        }
    }
    let stop = work.ending.stop();
    let mut combinations = combinations(work, subject, &session.targets, stop);
    let rounds = session.args.rounds;
    session.progress.steps(combinations.len(), rounds.into());
    for combination in &mut combinations {
        if session.enough() {
            break;
        }
        if combination.why.is_none() {
            let ready = session.targets[combination.target].prepare(subject, &combination.task);
            session.refused = session.refused.max(combination.note(ready));
        } else {
            session.refused = session.refused.max(Some(BAD_INPUT));
        }
        session.progress.step();
    }
    'rounds: for _ in 0..rounds {
        for combination in &mut combinations {
            if session.enough() {
                break 'rounds;
            }
            if let Some(case) = combination.case {
                let done = session.targets[combination.target].round(case);
                session.refused = session.refused.max(combination.note(done.map(|()| case)));
            }
            session.progress.step();
        }
    }
    let autos: Vec<_> = session.targets.iter().map(|target| target.choose_format(subject)).collect();
    let number = subject.kind().name().into();
    let system = SystemKey { matrix: name.into(), n, nnz, number };
    for Combination { target, task, case, why } in combinations {
        let (target, auto) = (&session.targets[target], autos[target]);
        let device = target.device();
        let measured = case.and_then(|case| target.measured(case));
        let ended = || Some("the run ended before this was measured".into());
        let why = why.or_else(|| if measured.is_none() { ended() } else { None });
        let stop = work.ending.words(&task.method);
        let case = Case {
            suite: work.suite.clone(),
            system: system.clone(),
            method: task.shown(),
            precond: task.precond,
            format: task.format,
            given: subject.given().filter(|_| stop != PRODUCTS).map(String::from),
            auto: auto.filter(|_| stop == PRODUCTS).map(String::from),
            stop,
            backend: device.backend.into(),
            device: device.name.clone(),
            units: device.units,
            copy: target.copy(),
            why,
            measured: measured.map(Box::new),
        };
        session.kept.push(Entry::Case(case))?;
    }
    session.targets.iter_mut().for_each(|target| target.clear());
    Ok(())
}

/// Methods times preconditioners times formats times backends.
fn combinations(work: &Work, subject: &Subject, targets: &[Box<dyn Target>], stop: Stop) -> Vec<Combination> {
    let methods: Vec<&str> = match (work.methods.is_empty(), subject) {
        (true, Subject::System(_)) if is_square(subject) => DEFAULT_METHODS.to_vec(),
        (true, Subject::System(_)) => DEFAULT_LEAST_SQUARES.to_vec(),
        _ => work.methods.iter().map(String::as_str).collect(),
    };
    let formats = match subject {
        Subject::System(_) => formats(&work.formats, subject, targets),
        Subject::Vectors { .. } => vec![NO_FORMAT.into()],
    };
    let mut list = Vec::new();
    for method in methods {
        let twice = work.unfused && method != SPMV;
        let ways = if twice { &[false, true][..] } else { &[false] };
        for (precond, &unfused) in
            preconditioners(work, method).into_iter().flat_map(|p| ways.iter().map(move |w| (p, w)))
        {
            for format in &formats {
                for target in 0..targets.len() {
                    let task = Task {
                        method: method.into(),
                        precond: precond.into(),
                        format: format.clone(),
                        stop,
                        restart: work.restart.map(|m| m as usize),
                        unfused,
                        keeps_solution: work.keeps_solutions,
                    };
                    let why = unsuited_default(method, subject).filter(|_| work.methods.is_empty());
                    list.push(Combination { target, task, case: None, why });
                }
            }
        }
    }
    list
}

/// The preconditioners of a method; products have none, nor has a method that is a preconditioner itself.
fn preconditioners<'w>(work: &'w Work, method: &str) -> Vec<&'w str> {
    match work.preconds.is_empty() || method == SPMV || Combined::named(method).is_some() {
        true => vec!["none"],
        false => work.preconds.iter().map(String::as_str).collect(),
    }
}

/// Formats by name. `auto` stands for the choices of all backends, so that each backend is measured with its
/// own choice and with those of the others, and bits can be compared.
fn formats(asked: &[String], subject: &Subject, targets: &[Box<dyn Target>]) -> Vec<String> {
    let choices = || targets.iter().filter_map(|target| target.choose_format(subject));
    let mut list: Vec<&str> = Vec::new();
    for name in asked {
        match name.as_str() {
            "all" => list.extend(FORMATS.iter().map(|f| f.name)),
            "auto" => list.extend(choices()),
            name => list.push(name),
        }
    }
    if asked.is_empty() {
        list.extend(choices());
    }
    distinct(list.into_iter()).into_iter().map(String::from).collect()
}

fn is_square(subject: &Subject) -> bool {
    subject.structure().is_none_or(|s| s.rows == s.cols)
}

/// The reason for skipping a default method on this subject.
fn unsuited_default(method: &str, subject: &Subject) -> Option<String> {
    let s = subject.structure()?;
    let needs = METHODS.iter().any(|m| m.name == name_of(method) && m.positive_definite());
    (needs && !(s.hermitian && s.diagonal_positive)).then(|| {
        let what = if s.hermitian { "its diagonal is not positive" } else { "it is not Hermitian" };
        format!("the matrix is not positive definite: {what}; --methods {method} runs it anyway")
    })
}

/// Why a method that was named does not suit a square matrix, known before the first iteration.
pub fn unsuited(method: &str, structure: impl FnOnce() -> Structure) -> Option<String> {
    let name = name_of(method);
    let needs = METHODS.iter().find(|m| m.name == name)?.needs;
    if !matches!(needs, Needs::PositiveDefinite | Needs::Hermitian) {
        return None;
    }
    let s = structure();
    let instead = "bicgstab, idr and gmres take it";
    match needs {
        _ if s.rows != s.cols => None,
        _ if !s.hermitian => {
            Some(format!("{name} needs a Hermitian matrix, which this one is not; {instead}"))
        }
        Needs::PositiveDefinite if !s.diagonal_positive => Some(format!(
            "{name} needs a positive definite matrix, and the diagonal of this one is not positive; minres takes it"
        )),
        _ => None,
    }
}
