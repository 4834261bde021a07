//! Which method a problem gets, and why.
use crate::lobpcg::guards;
use crate::problem::{Check, EigenProblem, Which};
use lacuna_engine::{Error, Result, Scalar};

/// Rows up to which all eigenvalues are computed.
const DENSE: usize = 500;
/// Rows up to which `dense` may be asked for.
const MOST_DENSE: usize = 5000;

/// Why a block is taken.
pub(crate) const BLOCK: &str = "a block with a preconditioner finds the smallest";

/// How a problem is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Dense,
    Lobpcg,
    Lanczos,
    /// By factors if these are cheap, else by a block: what is taken is said then.
    Smallest,
}

/// The method for a problem.
///
/// # Errors
/// [`Error::Unsupported`] for a method that cannot do what is asked for.
pub(crate) fn method<T: Scalar>(problem: &EigenProblem<T>, choices: &mut Vec<String>) -> Result<Method> {
    let n = problem.a.rows();
    let mass = problem.mass.is_some();
    let refused =
        |method: &str, message: String| Err(Error::Unsupported { operation: method.into(), message });
    let fits = 3 * (problem.count + guards(problem.count)) <= n;
    let near = matches!(problem.which, Which::Near(_));
    let (method, why) = match problem.method.as_str() {
        "dense" => (Method::Dense, "as asked for"),
        "lobpcg" => (Method::Lobpcg, "as asked for"),
        "lanczos" => (Method::Lanczos, "as asked for"),
        _ if n <= DENSE => (Method::Dense, "the matrix is small"),
        _ if !fits && n <= MOST_DENSE => (Method::Dense, "a large part of all eigenvalues is wanted"),
        _ if near => (Method::Lanczos, "by factors of the shifted matrix"),
        _ if problem.which == Which::Largest && !mass => (Method::Lanczos, "products alone find the largest"),
        _ if problem.which == Which::Smallest
            && problem.preconditioner == "auto"
            && problem.check != Check::Probed =>
        {
            return Ok(Method::Smallest);
        }
        _ => (Method::Lobpcg, BLOCK),
    };
    match method {
        Method::Dense if n > MOST_DENSE => {
            return refused("dense", format!("it takes at most {MOST_DENSE} rows, the matrix has {n}"));
        }
        Method::Lobpcg if near => {
            return refused(
                "lobpcg",
                "it finds the smallest or largest; `lanczos` finds those near a number".into(),
            );
        }
        Method::Lanczos if mass && !near => {
            let message =
                "with a mass matrix it finds those near a number; `lobpcg` finds the smallest or largest";
            return refused("lanczos", message.into());
        }
        _ => {}
    }
    let name = match method {
        Method::Dense => "dense",
        Method::Lobpcg | Method::Smallest => "lobpcg",
        Method::Lanczos => "lanczos",
    };
    choices.push(format!("method {name}: {why}"));
    Ok(method)
}
