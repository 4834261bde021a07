//! The automatic choice: what solves a system that a caller gives without saying how, and what follows if that falls short.
//!
//! [`plan`] is the one place where it is made. It turns the [`Facts`] about a matrix and what the caller settled into an
//! ordered list of candidates. An [`AutoSolver`] begins with the first and continues with those that follow; new values are
//! given to it by the same list; a comparison of methods tries those for trials. [`method_conditions`] and
//! [`preconditioner_conditions`] are the rules in words.
mod analysis;
mod auto_solver;
mod choice;
mod complete;
mod confirm;
mod continuation;
mod diagnosis;
mod factor;
mod facts;
mod matrix;
mod multilevel;
mod operator;
mod order;
mod pace;
mod place;
mod plan;
mod queue;
mod refine;
mod request;
mod resident;
mod rounding;
mod rules;
mod setup;
mod sides;
mod stages;
mod switch;
mod together;
mod update;
mod verdict;

pub use analysis::Analysis;
pub use auto_solver::{AutoSolver, Choices};
pub use choice::{AsChoice, ByName, ByOperator, ByValue, IntoMethod, IntoPreconditioner};
pub use choice::{MethodChoice, PreconditionerChoice};
pub use complete::seconds_of_counting;
pub use continuation::Watching;
pub use facts::Facts;
pub use operator::OperatorSolver;
pub use pace::seconds_of_iteration;
pub use plan::{Asked, Candidate, Cost, Plan, When, plan};
pub use refine::{Refined, Refinement};
pub use request::{Request, check_method, check_preconditioner};
pub use rules::{Chosen, method_conditions, preconditioner_conditions};
pub use together::Joint;

use auto_solver::preconditioner_sentences;
use setup::is_refusal;
