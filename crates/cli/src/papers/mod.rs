//! `lacuna papers`: the tables and figures of five papers, ours beside theirs.
mod bell;
mod buatois;
mod jost;
mod rupp;
mod table;
mod wang;

use crate::args::{Name, PapersArgs};
use crate::plot::{self, Curves, Over};
use clap::ValueEnum;
use lacuna_measure::failure::{Failure, Result};
use lacuna_measure::figure::Figure;
use lacuna_measure::number::TypeName;
use lacuna_measure::record::Case;
use lacuna_measure::session::{Session, Work, names};
use lacuna_measure::vector::{VectorSource, Vectors};
use lacuna_measure::{Measured, of_everything, set_budget};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;
use table::Table;

pub(crate) fn run(args: &PapersArgs) -> Result<ExitCode> {
    args.measuring.check_outputs(&[])?;
    let figures = args.figures.as_deref().map(Path::new);
    if let Some(folder) = figures {
        std::fs::create_dir_all(folder).map_err(|e| Failure::writing(&folder.display().to_string(), e))?;
    }
    if args.small {
        set_budget(SMALL);
    }
    let asked = if args.papers.is_empty() { Name::value_variants() } else { &args.papers };
    let measured = Session::run(&args.measuring, of_everything, |session| {
        asked.iter().try_for_each(|name| {
            let paper = paper(*name);
            let stage = Stage { session, paper: paper.title, small: args.small, figures };
            paper.show(stage)
        })
    });
    measured.map(|(code, _)| code)
}

/// The time for which small work is repeated in a round.
const SMALL: Duration = Duration::from_millis(1);

/// What is shown of a paper.
struct Paper {
    /// Authors and year, the name of its suite of results.
    title: &'static str,
    /// Where its measurements are not ours: machines, matrices.
    differs: &'static str,
    sections: &'static [Section],
    /// What the paper has and this does not show, with the reason.
    missing: &'static [&'static str],
}

/// A table or a figure.
type Section = fn(&mut Stage<'_, '_>) -> Result<()>;

fn paper(name: Name) -> &'static Paper {
    match name {
        Name::Jost => &jost::PAPER,
        Name::Wang => &wang::PAPER,
        Name::Buatois => &buatois::PAPER,
        Name::Rupp => &rupp::PAPER,
        Name::Bell => &bell::PAPER,
    }
}

impl Paper {
    fn show(&self, mut stage: Stage<'_, '_>) -> Result<()> {
        stage.say(self.differs)?;
        self.sections.iter().try_for_each(|section| section(&mut stage))?;
        stage.say(&format!("Not shown. {}.", self.missing.join(". ")))
    }
}

/// Where the sections of a paper are shown.
struct Stage<'s, 'a> {
    session: &'s mut Session<'a>,
    paper: &'static str,
    small: bool,
    figures: Option<&'s Path>,
}

impl Stage<'_, '_> {
    /// What differs between the small form and the paper's sizes.
    fn sizes<'l, T>(&self, all: &'l [T], small: usize) -> &'l [T] {
        if self.small { &all[..small.min(all.len())] } else { all }
    }

    fn work(&self, matrices: &[String], methods: &[&str], formats: &[&str], number: TypeName) -> Work {
        Work {
            suite: Some(self.paper.into()),
            matrices: matrices.to_vec(),
            methods: names(methods),
            formats: names(formats),
            types: vec![number],
            ..Work::default()
        }
    }

    fn measure(&mut self, work: &Work) -> Result<Vec<Case>> {
        self.session.gather(work)
    }

    fn say(&mut self, text: &str) -> Result<()> {
        self.session.note(self.paper, text)
    }

    fn table(&mut self, table: &Table) -> Result<()> {
        if table.is_empty() { Ok(()) } else { self.say(&table.text()) }
    }

    /// Draws a figure, if figures are asked for.
    fn figure(&mut self, name: &str, figure: impl FnOnce() -> Figure) -> Result<()> {
        let Some(folder) = self.figures else { return Ok(()) };
        let path: PathBuf = folder.join(format!("{name}.svg"));
        plot::save(&figure(), &path.display().to_string())
    }
}

/// The right-hand side of the model, or random numbers.
fn vectors(rhs: &'static str) -> Rc<Vectors> {
    let rhs = VectorSource::open("--rhs", rhs).ok();
    Rc::new(Vectors { rhs, x0: None })
}

/// The measurements of a case on a backend.
fn find(cases: &[Case], is: impl Fn(&Case) -> bool) -> Option<&Measured> {
    cases.iter().find(|case| is(case)).and_then(|case| case.measured.as_deref())
}

/// The backends that measured something, in order.
fn backends(cases: &[Case]) -> Vec<String> {
    lacuna_measure::record::distinct(cases.iter().map(|case| case.backend.clone()))
}

/// The matrices, in order.
fn matrices(cases: &[Case]) -> Vec<(String, usize)> {
    lacuna_measure::record::distinct(cases.iter().map(|case| (case.system.matrix.clone(), case.system.n)))
}

/// Curves of a measure over the size, one for each name and backend.
fn over_size(
    title: &str,
    up: &'static str,
    cases: &[Case],
    name: impl Fn(&Case) -> String,
    of: impl Fn(&Measured) -> Option<f64>,
) -> Figure {
    let mut curves: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for case in cases {
        let Some(value) = case.measured.as_deref().and_then(&of) else { continue };
        let (name, point) = (format!("{}, {}", name(case), case.backend), (case.system.n as f64, value));
        match curves.iter_mut().find(|curve| curve.0 == name) {
            Some((_, points)) => points.push(point),
            None => curves.push((name, vec![point])),
        }
    }
    let device = cases.first().map_or(String::new(), |case| case.device.clone());
    let title = title.split(" (theirs").next().unwrap_or(title);
    Curves {
        title: title.into(),
        subtitle: device,
        over: Over::Size,
        along: "size",
        up,
        target: None,
        curves,
    }
    .draw()
}

/// A name without its `gen:`.
fn short(matrix: &str) -> &str {
    matrix.trim_start_matches("gen:")
}
