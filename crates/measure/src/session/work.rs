//! The work to be measured.
use crate::failure::Result;
use crate::input::Source;
use crate::number::TypeName;
use crate::record::{PRODUCTS, TO, VECTORS};
use crate::vector::Vectors;
use crate::{GMRES_ONCE, SPMV};
use lacuna::backend::text::{did_you_mean, shown_word};
use lacuna::formats::{FORMATS, check_format};
use lacuna::solvers::{Combined, METHODS, name_of, preconditioner};
use lacuna::{Error, Norm, NumberType, Stop, check_method};
use std::rc::Rc;

/// The default matrices: sizes dominated by latency, and sizes dominated by memory bandwidth.
pub const MODEL_PROBLEMS: [&str; 6] = [
    "gen:poisson-p1:15",
    "gen:poisson-p1:31",
    "gen:poisson-p1:63",
    "gen:poisson-p1:127",
    "gen:poisson-p1:255",
    "gen:poisson-p1:511",
];

/// The product of matrices, or lengths of vectors, with number types, methods and formats.
#[derive(Clone, Default)]
pub struct Work {
    /// The suite that the work belongs to.
    pub suite: Option<String>,
    /// Files and generators.
    pub matrices: Vec<String>,
    /// Lengths of vectors, for work without a matrix.
    pub lengths: Vec<usize>,
    /// If empty, all that suit a matrix; there are none for vectors.
    pub methods: Vec<String>,
    /// If empty, `auto`.
    pub formats: Vec<String>,
    /// If empty, the one that suits a matrix.
    pub types: Vec<TypeName>,
    /// Each with every method that has none of its own; if empty, none.
    pub preconds: Vec<String>,
    /// The right-hand side and the guess.
    pub vectors: Rc<Vectors>,
    pub ending: Ending,
    pub restart: Option<u32>,
    /// Whether every method is measured a second time, with its sweeps apart.
    pub unfused: bool,
    /// Whether solutions are kept with the measurements of this run; they are not written.
    pub keeps_solutions: bool,
}

/// The stopping criterion of a solve, or the name of other work.
#[derive(Clone, Copy, Debug)]
pub enum Ending {
    /// After this many iterations, whatever the residual, unless the method breaks down.
    Iterations(u64),
    Tolerance {
        rtol: f64,
        max_iters: Option<u64>,
        norm: Norm,
    },
    /// Work that is not a solve and does not stop by itself.
    Named(&'static str),
}

impl Default for Ending {
    /// The protocol of Rupp et al. 2016.
    fn default() -> Self {
        Ending::Iterations(30)
    }
}

impl Ending {
    /// The stopping criteria.
    pub(super) fn stop(self) -> Stop {
        match self {
            Ending::Iterations(count) => Stop::default().rtol(0.0).max_iters(count).dtol(f64::INFINITY),
            Ending::Tolerance { rtol, max_iters, norm } => {
                Stop::default().rtol(rtol).max_iters(max_iters).norm(norm)
            }
            Ending::Named(_) => Stop::default(),
        }
    }

    /// The same in words, for a record of this method.
    pub(super) fn words(self, method: &str) -> String {
        match self {
            _ if method == SPMV => PRODUCTS.into(),
            Ending::Iterations(count) => format!("{count} iterations"),
            Ending::Tolerance { rtol, .. } if is_least_squares(method) => {
                format!("{TO}A^H (b - A x)| <= {rtol:e} |A^H b|")
            }
            Ending::Tolerance { rtol, norm: Norm::Max, .. } => {
                format!("{TO}b - A x|max <= {rtol:e} |b|max")
            }
            Ending::Tolerance { rtol, .. } => format!("{TO}b - A x| <= {rtol:e} |b|"),
            Ending::Named(name) => name.into(),
        }
    }
}

/// Whether a method of the list solves least-squares problems.
fn is_least_squares(method: &str) -> bool {
    METHODS.iter().any(|m| m.name == name_of(method) && m.least_squares())
}

/// A matrix that has not been read yet, or vectors that have not been allocated yet.
pub enum Unmade {
    Matrix(Rc<Source>, Rc<Vectors>, NumberType),
    Vectors(usize, NumberType),
}

impl Unmade {
    /// Its name.
    pub(super) fn name(&self) -> String {
        match self {
            Unmade::Matrix(source, ..) => source.name().into(),
            Unmade::Vectors(..) => VECTORS.into(),
        }
    }
    pub(super) fn kind(&self) -> NumberType {
        match self {
            Unmade::Matrix(_, _, kind) | Unmade::Vectors(_, kind) => *kind,
        }
    }
}

impl Work {
    /// Rejects unknown names before any work is done.
    pub fn check(&self) -> Result<()> {
        let combined = Combined::all().map(|m| m.name);
        let methods: Vec<_> =
            METHODS.iter().map(|m| m.name).chain(combined).chain([GMRES_ONCE, SPMV]).collect();
        for text in &self.methods {
            let name = name_of(text);
            known("method", &[name.to_string()], methods.clone())?;
            if name != GMRES_ONCE && name != SPMV {
                check_method(text)?;
            }
        }
        for text in &self.preconds {
            if text == "auto" {
                let message = "expected preconditioners by name, since every method has the same".into();
                return Err(Error::Argument { what: "preconditioner".into(), message }.into());
            }
            preconditioner::<f64>(text)?;
        }
        for format in self.formats.iter().filter(|name| *name != "auto" && *name != "all") {
            match format.contains(':') {
                true => check_format(format)?,
                false => {
                    let formats = FORMATS.iter().map(|f| f.name).chain(["auto", "all"]);
                    known("format", std::slice::from_ref(format), formats.collect())?;
                }
            }
        }
        Ok(())
    }

    /// Each matrix or length in each requested number type, or in the one that suits it.
    pub fn subjects(&self) -> Result<Vec<Unmade>> {
        let mut subjects = Vec::new();
        for name in &self.matrices {
            let types = self.types.iter().copied().map(Some).collect::<Vec<_>>();
            let types = if types.is_empty() { vec![None] } else { types };
            let source = Rc::new(Source::open(name)?);
            if types.len() > 1 {
                source.keep_stream()?;
            }
            for number in types {
                let kind = source.number_type(number, self.vectors.are_complex())?;
                subjects.push(Unmade::Matrix(source.clone(), self.vectors.clone(), kind));
            }
        }
        for length in &self.lengths {
            subjects.extend(self.types.iter().map(|number| Unmade::Vectors(*length, number.kind())));
        }
        Ok(subjects)
    }
}

/// Converts a list of names.
pub fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| name.to_string()).collect()
}

fn known(what: &str, asked: &[String], names: Vec<&str>) -> Result<()> {
    match asked.iter().find(|name| !names.contains(&name.as_str())) {
        Some(name) => {
            let near = did_you_mean(names.iter().copied(), name);
            let (names, name) = (names.join(", "), shown_word(name));
            let message = format!("expected one or more of {names}, got `{name}`{near}");
            Err(Error::Argument { what: what.into(), message }.into())
        }
        None => Ok(()),
    }
}
