//! What is known of stored matrices and of programs laid out before, so that the next solve of the same system lays nothing
//! out and brings nothing to the device a second time.
use crate::layout::MatrixFacts;
use crate::repacked::Repacked;
use crate::rows::Rows;
use crate::write::Product;
use lacuna_engine::encode::Encoded;
use lacuna_engine::{Kind, Scalar};
use std::ops::Range;
use std::sync::Arc;

/// Layouts of matrices that are kept at the most, each about as large as its matrix; and programs.
const LAYOUTS: usize = 8;
const PROGRAMS: usize = 32;

/// What a backend keeps: of laid out matrices `E`, its hold on their entries on the device, and of a program `P`, whatever it
/// wants. Both are cheap to clone and give back what they hold once the last one goes.
pub struct PlanCache<E, P> {
    facts: Vec<(u32, Arc<Facts>)>,
    layouts: Vec<(Key, Placement, E)>,
    programs: Vec<(ProgramKey, P)>,
}

/// What laying a matrix out resident needs to know of it.
pub(crate) struct Facts {
    /// See [`Rows::spans`].
    pub(crate) spans: Vec<(u32, u32)>,
    /// Entries of the longest lane of a row.
    pub(crate) longest: usize,
    /// Whether each row has the lanes of all others, and all of its entries in them.
    pub(crate) even: bool,
}

/// All that a layout of matrices depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub(crate) matrices: Vec<u32>,
    pub(crate) streaming: bool,
    pub(crate) groups: usize,
    pub(crate) ways: usize,
    /// Work-items of a group.
    pub(crate) size: usize,
    /// Of each whose vectors are resident, whether what a group multiplies fits local memory, and whether a work-item takes all lanes of
    /// a row.
    pub(crate) resident: Vec<(bool, bool)>,
}

/// How each matrix was laid out.
#[derive(Clone, Debug)]
pub enum Placement {
    /// As work-items take its entries: the places of the group that has the most; nothing where it stays as it is.
    Resident(Vec<Option<usize>>),
    /// How it is multiplied, and the numbers of local memory that this takes.
    Streaming(Vec<Product>, usize),
}

/// The entries of the matrices of a program.
pub enum Repack<T, E> {
    /// Repack out anew: to be brought to the device and given to [`PlanCache::keep`].
    New(Repacked<T>, Key, Placement),
    /// As kept.
    Cached(E),
}

/// All that the kernel generated for a program depends on, on one device.
#[derive(PartialEq)]
struct ProgramKey {
    kind: Kind,
    mode: u32,
    words: Vec<u32>,
    /// The lengths of vectors, and whether they are narrow.
    vectors: Vec<(usize, bool)>,
    cells: Range<u32>,
    bases: Vec<usize>,
    matrices: Vec<u32>,
}

impl ProgramKey {
    fn is<T: Scalar>(&self, e: &Encoded<T>, mode: u32) -> bool {
        (self.kind, self.mode, &self.cells) == (T::KIND, mode, &e.cells)
            && self.matrices.iter().copied().eq(e.matrices.iter().map(|a| a.serial))
            && self.bases.iter().copied().eq(e.bases.iter().map(|v| v.columns))
            && self.vectors.iter().copied().eq(e.vectors.iter().map(|v| (v.len, v.narrow)))
            && self.words == e.words
    }
}

impl<E, P> Default for PlanCache<E, P> {
    fn default() -> Self {
        PlanCache { facts: Vec::new(), layouts: Vec::new(), programs: Vec::new() }
    }
}

impl<E: Clone, P: Clone> PlanCache<E, P> {
    /// What was kept of the same program; `mode` is a number of the backend's own that it depends on too.
    pub fn program<T: Scalar>(&self, e: &Encoded<T>, mode: u32) -> Option<P> {
        self.programs.iter().find(|(key, _)| key.is(e, mode)).map(|(_, kept)| kept.clone())
    }

    /// Keeps what belongs to a program.
    pub fn keep_program<T: Scalar>(&mut self, e: &Encoded<T>, mode: u32, kept: P) {
        let key = ProgramKey {
            kind: T::KIND,
            mode,
            words: e.words.clone(),
            vectors: e.vectors.iter().map(|v| (v.len, v.narrow)).collect(),
            cells: e.cells.clone(),
            bases: e.bases.iter().map(|v| v.columns).collect(),
            matrices: e.matrices.iter().map(|a| a.serial).collect(),
        };
        push(&mut self.programs, (key, kept), PROGRAMS);
    }

    /// Keeps a layout that is on the device.
    pub fn keep(&mut self, key: Key, placement: Placement, entries: E) {
        push(&mut self.layouts, (key, placement, entries), LAYOUTS);
    }

    /// Forgets all matrices that are not there any more, and what depends on them.
    pub fn retain(&mut self, there: impl Fn(u32) -> bool) {
        self.facts.retain(|(serial, _)| there(*serial));
        self.layouts.retain(|(key, ..)| key.matrices.iter().all(|serial| there(*serial)));
        self.programs.retain(|(key, _)| key.matrices.iter().all(|serial| there(*serial)));
    }

    /// Forgets everything that takes room on the device; false where there was nothing.
    pub fn clear(&mut self) -> bool {
        let held = !self.layouts.is_empty() || !self.programs.is_empty();
        self.layouts.clear();
        self.programs.clear();
        held
    }

    pub(crate) fn layout(&self, key: &Key) -> Option<(&Placement, &E)> {
        self.layouts
            .iter()
            .find(|(known, ..)| known == key)
            .map(|(_, placement, entries)| (placement, entries))
    }

    /// Of a matrix; nothing where its format is not known here.
    pub(crate) fn facts<T: Scalar>(&mut self, a: &MatrixFacts<'_, T>) -> Option<Arc<Facts>> {
        let n = a.format.shape().0;
        if let Some((_, facts)) = self.facts.iter().find(|(serial, _)| *serial == a.serial) {
            return Some(facts.clone());
        }
        let rows = Rows::of(a.format)?;
        let facts = Arc::new(Facts {
            spans: rows.spans(n),
            longest: rows.lengths(n).into_iter().max().unwrap_or(0) as usize,
            even: rows.pieces().is_none() && !a.format.has_long_rows(),
        });
        push(&mut self.facts, (a.serial, facts.clone()), PROGRAMS);
        Some(facts)
    }
}

/// Adds to so many at the most; the oldest goes.
fn push<X>(list: &mut Vec<X>, new: X, most: usize) {
    if list.len() == most {
        list.remove(0);
    }
    list.push(new);
}
