//! The methods tried if a solve falls short, and when.
use lacuna_engine::Scalar;
use lacuna_formats::{Csr, Structure};
use lacuna_solvers::{Amg, Method, Multigrid, PRECONDITIONERS, is_structurally_singular, name_of};
use std::fmt;

/// Iterations after which a running solve is checked. If its residual has not halved by then, it is given up;
/// otherwise it continues for as many again.
const STRETCH: u64 = 20_000;
/// The same limit if an incomplete factorisation, which costs about as much, is left to try, and if the
/// matrix is known to be singular: then a solution is found early or there is none.
const SHORT_STRETCH: u64 = 2000;
/// Iterations that cost as much as the set-up of `amg` on the host: for iterations on the host, and on a
/// separate device.
const PATIENCE_ON_HOST: u64 = 200;
const PATIENCE: u64 = 10_000;
/// With fewer rows, iterations are too cheap to justify another method.
const SMALL: usize = 2000;
/// Incomplete factorisations tried last, and the largest factor by which they increase the number of entries.
const FACTORS: [(&str, usize); 2] = [("ilut:drop=0.001,fill=10", 10), ("ilut:drop=0.00001,fill=30", 30)];
/// The largest number of entries to be stored.
const MOST_KEPT: usize = 30_000_000;
/// Complete factorisations: the first is tried before other methods if it costs less than a second, the
/// second after them.
const DIRECT: [&str; 2] = ["direct:work=2,memory=1", "direct"];
/// The cost of the former, as bytes that iterations could move in that time.
const COST_OF_DIRECT: u64 = 5_000_000_000;
/// The method preconditioned by a factorisation. It restarts late, since it seldom needs to.
const WITH_FACTORS: &str = "gmres:restart=50";

/// A method tried after another stopped short, with its preconditioner unless that stays the same.
#[derive(Clone, Debug)]
pub(crate) struct Rung {
    pub(crate) method: &'static str,
    pub(crate) preconditioner: Option<&'static str>,
    /// Whether it is tried only if the current method is slow, not if that failed.
    pub(crate) if_slow: bool,
    /// Iterations that cost as much as its set-up. If more than this many are still expected after this many,
    /// it is tried without waiting for the current method to end.
    pub(crate) patience: Option<u64>,
}

impl fmt::Display for Rung {
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
    /// Whether the method is for positive definite matrices.
    pub(crate) definite: bool,
    /// Whether `multigrid` accepts the matrix.
    pub(crate) grid: bool,
}

/// The methods that are left, and how long each may take.
pub(crate) struct Ladder {
    /// In the order in which they are tried.
    pub(crate) rungs: Vec<Rung>,
    /// Whether these are tried before a slow method has ended.
    pub(crate) climbs: bool,
    /// Iterations after which a running solve is checked.
    pub(crate) stretch: u64,
}

impl Ladder {
    /// The ladder for a method on a matrix; `bytes` is the traffic of an iteration. First the classical
    /// variant of the method; then, if the method was chosen automatically, methods that need less of the
    /// matrix. If the preconditioner was left open too, multigrid comes first if it may do better than the
    /// diagonal.
    pub(crate) fn new<T: Scalar>(
        method: &dyn Method<T>,
        open: Open,
        a: &Csr<T>,
        structure: Option<&Structure>,
        bytes: usize,
        on_host: bool,
    ) -> Self {
        let plain = |method| Rung { method, preconditioner: None, if_slow: false, patience: None };
        let mut rungs: Vec<_> = method.fallback().into_iter().map(plain).collect();
        let ladder = |rungs: Vec<Rung>, stretch| {
            let climbs = open.method || rungs.iter().any(|rung| rung.patience.is_some());
            Ladder { rungs, climbs, stretch }
        };
        let Some(s) = structure.filter(|_| !method.least_squares()) else {
            return ladder(rungs, STRETCH);
        };
        if open.method && s.zero_diagonal > 0 && is_structurally_singular(a) {
            return ladder(Vec::new(), SHORT_STRETCH);
        }
        let mut stretch = STRETCH;
        if open.method {
            let factors = |name| Rung { preconditioner: Some(name), ..plain(WITH_FACTORS) };
            let affordable = FACTORS.into_iter().filter(|(_, fill)| s.nnz <= MOST_KEPT / fill);
            let mut last: Vec<_> = affordable.map(|(name, _)| factors(name)).collect();
            if !open.definite && !last.is_empty() {
                stretch = SHORT_STRETCH;
            }
            let ways = [("minres", s.hermitian), ("gmres", true)];
            let others = ways.into_iter().filter(|(name, suits)| *suits && *name != method.name());
            let others = others.map(|(name, _)| plain(name));
            if PRECONDITIONERS.iter().any(|kind| kind.name == name_of(DIRECT[0])) {
                let iterations = (COST_OF_DIRECT / bytes.max(1) as u64).clamp(PATIENCE_ON_HOST, stretch);
                rungs.push(Rung { patience: Some(iterations), ..factors(DIRECT[0]) });
                last.insert(last.len().min(1), factors(DIRECT[1]));
            }
            rungs.extend(others.chain(last));
        }
        let dominant = open.method && s.diagonally_dominant && s.diagonal_positive;
        let large = s.rows > SMALL && s.nnz < 100 * s.rows;
        if open.preconditioner && large && (open.definite || dominant) {
            let patience = Some(if on_host { PATIENCE_ON_HOST } else { PATIENCE });
            let name = if open.grid { Multigrid::NAME } else { Amg::NAME };
            let multigrid =
                Rung { preconditioner: Some(name), if_slow: true, patience, ..plain(method.name()) };
            rungs.insert(0, multigrid);
        }
        ladder(rungs, stretch)
    }
}
