//! The one automatic choice: the ways to solve a system, in the order in which they are taken.
use super::Facts;
use super::complete::considered;
use super::rules::{Chosen, NONE, first_method, first_preconditioner, simple_preconditioner};
use crate::{Amg, METHODS, Method, Multigrid, Options, PRECONDITIONERS, is_structurally_singular, method};
use lacuna_engine::{Result, Scalar, compiled_here};
use lacuna_formats::{Csr, Structure};
use std::time::Duration;

/// Iterations that cost as much as the set-up of `amg` on the host: for iterations on the host, and on a
/// separate device; twice as many for an elastic body, whose rows are longer; and more for a matrix that is neither
/// that nor a diffusion, where it often fails.
const AMG_ON_HOST: u64 = 200;
const AMG_ON_DEVICE: u64 = 5000;
/// The same for `multigrid`.
const MULTIGRID_ON_HOST: u64 = 40;
const MULTIGRID_ON_DEVICE: u64 = 600;
const ELASTIC: u64 = 2;
const NO_DIFFUSION: u64 = 5;
/// Iterations that cost as much as the set-up of `ilu0` on the host.
const ILU: u64 = 220;
/// The cost of an iteration with `amg` and with `ilu0`, in iterations without.
const WITH_AMG: u64 = 5;
const WITH_ILU: u64 = 3;
/// With fewer rows, iterations are too cheap to justify multigrid; nor is it for rows with so many entries.
const SMALL: usize = 2000;
const LONG_ROWS: usize = 100;
/// Incomplete factorisations tried last, and the largest factor by which they increase the number of entries.
const FACTORS: [(&str, usize); 2] = [("ilut:drop=0.001,fill=10", 10), ("ilut:drop=0.00001,fill=30", 30)];
/// The largest number of entries to be stored.
const MAX_ENTRIES: usize = 30_000_000;
/// The complete factorisation.
pub(super) const DIRECT: &str = "direct";
/// The method preconditioned by a factorisation, unless the caller says when to restart. It restarts late, since it seldom
/// needs to.
const WITH_FACTORS: &str = "gmres:restart=50";

/// Why what the caller named is chosen.
pub(super) const ASKED_FOR: &str = "asked for";
/// Why a remembered method and preconditioner are chosen.
const REMEMBERED: &str = "it was the fastest on this structure before";

/// When a candidate is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At first.
    First,
    /// If the preconditioner of the one before refuses the matrix.
    Refused,
    /// If the method of the first failed although the matrix meets its needs: its classical variant.
    Failed,
    /// If the method in use is slow, but not if it failed.
    Slow,
    /// If the methods before fell short.
    Short,
    /// Only in a comparison of methods, beside the first.
    Trial,
}

/// What the set-up of a candidate costs, in iterations of the method before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Next to nothing. It is tried when the method before has ended.
    Free,
    /// It is tried once more iterations than this were done and as many are still expected.
    Iterations(u64),
    /// Found by counting operations, once that costs little beside the iterations.
    Counted,
    /// Counted before the first method was chosen.
    Known(Duration),
}

/// A way to solve a system: a method and a preconditioner by name, with what limits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The method, with options.
    pub method: Chosen,
    /// The preconditioner, with options; `None` for that of the solve so far.
    pub preconditioner: Option<Chosen>,
    /// When it is taken.
    pub when: When,
    /// Whether it needs a positive definite matrix.
    pub definite: bool,
    /// What its set-up costs.
    pub cost: Cost,
    /// The cost of its iterations, in iterations of the first method.
    pub weight: u64,
}

impl Candidate {
    fn new(method: Chosen, preconditioner: Option<Chosen>, when: When) -> Self {
        Candidate { method, preconditioner, when, definite: false, cost: Cost::Free, weight: 1 }
    }

    fn named(method: &str, preconditioner: Option<&str>, when: When, why: &str) -> Self {
        Self::new(Chosen::new(method, why), preconditioner.map(|name| Chosen::new(name, why)), when)
    }

