//! The methods tried if a solve falls short, in order, and what each costs.
use lacuna_engine::Scalar;
use lacuna_formats::{Csr, Structure};
use lacuna_solvers::{
    Amg, Method, Multigrid, PRECONDITIONERS, is_diffusion, is_elastic, is_structurally_singular,
};
use std::collections::VecDeque;
use std::fmt;

/// Iterations after which a running solve is checked. If its residual has not halved by then, it is given up;
/// otherwise it continues for as many again.
const CHECK_INTERVAL: u64 = 20_000;
/// The same limit if an incomplete factorisation, which costs about as much, is left to try, and if the
/// matrix is known to be singular: then a solution is found early or there is none.
const SHORT_CHECK_INTERVAL: u64 = 2000;
/// Iterations for each unknown after which the classical variant of a method continues. In exact arithmetic one suffices;
/// rounding disturbs the classical variant less.
const EXHAUSTED: u64 = 10;
/// The same for the smallest systems.
const EXHAUSTED_FROM: u64 = 100;
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
/// Iterations after which the cost of a direct solve may be estimated.
const FIRST_ESTIMATE: u64 = 50;
/// Seconds of that estimate, per entry of the matrix.
const ESTIMATING: f64 = 1e-7;
/// It is made once the iterations took this many times as long.
const EARLIEST: f64 = 3.0;
/// Seconds of estimating that are spent while a method may still converge.
const MAX_ESTIMATING: f64 = 0.5;
/// A direct solve is preferred to an incomplete factorisation at this many times its cost.
const CERTAINTY: u64 = 10;
/// Seconds of a direct solve that is tried before any other method if one has failed.
const AFFORDABLE: f64 = 1.0;
/// Seconds of an iteration besides its traffic, and the bytes moved in a second: on the host from its caches,
/// from its memory, and on a separate device.
const IN_CACHE: (f64, f64) = (3e-6, 4e10);
const ON_HOST: (f64, f64) = (3e-6, 1.2e10);
const ON_DEVICE: (f64, f64) = (8e-6, 2e12);
/// The largest traffic of an iteration whose data stay in the caches.
const CACHES: usize = 8 << 20;
/// With fewer rows, iterations are too cheap to justify multigrid.
const SMALL: usize = 2000;
/// Incomplete factorisations tried last, and the largest factor by which they increase the number of entries.
const FACTORS: [(&str, usize); 2] = [("ilut:drop=0.001,fill=10", 10), ("ilut:drop=0.00001,fill=30", 30)];
/// The largest number of entries to be stored.
const MAX_ENTRIES: usize = 30_000_000;
/// The complete factorisation.
const DIRECT: &str = "direct";
/// The method preconditioned by a factorisation, unless the caller says when to restart. It restarts late, since it seldom
/// needs to.
const WITH_FACTORS: &str = "gmres:restart=50";

/// What the set-up of a candidate costs, in iterations of the method before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cost {
    /// Next to nothing. It is tried when the method before has ended.
    Free,
    /// It is tried once more iterations than this were done and as many are still expected.
    Iterations(u64),
    /// Not known yet: it has to be estimated first, which costs as much as these iterations.
    Unknown(u64),
}

impl Cost {
    /// The iterations, if they are known or a lower bound is.
    pub(crate) fn iterations(self) -> Option<u64> {
        match self {
            Cost::Free => None,
            Cost::Iterations(count) | Cost::Unknown(count) => Some(count),
        }
    }
}

/// A method tried after another stopped short, with its preconditioner unless that stays the same.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) method: &'static str,
    pub(crate) preconditioner: Option<&'static str>,
    /// Whether it is tried only if the current method is slow, not if that failed.
    pub(crate) if_slow: bool,
    /// Whether it needs a positive definite matrix.
    pub(crate) definite: bool,
    pub(crate) cost: Cost,
    /// The cost of its iterations, in iterations of the first method.
    pub(crate) weight: u64,
}

impl Candidate {
    /// Whether it solves by a complete factorisation.
    pub(crate) fn is_direct(&self) -> bool {
        self.preconditioner == Some(DIRECT)
    }

    /// The cost of a direct solve, once it is estimated.
    fn direct_cost(&self) -> Option<u64> {
        match self.cost {
            Cost::Iterations(cost) if self.is_direct() => Some(cost),
            _ => None,
        }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.preconditioner {
            Some(preconditioner) => write!(f, "{} and {preconditioner}", self.method),
            None => write!(f, "{}", self.method),
        }
    }
}

