//! When a search takes a filter in place of its operator, and what it measures then.
use super::{End, Lanczos, Pairs, Ritz, normalised};
use crate::filter::{Filter, Interval};
use crate::small::Small;
use lacuna_engine::{Pass, Result, Scalar};

/// Filters of a search.
const FILTERS: usize = 4;

/// How a search goes on.
pub(super) enum Turn {
    Stay,
    /// With a filter for an interval.
    Damp(Interval),
    /// Without a filter.
    Plain,
}

impl<T: Scalar> Lanczos<'_, '_, T> {
    /// How to go on after a cycle: whether another filter pays, or the one that there is lets through what lies beyond the other end.
    pub(super) fn turn(&self, pairs: &Pairs, other_end: f64) -> Turn {
        let (wanted, m, sign) = (self.search.count, self.columns, self.sign());
        if let Some(filter) = &self.filter
            && pairs.values.iter().any(|value| sign * value < filter.interval.low())
        {
            return Turn::Plain;
        }
        if self.end == End::Modulus || self.search.b.is_some() || self.filters >= FILTERS {
            return Turn::Stay;
        }
        let next = (wanted + (m - wanted) / 3).min(pairs.values.len() - 1);
        let [next, last, first] = [next, wanted - 1, 0].map(|j| sign * pairs.values[j]);
        let pays =
            |interval: &Interval| self.filter.is_none_or(|filter| interval.pays_beside(&filter.interval));
        Interval::of([other_end, next, last, first], m).filter(pays).map_or(Turn::Stay, Turn::Damp)
    }

    /// The sum of the vectors that are wanted begins a cycle; those that are kept are combined already if there is a filter.
    fn begin(&mut self, ritz: &Ritz, kept: usize) -> Result<()> {
        let wanted = self.search.count;
        let (rows, combined) = if self.filter.is_some() { (kept, true) } else { (self.columns, false) };
        let sum = Small::of(rows, 1, |i, _| match combined {
            true => f64::from(u8::from(i < wanted)),
            false => (0..wanted).map(|j| ritz.vectors.at(i, j)).sum(),
        });
        self.combine(&sum, rows, "begin", 1)?;
        let (first, length) = (self.basis().column(0), self.cells.at(0));
        self.run(("first", [self.side, 0, 0]), |k| {
            k.multi_axpy_dot(Pass::new("length").dot(length, first, first).eval(length, length.sqrt()));
            normalised(k, [first, first], length);
        })
    }

    /// Begins again with another filter, or with none.
    pub(super) fn begin_again(&mut self, ritz: &Ritz, kept: usize, turn: Turn) -> Result<()> {
        self.begin(ritz, kept)?;
        match turn {
            Turn::Damp(interval) => return self.damp(interval),
            // No program of a filter may be taken for one without.
            Turn::Stay | Turn::Plain => (self.filter, self.filters) = (None, FILTERS + 1),
        }
        Ok(())
    }

    /// Takes a filter for this interval in place of the operator.
    pub(super) fn damp(&mut self, interval: Interval) -> Result<()> {
        let n = self.basis().len;
        let work = match self.work.take() {
            Some(work) => work,
            None => [self.dev().vector(n)?, self.dev().vector(n)?],
        };
        self.filter =
            Some(Filter { a: self.search.a, interval, sign: self.sign(), work: [*work[0], *work[1]] });
        self.filters += 1;
        self.work = Some(work);
        Ok(())
    }

    /// The values of the operator that belong to the first `count` vectors, and the norms of the residuals.
    pub(super) fn measured(&mut self, count: usize) -> Result<Pairs> {
        let (v, a, cells) = (self.basis(), self.search.a, *self.cells);
        let image = v.column(self.columns);
        // The column after those that are kept is needed again: the image takes the last.
        let (values, left) = (cells.part(0, count), cells.part(count, count));
        self.run(("measure", [self.side, count, 0]), |k| {
            for j in 0..count {
                let (x, value, left) = (v.column(j), values.at(j), left.at(j));
                k.spmv_dot(a, x, image, Pass::new("value").dot(value, x, image));
                k.multi_axpy_dot(Pass::new("residual").set(image, image - value * x).dot(left, image, image));
            }
        })?;
        self.products += count as u64;
        let values = self.dev().read_run(values)?.iter().map(|v| v.re()).collect();
        let residuals = self.dev().read_run(left)?.iter().map(|v| v.re().max(0.0).sqrt()).collect();
        Ok(Pairs { values, residuals })
    }
}