    /// The method and the preconditioner, of which there may be none.
    pub(super) fn chosen(&self) -> (Chosen, Chosen) {
        let none = || Chosen::new(NONE, &*self.method.why);
        (self.method.clone(), self.preconditioner.clone().unwrap_or_else(none))
    }

    /// Whether it is the same method with the same preconditioner.
    pub(super) fn is_as(&self, other: &Candidate) -> bool {
        let name =
            |candidate: &Candidate| candidate.preconditioner.as_ref().map(|chosen| chosen.name.clone());
        self.method.name == other.method.name && name(self) == name(other)
    }

    /// Whether it solves by a complete factorisation.
    pub fn is_direct(&self) -> bool {
        self.preconditioner.as_ref().is_some_and(|chosen| chosen.name == DIRECT)
    }
}

/// What the caller settled; the rest is open.
pub struct Asked<'a, T: Scalar> {
    /// The method and its name with options, unless that is open.
    pub method: Option<(&'a str, &'a dyn Method<T>)>,
    /// The name of the preconditioner, unless that is open.
    pub preconditioner: Option<&'a str>,
    /// Whether the preconditioner stores numbers in the narrower type.
    pub narrow: bool,
    /// The method and preconditioner that solved a matrix of this structure fastest, if they are remembered: they are
    /// taken for what is open.
    pub remembered: Option<&'a (String, String)>,
    /// Settings of methods.
    pub options: &'a Options,
}

impl<'a, T: Scalar> Asked<'a, T> {
    /// Everything is open.
    pub fn nothing(options: &'a Options) -> Self {
        Asked { method: None, preconditioner: None, narrow: false, remembered: None, options }
    }
}

/// The ways to solve a system, in order. A solve begins with the first; those after it replace it or follow it when they
/// say: see [`When`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The way to begin with.
    pub first: Candidate,
    /// All others.
    pub others: Vec<Candidate>,
    /// Whether the pattern makes the matrix singular for all values of its entries: nothing follows then.
    pub singular: bool,
}

impl Plan {
    /// The others that are taken at a certain point, in order.
    pub fn others(&self, when: When) -> impl Iterator<Item = &Candidate> {
        self.others.iter().filter(move |candidate| candidate.when == when)
    }
}

/// The ways to solve a system. Multiplies the matrix of the facts by the factor that the first method needs.
///
/// # Errors
/// [`lacuna_engine::Error::Argument`] for options that a method does not take.
pub fn plan<T: Scalar>(facts: &mut Facts<T>, asked: &Asked<'_, T>) -> Result<Plan> {
    compiled_here!(T, |facts: &mut Facts<T>, asked: &Asked<'_, T>| -> Result<Plan> {
        let made;
        let (chosen, method) = match asked.method {
            Some((name, method)) => (Chosen::new(name, ASKED_FOR), method),
            None => {
                let chosen = match asked.remembered {
                    Some((name, _)) => Chosen::new(name, REMEMBERED),
                    None => first_method(facts),
                };
                made = method(&chosen.name, asked.options)?;
                (chosen, &*made)
            }
        };
        let info = method.info();
        facts.scale(info.positive_definite(), asked.narrow)?;
        let preconditioner = match (asked.preconditioner, asked.remembered) {
            (Some(name), _) => Chosen::new(name, ASKED_FOR),
            (None, Some((_, name))) => Chosen::new(name, REMEMBERED),
            (None, None) => first_preconditioner(facts, info),
        };
        let ways = Ways { facts, asked, method, preconditioner: &preconditioner };
        let singular = ways.singular();
        let others = ways.others(&chosen, singular);
        let first = Candidate {
            definite: info.positive_definite(),
            ..Candidate::new(chosen, Some(preconditioner.clone()), When::First)
        };
        let plan = Plan { first, others, singular };
        let is_open = asked.method.is_none() && asked.preconditioner.is_none() && asked.remembered.is_none();
        Ok(if is_open && facts.lost().is_none() { considered(plan, facts) } else { plan })
    })(facts, asked)
}

