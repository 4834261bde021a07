//! How a matrix would be divided, and what that costs.
use crate::Halo;
use lacuna_engine::division::Cuts;
use lacuna_engine::{AnyFormat, with_each};
use lacuna_formats::places_before;
use std::fmt;
use std::ops::Range;

/// What a row costs besides its matrix entries, in entries: reading and writing vectors.
const ROW: usize = 4;
/// What an element of a halo costs, in entries: packing, sending and unpacking.
const HALO: usize = 4;

/// How the rows of a square matrix are divided.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Survey {
    /// In order of rank.
    pub parts: Vec<Share>,
}

/// What one rank has of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Share {
    /// The rows that it computes.
    pub rows: Range<usize>,
    /// The places of the matrix that it reads.
    pub places: usize,
    /// The elements that it needs from others for a product.
    pub halo: usize,
    /// The ranks that it gets them from.
    pub neighbours: usize,
}

/// The places before a row; 0 for a format of another crate.
pub(crate) fn before(a: &AnyFormat, row: usize) -> usize {
    with_each!(a, a => places_before(&**a, row)).unwrap_or(0)
}

/// The rows of a matrix in parts of about equal work.
pub(crate) fn balanced(a: &AnyFormat, ranks: usize) -> Cuts {
    Cuts::balanced(a.shape().0, ranks, |row| before(a, row) + ROW * row)
}

impl Survey {
    /// Divides a square matrix among ranks; `None` if it is not square, or nothing is known of its format.
    pub fn of(a: &AnyFormat, ranks: usize) -> Option<Self> {
        let (rows, cols) = a.shape();
        let cuts = (rows == cols && ranks > 0).then(|| balanced(a, ranks))?;
        Some(Self::new(a, &cuts, &Halo::new(a, &cuts, &cuts)?))
    }
    pub(crate) fn new(a: &AnyFormat, cuts: &Cuts, halo: &Halo) -> Self {
        let share = |rank| {
            let (rows, part) = (cuts.rows(rank), halo.part(rank));
            let places = before(a, rows.end).saturating_sub(before(a, rows.start));
            Share { rows, places, halo: part.needs(), neighbours: part.receives.len() }
        };
        Survey { parts: (0..cuts.parts()).map(share).collect() }
    }
    /// Elements of halo for each row of the matrix, over all ranks.
    pub fn halo(&self) -> f64 {
        let rows = self.parts.last().map_or(0, |share| share.rows.end);
        self.parts.iter().map(|share| share.halo).sum::<usize>() as f64 / rows.max(1) as f64
    }
    /// By how much the work of the busiest rank exceeds the mean, as a fraction of that.
    pub fn imbalance(&self) -> f64 {
        let (all, most) = self.work(0);
        most * self.parts.len() as f64 / all.max(1.0) - 1.0
    }
    /// How many times as fast as one device the ranks are at most, by balance and halo: as if messages took no time on their way,
    /// and each rank had the whole speed of a device.
    pub fn speed_up(&self) -> f64 {
        let (all, most) = self.work(HALO);
        all / most.max(1.0)
    }
    /// The work of a product and the vectors around it, in entries: of one device, and of the busiest rank with its halo.
    fn work(&self, of_halo: usize) -> (f64, f64) {
        let own = |share: &Share| share.places + ROW * share.rows.len();
        let all: usize = self.parts.iter().map(own).sum();
        let most = self.parts.iter().map(|share| own(share) + of_halo * share.halo).max();
        (all as f64, most.unwrap_or(0) as f64)
    }
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = || self.parts.iter().map(|share| share.rows.len());
        let (fewest, most) = (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0));
        let neighbours = self.parts.iter().map(|share| share.neighbours).max().unwrap_or(0);
        let count = self.parts.len();
        write!(
            f,
            "{count} {}: {fewest} to {most} rows each, the busiest {:.1} % above the mean; halo {:.2} % of the rows, from {neighbours} \
             {} at most",
            if count == 1 { "rank" } else { "ranks" },
            100.0 * self.imbalance(),
            100.0 * self.halo(),
            if neighbours == 1 { "other" } else { "others" },
        )
    }
}
