//! Division of rows among threads.
use crate::plan::step::StepKind;
use crate::spmv::AnyStored;
use lacuna_engine::sum::SEGMENT;
use lacuna_engine::with_each;

/// Segment boundaries of the threads' shares, `threads + 1` of them.
pub(crate) type Shares = Box<[usize]>;

/// The distinct lengths of steps, each with the first matrix that has this many rows.
#[derive(Default)]
pub(crate) struct Lengths(Vec<(usize, Option<AnyStored>)>);

impl Lengths {
    /// The index of a step's length.
    pub(crate) fn of(&mut self, n: usize, kind: &StepKind) -> usize {
        let at = self.0.iter().position(|(known, _)| *known == n).unwrap_or_else(|| {
            self.0.push((n, None));
            self.0.len() - 1
        });
        if let (StepKind::Spmv { a, .. } | StepKind::Spmm { a, .. }, matrix @ None) =
            (kind, &mut self.0[at].1)
        {
            *matrix = Some(a.clone());
        }
        at
    }

    /// The division of each length among `threads` threads.
    pub(crate) fn divisions(&self, threads: usize) -> Vec<Shares> {
        self.0.iter().map(|(n, a)| divide(*n, threads, a.as_ref())).collect()
    }
}

/// Segment boundaries that give each thread about the same number of matrix entries, or of rows if there is
/// no matrix.
fn divide(n: usize, threads: usize, matrix: Option<&AnyStored>) -> Shares {
    let segments = n.div_ceil(SEGMENT);
    // The vectors also cost time in each row: as much as a few entries.
    let before = |segment: usize| {
        let row = (segment * SEGMENT).min(n);
        matrix.map_or(0, |a| with_each!(a, a => a.entries_before(row))) + 4 * row
    };
    let all = before(segments);
    let border = |t: usize| {
        let wanted = all / threads * t;
        let (mut low, mut high) = (0, segments);
        while low < high {
            let middle = (low + high) / 2;
            if before(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        low
    };
    (0..=threads).map(|t| if t == threads { segments } else { border(t) }).collect()
}