/// What the other ways depend on.
struct Ways<'a, T: Scalar> {
    facts: &'a Facts<T>,
    asked: &'a Asked<'a, T>,
    method: &'a dyn Method<T>,
    preconditioner: &'a Chosen,
}

impl<T: Scalar> Ways<'_, T> {
    /// All of them, after a method that was chosen.
    fn others(&self, chosen: &Chosen, singular: bool) -> Vec<Candidate> {
        let mut others = Vec::new();
        let simple_differs = self.asked.remembered.is_some() || self.is_multilevel();
        if self.asked.preconditioner.is_none() && simple_differs {
            let simple = simple_preconditioner(self.facts, self.method.info());
            others.push(Candidate {
                definite: self.is_definite(),
                ..Candidate::new(chosen.clone(), Some(simple), When::Refused)
            });
        }
        if !singular {
            let variant = |name| Candidate {
                definite: self.is_definite(),
                ..Candidate::named(name, None, When::Failed, "its recurrences are less sensitive to rounding")
            };
            others.extend(self.method.fallback().map(variant));
            self.add_stronger(&mut others);
            self.add_methods(&mut others);
        }
        if self.asked.method.is_none() && self.asked.preconditioner.is_none() {
            self.add_trials(&mut others);
        }
        others
    }

    fn is_definite(&self) -> bool {
        self.method.info().positive_definite()
    }

    /// Whether the pattern is singular, if the method is open and the diagonal has zeros.
    fn singular(&self) -> bool {
        self.asked.method.is_none()
            && !self.method.least_squares()
            && self.facts.structure().zero_diagonal > 0
            && is_structurally_singular(self.facts.matrix())
    }

    fn is_multilevel(&self) -> bool {
        [Multigrid::NAME, Amg::NAME].contains(&&*self.preconditioner.name)
    }

    /// Whether stronger preconditioners may follow the first.
    fn opens_preconditioner(&self) -> bool {
        self.asked.preconditioner.is_none() && !self.is_multilevel() && !self.method.least_squares()
    }

    /// Preconditioners that may do better than the diagonal, worth their set-up if the method is slow.
    fn add_stronger(&self, others: &mut Vec<Candidate>) {
        if !self.opens_preconditioner() {
            return;
        }
        let s = self.facts.structure();
        let open_method = self.asked.method.is_none();
        let dominant = open_method && s.diagonally_dominant && s.diagonal_positive;
        if s.rows > SMALL && s.nnz < LONG_ROWS * s.rows && (self.is_definite() || dominant) {
            others.push(self.multilevel());
        }
        // A device solves triangles level by level, which takes too long.
        let by_levels = !self.facts.on_host();
        if open_method && !by_levels && !self.is_definite() && fills_diagonal(self.facts.matrix(), s) {
            let name = if s.zero_diagonal == 0 { "ilu0" } else { "ilu0:pivots=refuse" };
            let why = "incomplete factors may do better than the diagonal";
            others.push(Candidate {
                cost: Cost::Iterations(ILU),
                weight: WITH_ILU,
                ..Candidate::named("bicgstab", Some(name), When::Short, why)
            });
        }
    }

    /// `multigrid` on a grid, else `amg`, under the method.
    fn multilevel(&self) -> Candidate {
        let cost = |host, device| Cost::Iterations(if self.facts.on_host() { host } else { device });
        let (name, cost) = if self.is_definite() && self.facts.grid().is_some() {
            (Multigrid::NAME, cost(MULTIGRID_ON_HOST, MULTIGRID_ON_DEVICE))
        } else {
            let suits = match self.facts.is_diffusion() {
                true => 1,
                false if self.facts.is_elastic() => ELASTIC,
                false => NO_DIFFUSION,
            };
            (Amg::NAME, cost(suits * AMG_ON_HOST, suits * AMG_ON_DEVICE))
        };
        let why = "several levels need fewer iterations the larger the system is";
        let definite = self.is_definite();
        let candidate = Candidate::named(self.method.name(), Some(name), When::Slow, why);
        Candidate { definite, cost, weight: WITH_AMG, ..candidate }
    }

    /// Methods that need less of the matrix, then factorisations.
    fn add_methods(&self, others: &mut Vec<Candidate>) {
        if self.asked.method.is_some() || self.method.least_squares() {
            return;
        }
        let s = self.facts.structure();
        let ways = [("minres", s.hermitian), ("idr", !s.hermitian), ("gmres", true)];
        let ways = ways.into_iter().filter(|(name, suits)| *suits && *name != self.method.name());
        others.extend(
            ways.map(|(name, _)| Candidate::named(name, None, When::Short, "it suits more matrices")),
        );
        let with_factors = if self.asked.options.restart.is_none() { WITH_FACTORS } else { "gmres" };
        let factors = |name, why: &str| {
            let method = Chosen::new(with_factors, "it takes any factors as preconditioner");
            Candidate::new(method, Some(Chosen::new(name, why)), When::Short)
        };
        let affordable = FACTORS.into_iter().filter(|(_, fill)| s.nnz <= MAX_ENTRIES / fill);
        others.extend(affordable.map(|(name, _)| factors(name, "incomplete factors with more entries")));
        if has_direct() {
            others.push(Candidate { cost: Cost::Counted, ..factors(DIRECT, "complete factors") });
        }
    }

    /// What else the structure allows, by increasing cost of the set-up.
    fn add_trials(&self, others: &mut Vec<Candidate>) {
        let s = self.facts.structure();
        let mut add = |method: &str, preconditioner: Option<&str>| {
            others.push(Candidate::named(method, preconditioner, When::Trial, "the structure allows it"));
        };
        if self.method.least_squares() {
            return ["lsmr", "lsqr", "cgls"].into_iter().for_each(|name| add(name, Some(NONE)));
        }
        let simple = |name: &str| {
            let info = METHODS.iter().find(|info| info.name == name).unwrap_or(self.method.info());
            simple_preconditioner(self.facts, info).name
        };
        if s.hermitian && s.diagonal_positive {
            add("cg", Some(&simple("cg")));
            add("minres", Some(NONE));
            ["chebyshev", "ssor", "ic0", "fsai", Amg::NAME]
                .into_iter()
                .for_each(|name| add("cg", Some(name)));
            self.facts.grid().iter().for_each(|_| add("cg", Some(Multigrid::NAME)));
        } else {
            if s.hermitian {
                add("minres", Some(NONE));
            }
            let general = ["bicgstab", "idr", "gmres"];
            general.into_iter().for_each(|name| add(name, Some(&simple(name))));
            if s.zero_diagonal == 0 {
                ["ilu0", "block-ilu"].into_iter().for_each(|name| add("bicgstab", Some(name)));
                if s.diagonally_dominant {
                    add("bicgstab", Some(Amg::NAME));
                }
            }
            add(WITH_FACTORS, Some("ilut"));
        }
        if has_direct() {
            add(DIRECT, None);
        }
    }
}

/// Whether the complete factorisation is built in.
fn has_direct() -> bool {
    PRECONDITIONERS.iter().any(|kind| kind.name == DIRECT)
}

/// Whether elimination may put a pivot in place of every zero of the diagonal: a row before it is coupled to
/// it both ways.
fn fills_diagonal<T: Scalar>(a: &Csr<T>, s: &Structure) -> bool {
    let filled = |i: usize| {
        let before = a.row_entries(i).take_while(|(j, _)| *j < i);
        before.into_iter().any(|(j, v)| v != T::zero() && a.get(j, i).is_some_and(|v| v != T::zero()))
    };
    let zero = |i: usize| a.get(i, i).is_none_or(|v| v == T::zero());
    s.zero_diagonal == 0 || (0..a.rows()).filter(|&i| zero(i)).all(filled)
}
