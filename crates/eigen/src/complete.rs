//! Whether eigenvalues are missing among those that a search found.
use crate::gram;
use crate::moved::Moved;
use crate::outcome::Complete;
use crate::problem::Check;
use crate::search::{Beyond, Found, Goal, Search, Watching};
use crate::shift::{Known, Shifted, shifted};
use crate::small::Small;
use lacuna_engine::{Error, LinOp, Reason, Result, Scalar};
use lacuna_formats::{Csr, parallel};
use lacuna_solvers::auto::{seconds_of_counting, seconds_of_iteration};

/// A method that searches one end of the spectrum.
pub(crate) type Method<'m, T> = dyn Fn(&Search<'_, T>, Watching<'_>) -> Result<Found<T>> + 'm;

/// A count takes no longer than the search is expected to take, or than this many seconds.
const LEAST: f64 = 0.1;
/// Vectors that a search reads or writes for each product, and for each whose vector is made orthogonal to others; and products that
/// take as long as an application of a preconditioner.
const VECTORS: usize = 4;
const OTHERS: usize = 20;
const PRECONDITIONING: u64 = 5;
/// Eigenvalues this near to each other, beside the largest of those found, are taken for equal when they are counted.
pub(crate) const APART: f64 = 1e-9;

/// Values that one search for those that are missing seeks at most.
const AT_ONCE: usize = 8;
/// Columns that are moved at once.
const MULTIPLIED: usize = 8;
/// Rows that one task combines.
const GRAIN: usize = 4096;

/// Seconds that a search is expected to take for so many products and preconditionings. What is decided by them does not depend on a clock.
pub(crate) fn seconds_of_search<T: Scalar>(
    a: &Csr<T>,
    [products, orthogonal, preconditionings]: [u64; 3],
    on_host: bool,
) -> f64 {
    let product = a.nnz() * (size_of::<T>() + size_of::<u32>());
    let vectors = |count: usize| count * a.rows() * size_of::<T>();
    let seconds = |bytes: usize| seconds_of_iteration(bytes, on_host);
    let alone = seconds(product + vectors(VECTORS));
    let whole = seconds(product + vectors(VECTORS + OTHERS));
    let whole = (orthogonal + PRECONDITIONING * preconditionings) as f64 * whole;
    whole + products.saturating_sub(orthogonal) as f64 * alone
}

/// A number before the last value, which may have equals that nobody asked for.
pub(crate) fn before_last(values: &[f64], largest: bool, goal: Goal) -> f64 {
    let last = values[values.len() - 1];
    let size = values.iter().map(|v| v.abs()).fold(0.0, f64::max);
    let off = (APART * size).max(8.0 * goal.of(last)).max(f64::MIN_POSITIVE);
    if largest { last + off } else { last - off }
}

/// The verdict on a search.
pub(crate) enum Verdict<T> {
    /// Final.
    Is(Complete),
    /// So many are missing; eigenvectors of some of them.
    Misses(usize, Vec<Vec<T>>),
}

/// What the completeness of a search is judged by.
pub(crate) struct Completeness<'a, T: Scalar> {
    pub(crate) a: &'a Csr<T>,
    pub(crate) b: Option<&'a Csr<T>>,
    pub(crate) largest: bool,
    pub(crate) check: Check,
    pub(crate) wanted: usize,
    /// Whether vectors are in the memory of the host.
    pub(crate) on_host: bool,
    /// An order of the shifted matrices.
    pub(crate) known: &'a Known,
}