/// What the caller left open.
#[derive(Clone, Copy)]
pub(crate) struct Open {
    pub(crate) method: bool,
    pub(crate) preconditioner: bool,
    /// The length of a GMRES cycle.
    pub(crate) cycle: bool,
    /// Whether the method is for positive definite matrices.
    pub(crate) definite: bool,
    /// Whether `multigrid` accepts the matrix.
    pub(crate) grid: bool,
}

/// The methods that are left, and how long each may take.
#[derive(Clone)]
pub(crate) struct Candidates {
    /// The classical variant of the method, tried if that fails.
    pub(crate) fallback: Option<Candidate>,
    /// Iterations after which it is tried even if the method has not failed.
    pub(crate) exhausted: u64,
    /// In the order in which they are tried.
    pub(crate) list: VecDeque<Candidate>,
    /// Whether these are tried before a slow method has ended.
    pub(crate) switches_early: bool,
    /// Iterations after which a running solve is checked.
    pub(crate) interval: u64,
    /// Seconds of an iteration, estimated from its traffic.
    pub(crate) iteration: f64,
}

impl Candidates {
    /// The candidates for a method on a matrix; `bytes` is the traffic of an iteration. First the classical
    /// variant of the method; then, if the method was chosen automatically, methods that need less of the
    /// matrix, and a direct solve once it costs no more than the iterations done. If the preconditioner was
    /// left open too, stronger ones come first if they may do better than the diagonal.
    pub(crate) fn new<T: Scalar>(
        method: &dyn Method<T>,
        open: Open,
        a: &Csr<T>,
        structure: Option<&Structure>,
        bytes: usize,
        on_host: bool,
    ) -> Self {
        let plain = |method| Candidate {
            method,
            preconditioner: None,
            if_slow: false,
            definite: open.definite,
            cost: Cost::Free,
            weight: 1,
        };
        let general = |method| Candidate { definite: false, ..plain(method) };
        let (latency, bandwidth) = match on_host {
            true if bytes <= CACHES => IN_CACHE,
            true => ON_HOST,
            false => ON_DEVICE,
        };
        let fallback = method.fallback().map(plain);
        let iteration = latency + bytes as f64 / bandwidth;
        let mut candidates = Candidates {
            fallback,
            exhausted: (EXHAUSTED * a.rows() as u64).max(EXHAUSTED_FROM),
            list: VecDeque::new(),
            switches_early: open.method,
            interval: CHECK_INTERVAL,
            iteration,
        };
        let Some(s) = structure.filter(|_| !method.least_squares()) else {
            return candidates;
        };
        if open.method && s.zero_diagonal > 0 && is_structurally_singular(a) {
            return Candidates { fallback: None, interval: SHORT_CHECK_INTERVAL, ..candidates };
        }
        let mut others = Vec::new();
        let large = s.rows > SMALL && s.nnz < 100 * s.rows;
        let dominant = open.method && s.diagonally_dominant && s.diagonal_positive;
        if open.preconditioner && large && (open.definite || dominant) {
            others.push(multilevel(plain(method.name()), open.grid, a, s, on_host));
            candidates.switches_early = true;
        }
        if open.method {
            // A device solves triangles level by level, which takes too long.
            if on_host && open.preconditioner && !open.definite && fills_diagonal(a, s) {
                let (cost, weight) = (Cost::Iterations(ILU), WITH_ILU);
                let name = if s.zero_diagonal == 0 { "ilu0" } else { "ilu0:pivots=refuse" };
                others.push(Candidate { preconditioner: Some(name), cost, weight, ..general("bicgstab") });
            }
            let ways = [("minres", s.hermitian), ("idr", !s.hermitian), ("gmres", true)];
            let ways = ways.into_iter().filter(|(name, suits)| *suits && *name != method.name());
            others.extend(ways.map(|(name, _)| general(name)));
            let with_factors = if open.cycle { WITH_FACTORS } else { "gmres" };
            let factors = |name| Candidate { preconditioner: Some(name), ..general(with_factors) };
            let affordable = FACTORS.into_iter().filter(|(_, fill)| s.nnz <= MAX_ENTRIES / fill);
            let incomplete = affordable.map(|(name, _)| factors(name));
            let before = others.len();
            others.extend(incomplete);
            if !open.definite && others.len() > before {
                candidates.interval = SHORT_CHECK_INTERVAL;
            }
            if PRECONDITIONERS.iter().any(|kind| kind.name == DIRECT) {
                let seconds = ESTIMATING * s.nnz as f64;
                let iterations =
                    if seconds > MAX_ESTIMATING { u64::MAX } else { (EARLIEST * seconds / iteration) as u64 };
                let cost = Cost::Unknown(iterations.clamp(FIRST_ESTIMATE, candidates.interval));
                others.push(Candidate { cost, ..factors(DIRECT) });
            }
        }
        others.sort_by_key(|candidate| candidate.cost.iterations().unwrap_or(u64::MAX));
        candidates.list.extend(others);
        candidates
    }

