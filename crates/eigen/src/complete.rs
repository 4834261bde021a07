//! Whether eigenvalues are missing among those that a search found.
use crate::lanczos::Moved;
use crate::outcome::Complete;
use crate::problem::Check;
use crate::search::{self, Found, Watching};
use crate::shift::{Shifted, shifted};
use lacuna_engine::{LinOp, Reason, Result, Scalar};
use lacuna_formats::Csr;
use std::time::Duration;

/// A method that searches one end of the spectrum.
pub(crate) type Method<'m, T> = dyn Fn(&search::Search<'_, T>, Watching<'_>) -> Result<Found<T>> + 'm;

/// A count takes no longer than the search did, or than this.
const LEAST: f64 = 0.5;

/// The verdict on a search.
pub(crate) enum Verdict<T> {
    /// Final.
    Is(Complete),
    /// So many are missing; vectors to find them with, if there are any.
    Misses(usize, Vec<Vec<T>>),
}

/// What the completeness of a search is judged by.
pub(crate) struct Search<'a, T: Scalar> {
    pub(crate) a: &'a Csr<T>,
    pub(crate) b: Option<&'a Csr<T>>,
    pub(crate) largest: bool,
    pub(crate) check: Check,
    pub(crate) wanted: usize,
    pub(crate) took: Duration,
}

impl<T: Scalar> Search<'_, T> {
    /// The verdict, and the products and applications of the preconditioner that it took.
    pub(crate) fn look(
        &self,
        found: &Found<T>,
        searched: &search::Search<'_, T>,
        method: &Method<'_, T>,
        watch: Watching<'_>,
        notes: &mut Vec<String>,
    ) -> Result<(Verdict<T>, [u64; 2])> {
        let unchecked = |why: &str| Ok((Verdict::Is(Complete::Unchecked(why.into())), [0; 2]));
        match self.check {
            Check::Off => return unchecked("not asked for"),
            Check::Probed => {}
            Check::Auto | Check::Counted => match self.count(found)? {
                Ok(verdict) => return Ok((verdict, [0; 2])),
                Err(why) if self.check == Check::Counted => return unchecked(&why),
                Err(_) => {}
            },
        }
        self.probe(found, searched, method, watch, notes)
    }

    /// Counts the eigenvalues up to a number just beyond the last one that was wanted; or why that cannot be done.
    fn count(&self, found: &Found<T>) -> Result<std::result::Result<Verdict<T>, String>> {
        let sign = if self.largest { -1.0 } else { 1.0 };
        let signed = |value: f64| sign * value;
        let last = signed(found.values[self.wanted - 1]);
        let later = found.values[self.wanted..].iter().map(|value| signed(*value));
        let next = later.fold(f64::INFINITY, f64::min);
        let size = last.abs().max(found.values.iter().map(|v| v.abs()).fold(0.0, f64::max));
        let gap = if next.is_finite() { (next - last).max(0.0) } else { size };
        let sigma = last + (0.1 * gap).max(1e-9 * size).max(f64::MIN_POSITIVE);
        let analysed = match shifted(self.a, self.b, signed(sigma)).and_then(Shifted::new) {
            Ok(analysed) => analysed,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let most = if self.check == Check::Counted { f64::MAX } else { self.took.as_secs_f64().max(LEAST) };
        if analysed.seconds() > most {
            return Ok(Err("factors of a shifted matrix would take longer than the search".into()));
        }
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
        let here = found.values.iter().filter(|value| signed(**value) <= sigma).count();
        Ok(Ok(match counted {
            _ if counted > here => Verdict::Misses(counted - here, Vec::new()),
            _ if counted == here => Verdict::Is(Complete::Counted),
            _ => Verdict::Is(Complete::Unchecked(format!(
                "{here} values were found where {counted} are counted"
            ))),
        }))
    }

    /// Searches again from other vectors, with what was found moved to the other end of the spectrum.
    fn probe(
        &self,
        found: &Found<T>,
        searched: &search::Search<'_, T>,
        method: &Method<'_, T>,
        watch: Watching<'_>,
        notes: &mut Vec<String>,
    ) -> Result<(Verdict<T>, [u64; 2])> {
        let (dev, n, wanted) = (searched.dev, searched.a.shape().0, self.wanted);
        let values = &found.values[..wanted];
        let (first, last) = (values[0], values[wanted - 1]);
        let next = found.values.get(wanted).copied().unwrap_or(last);
        let by = (4.0 * (next - first).abs()).max(0.5 * last.abs()).max(searched.goal.floor);
        let basis = dev.basis::<T>(n, wanted)?;
        let root = T::from_real(by.sqrt());
        for (j, x) in found.vectors[..wanted].iter().enumerate() {
            let image = self.b.map(|b| b.times(x)).transpose()?;
            let moved: Vec<T> = image.as_deref().unwrap_or(x).iter().map(|v| root * *v).collect();
            dev.upload(&moved, basis.column(j))?;
        }
        let cells = dev.cells::<T>(wanted)?;
        let operator = Moved { a: searched.a, by: *basis, cells: *cells, up: !self.largest };
        let again = search::Search {
            a: &operator as &dyn LinOp<T>,
            count: 1,
            columns: 0,
            seed: searched.seed + 100,
            start: &[],
            beyond: Some(last),
            ..*searched
        };
        let other = method(&again, watch)?;
        let work = [other.products, other.preconditionings];
        let verdict = match other.reason {
            Reason::Converged => {
                let value = other.values[0];
                let off = 4.0 * searched.goal.of(last);
                let better = if self.largest { value > last + off } else { value < last - off };
                match better {
                    true => Verdict::Misses(1, other.vectors.into_iter().take(1).collect()),
                    false => Verdict::Is(Complete::Probed),
                }
            }
            reason => {
                notes.push(format!("the second start ended as {}", reason.name().replace('_', " ")));
                Verdict::Is(Complete::Unchecked("the second start did not converge".into()))
            }
        };
        Ok((verdict, work))
    }
}