impl<T: Scalar> Completeness<'_, T> {
    /// The verdict on the first values of a search, all of whose pairs have converged.
    pub(crate) fn look(
        &self,
        found: &mut Found<T>,
        searched: &Search<'_, T>,
        method: &Method<'_, T>,
        watch: Watching<'_>,
    ) -> Result<Verdict<T>> {
        let unchecked = |why: String| Ok(Verdict::Is(Complete::Unchecked(why)));
        match self.check {
            Check::Off => return unchecked("not asked for".into()),
            Check::Probed => {}
            Check::Auto | Check::Counted => match self.count(found, searched.goal)? {
                Ok(0) => return Ok(Verdict::Is(Complete::Counted)),
                Ok(missing) => {
                    let other = self.other(found, searched, missing.min(AT_ONCE), None, method, watch)?;
                    let vectors = other.vectors.into_iter().take(missing.min(AT_ONCE)).collect();
                    return Ok(match other.reason {
                        Reason::Converged => Verdict::Misses(missing, vectors),
                        _ => Verdict::Is(Complete::Missing(missing)),
                    });
                }
                Err(why) if self.check == Check::Counted => return unchecked(why),
                Err(_) => {}
            },
        }
        let last = found.values[self.wanted - 1];
        let other = self.other(found, searched, 1, Some(Beyond([found.values[0], last])), method, watch)?;
        if other.reason != Reason::Converged {
            let ended = other.reason.name().replace('_', " ");
            return unchecked(format!("the second start ended as {ended}"));
        }
        let off = 4.0 * searched.goal.of(last);
        let better = if self.largest { other.values[0] > last + off } else { other.values[0] < last - off };
        Ok(match better {
            true => Verdict::Misses(1, other.vectors.into_iter().take(1).collect()),
            false => Verdict::Is(Complete::Probed),
        })
    }

    /// Counts how many are missing before the last value that was wanted, which may have equals that nobody asked for; or why that
    /// cannot be done.
    fn count(&self, found: &Found<T>, goal: Goal) -> Result<std::result::Result<usize, String>> {
        let sign = if self.largest { -1.0 } else { 1.0 };
        let signed = |value: f64| sign * value;
        let values = &found.values[..self.wanted];
        let sigma = before_last(values, self.largest, goal);
        let most = match self.check {
            Check::Counted => f64::INFINITY,
            _ => {
                let taken = [found.products, found.orthogonal, found.preconditionings];
                seconds_of_search(self.a, taken, self.on_host).max(LEAST)
            }
        };
        let costly = || Ok(Err("factors of a shifted matrix cost too much".into()));
        let counting = seconds_of_counting((self.a.rows(), self.a.nnz()));
        if counting > most || self.known.refuses(most) {
            return costly();
        }
        let wanted = |shifted| Shifted::within(shifted, most, self.known);
        let analysed = match shifted(self.a, self.b, sigma).and_then(wanted) {
            Ok(Some(analysed)) => analysed,
            Ok(None) => return costly(),
            Err(error) => return Ok(Err(error.to_string())),
        };
        let inertia = match analysed.factors::<T>() {
            Ok(factors) => factors.inertia().filter(|inertia| inertia.zero == 0),
            Err(error) => return Ok(Err(error.to_string())),
        };
        let Some(inertia) = inertia else {
            return Ok(
                Err("the factors of a shifted matrix do not show the signs of its eigenvalues".into()),
            );
        };
        let counted = if self.largest { inertia.positive } else { inertia.negative };
        let here = values.iter().filter(|value| signed(**value) <= signed(sigma)).count();
        Ok(counted
            .checked_sub(here)
            .ok_or_else(|| format!("{here} values were found where {counted} are counted")))
    }

    /// Searches from other vectors, with what was found moved towards the other end of the spectrum.
    fn other(
        &self,
        found: &mut Found<T>,
        searched: &Search<'_, T>,
        count: usize,
        beyond: Option<Beyond>,
        method: &Method<'_, T>,
        watch: Watching<'_>,
    ) -> Result<Found<T>> {
        let (dev, n, columns) = (searched.dev, searched.a.shape().0, found.vectors.len());
        let (first, last) = (found.values[0], found.values[columns - 1]);
        let by = (4.0 * (last - first).abs())
            .max(0.5 * last.abs())
            .max(0.5 * first.abs())
            .max(searched.goal.floor);
        let basis = dev.basis::<T>(n, columns)?;
        let root = T::from_real(by.sqrt());
        for (j, x) in found.vectors.iter().enumerate() {
            let image = self.b.map(|b| b.times(x)).transpose()?;
            let moved: Vec<T> = image.as_deref().unwrap_or(x).iter().map(|v| root * *v).collect();
            dev.upload(&moved, basis.column(j))?;
        }
        let lowest = if self.largest { last - by } else { -last - by };
        let cells = dev.cells::<T>(columns * MULTIPLIED)?;
        let operator = Moved { a: searched.a, by: *basis, cells: *cells, up: !self.largest };
        let again = Search {
            a: &operator as &dyn LinOp<T>,
            count,
            seed: searched.seed + columns as u32,
            start: &[],
            beyond,
            interval: found.interval.map(|interval| interval.down_to(lowest)),
            ..*searched
        };
        let other = method(&again, watch)?;
        found.follow(&other);
        Ok(other)
    }

    /// Puts other vectors beside those that were found: the Ritz values and vectors of all of them.
    ///
    /// Reference: Saad 2011, Numerical Methods for Large Eigenvalue Problems, section 4.3.
    pub(crate) fn join(&self, found: &mut Found<T>, others: Vec<Vec<T>>) -> Result<()> {
        found.vectors.extend(others);
        let columns = found.vectors.len();
        let times = |a: &Csr<T>| found.vectors.iter().map(|x| a.times(x)).collect::<Result<Vec<_>>>();
        let (images, masses) = (times(self.a)?, self.b.map(times).transpose()?);
        let masses = masses.as_ref().unwrap_or(&found.vectors);
        let gram = |y: &[Vec<T>]| {
            let sides = [&found.vectors[..], y].map(|side| side.iter().map(|x| &x[..]).collect::<Vec<_>>());
            let upper = gram::upper(&sides[0], &sides[1]);
            Small::of(columns, columns, |i, j| match i <= j {
                true => upper[gram::place(i, j)],
                false => upper[gram::place(j, i)].conj(),
            })
            .hermitian_part()
        };
        let Some(factor) = gram(masses).cholesky() else {
            return Err(Error::Unsupported {
                operation: "eigenvalues".into(),
                message: "a second start found what was known: ask for fewer eigenvalues, or for a looser tolerance".into(),
            });
        };
        let mut reduced = gram(&images);
        factor.solve_lower(&mut reduced);
        let mut reduced = reduced.adjoint();
        factor.solve_lower(&mut reduced);
        let (mut values, mut vectors) = reduced.hermitian_part().hermitian_eigen()?;
        factor.solve_lower_adjoint(&mut vectors);
        if self.largest {
            values.reverse();
            vectors = vectors.columns((0..columns).rev());
        }
        let n = found.vectors[0].len();
        let combined = (0..columns).map(|j| {
            let c = vectors.column(j);
            parallel::collect(n, GRAIN, |row| {
                let terms = found.vectors.iter().zip(c);
                terms
                    .fold(<T::Wide as Scalar>::from_real(0.0), |sum, (x, c)| sum + x[row].wide() * *c)
                    .converted()
            })
        });
        (found.values, found.vectors) = (values, combined.collect());
        Ok(())
    }
}