    /// Whether none is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.fallback.is_none() && self.list.is_empty()
    }

    /// Whether the classical variant is due after so many iterations of the method.
    pub(crate) fn is_exhausted(&self, iterations: u64) -> bool {
        self.fallback.is_some() && iterations >= self.exhausted
    }

    /// The iterations that a method may take before the next candidate is tried, if each costs `weight` of
    /// the first method.
    pub(crate) fn budget(&self, weight: u64) -> Option<u64> {
        let next = self.list.front().and_then(|candidate| candidate.cost.iterations());
        let direct = self.list.iter().find_map(Candidate::direct_cost);
        let cost = next.into_iter().chain(direct).min();
        cost.map(|iterations| (iterations / weight).max(FIRST_ESTIMATE))
    }

    /// Puts a candidate whose set-up takes some seconds in its place: after those that cost less, and, if it
    /// is not affordable, before the last.
    pub(crate) fn insert(&mut self, candidate: Candidate, seconds: f64) {
        let cost = (seconds / self.iteration) as u64;
        let cheaper = |candidate: &Candidate| {
            let least = if candidate.if_slow { cost } else { cost / CERTAINTY };
            candidate.cost.iterations().is_some_and(|iterations| iterations < least)
        };
        let at = match seconds <= AFFORDABLE {
            true => self.list.iter().take_while(|candidate| cheaper(candidate)).count(),
            false => self.list.len().saturating_sub(1),
        };
        self.list.insert(at, Candidate { cost: Cost::Iterations(cost), ..candidate });
    }

    /// Takes the next candidate: a direct solve if that costs at most `spent`, the time of the method before
    /// in iterations of the first, or else the first of the list. The classical variant is for a method that
    /// failed.
    pub(crate) fn next(&mut self, failed: bool, spent: u64) -> Option<Candidate> {
        if let Some(fallback) = self.fallback.take().filter(|_| failed) {
            return Some(fallback);
        }
        let due = |candidate: &Candidate| candidate.direct_cost().is_some_and(|cost| cost <= spent);
        let at = self.list.iter().position(due).unwrap_or(0);
        self.list.remove(at)
    }

    /// Drops the first if it satisfies a condition.
    pub(crate) fn drop_front(&mut self, condition: impl Fn(&Candidate) -> bool) {
        if self.list.front().is_some_and(condition) {
            self.list.pop_front();
        }
    }

    /// Prepares for a matrix that has turned out not to be positive definite: drops what needs one, and
    /// prefers what does not.
    pub(crate) fn not_definite(&mut self) {
        self.fallback.take_if(|candidate| candidate.definite);
        self.list.retain(|candidate| !candidate.definite);
        if let Some(at) = self.list.iter().position(|candidate| candidate.method == "minres")
            && let Some(candidate) = self.list.remove(at)
        {
            self.list.push_front(candidate);
        }
    }
}

/// `multigrid` on a grid, else `amg`, under a method, with what the set-up costs.
fn multilevel<T: Scalar>(
    under: Candidate,
    grid: bool,
    a: &Csr<T>,
    s: &Structure,
    on_host: bool,
) -> Candidate {
    let cost = |host, device| Cost::Iterations(if on_host { host } else { device });
    let suits = || match is_diffusion(a) {
        true => 1,
        false if is_elastic(a, s) => ELASTIC,
        false => NO_DIFFUSION,
    };
    let (name, cost) = match grid {
        true => (Multigrid::NAME, cost(MULTIGRID_ON_HOST, MULTIGRID_ON_DEVICE)),
        false => {
            let suits = suits();
            (Amg::NAME, cost(suits * AMG_ON_HOST, suits * AMG_ON_DEVICE))
        }
    };
    Candidate { preconditioner: Some(name), if_slow: true, cost, weight: WITH_AMG, ..under }
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
