//! Names of methods that are Richardson's iteration with a preconditioner.
use crate::named::{OptionInfo, name_of};
use crate::{PRECONDITIONERS, PrecondInfo};

/// A textbook name for Richardson's iteration with a given preconditioner.
#[derive(Clone, Copy, Debug)]
pub struct Combined {
    /// The name it goes by.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// The preconditioner, whose options it takes.
    precond: &'static str,
}

/// Those that are built in.
const COMBINED: [Combined; 4] = [
    Combined { name: "jacobi", about: "Jacobi's iteration", precond: "jacobi" },
    Combined { name: "gauss-seidel", about: "the iteration of Gauss and Seidel, by colours", precond: "sor" },
    Combined { name: "sor", about: "successive over-relaxation, by colours", precond: "sor" },
    Combined {
        name: "direct",
        about: "complete factors, with steps that refine; any regular system",
        precond: "direct",
    },
];

impl Combined {
    /// The method that they are.
    pub const METHOD: &str = "richardson";

    /// All whose preconditioner is built in.
    pub fn all() -> impl Iterator<Item = Combined> {
        COMBINED.into_iter().filter(|method| method.preconditioner().is_some())
    }
    /// The one that a text `NAME:key=value,…` names, and its preconditioner with these options.
    pub fn named(text: &str) -> Option<(Combined, String)> {
        let name = name_of(text);
        let method = Combined::all().find(|method| method.name == name)?;
        Some((method, format!("{}{}", method.precond, &text[name.len()..])))
    }
    fn preconditioner(self) -> Option<&'static PrecondInfo> {
        PRECONDITIONERS.iter().find(|precond| precond.name == self.precond)
    }
    /// The options it takes.
    pub fn options(self) -> &'static [OptionInfo] {
        self.preconditioner().map_or(&[], |precond| precond.options)
    }
}
