//! Facts about matrices, and the layouts of earlier programs, so that the next solve of the same system
//! repacks and uploads nothing.
use crate::layout::MatrixFacts;
use crate::repacked::Repacked;
use crate::rows::KernelMatrix;
use crate::slices::Slicer;
use crate::write::Product;
use lacuna_engine::NumberType;
use lacuna_engine::encode::Encoded;
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of matrix layouts that are kept, each about as large as its matrix; and of programs.
const LAYOUTS: usize = 8;
const PROGRAMS: usize = 32;

/// What a backend caches: `E` holds repacked entries on the device, `P` is anything it keeps for a program.
/// Both are cheap to clone and free what they hold when the last clone is dropped.
pub struct PlanCache<E, P> {
    facts: Vec<(u32, Arc<Facts>)>,
    layouts: Vec<(Key, Placement, E)>,
    programs: Vec<(ProgramKey, P)>,
}

/// What a resident layout needs to know about a matrix.
pub(crate) struct Facts {
    /// See [`Rows::spans`].
    pub(crate) spans: Vec<(u32, u32)>,
    /// Entries of the longest lane of a row.
    pub(crate) longest: usize,
    /// Whether all rows have the same number of lanes and the lanes hold all their entries.
    pub(crate) even: bool,
}

/// Everything that a layout of matrices depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub(crate) matrices: Vec<u32>,
    pub(crate) streaming: bool,
    pub(crate) groups: usize,
    pub(crate) ways: usize,
    /// Work-items of a work-group.
    pub(crate) size: usize,
    /// For each matrix, if vectors are resident: whether the operand window fits local memory, and whether
    /// one work-item takes all lanes of a row.
    pub(crate) resident: Vec<(bool, bool)>,
}

/// How each matrix was repacked.
#[derive(Clone, Debug)]
pub enum Placement {
    /// In the order in which work-items read the entries: maximum places of a work-group; `None` if the
    /// matrix is not repacked.
    Resident(Vec<Option<usize>>),
    /// How each matrix is multiplied, and the local memory that takes, in numbers.
    Streaming(Vec<Product>, usize),
}

/// The entries of the matrices of a program.
pub enum Repack<'a, E> {
    /// New.
    New(Repacked, Key, Placement),
    /// Already on the device.
    Cached(E),
    /// New, of which only the places are found: see [`lay_out`](crate::algebra::lay_out).
    Unfilled(Slicer<'a>, Key, Placement),
}

/// Everything that the generated kernel of a program depends on, on one device.
#[derive(PartialEq)]
struct ProgramKey {
    kind: NumberType,
    mode: u32,
    words: Vec<u32>,
    /// Lengths of vectors, and whether they are narrow.
    vectors: Vec<(usize, bool)>,
    cells: Range<u32>,
    bases: Vec<usize>,
    matrices: Vec<u32>,
}

impl ProgramKey {
    fn is(&self, e: &Encoded, mode: u32) -> bool {
        (self.kind, self.mode, &self.cells) == (e.kind, mode, &e.cells)
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
    /// What is cached for the same program; `mode` is a number of the backend that the cached value also
    /// depends on.
    pub fn program(&self, e: &Encoded, mode: u32) -> Option<P> {
        self.programs.iter().find(|(key, _)| key.is(e, mode)).map(|(_, kept)| kept.clone())
    }

    /// Caches a value for a program.
    pub fn keep_program(&mut self, e: &Encoded, mode: u32, kept: P) {
        let key = ProgramKey {
            kind: e.kind,
            mode,
            words: e.words.clone(),
            vectors: e.vectors.iter().map(|v| (v.len, v.narrow)).collect(),
            cells: e.cells.clone(),
            bases: e.bases.iter().map(|v| v.columns).collect(),
            matrices: e.matrices.iter().map(|a| a.serial).collect(),
        };
        push(&mut self.programs, (key, kept), PROGRAMS);
    }

    /// Caches a layout that is on the device.
    pub fn keep(&mut self, key: Key, placement: Placement, entries: E) {
        push(&mut self.layouts, (key, placement, entries), LAYOUTS);
    }

    /// Drops a matrix that was freed or has new values, and whatever depends on it.
    pub fn forget(&mut self, matrix: u32) {
        self.facts.retain(|(serial, _)| *serial != matrix);
        self.layouts.retain(|(key, ..)| !key.matrices.contains(&matrix));
        self.programs.retain(|(key, _)| !key.matrices.contains(&matrix));
    }

    /// Drops everything that takes device memory; `false` if there was nothing.
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

    /// The facts of a matrix; `None` if its format is not known here.
    pub(crate) fn facts(&mut self, a: &MatrixFacts<'_>) -> Option<Arc<Facts>> {
        let n = a.format.shape().0;
        if let Some((_, facts)) = self.facts.iter().find(|(serial, _)| *serial == a.serial) {
            return Some(facts.clone());
        }
        let rows = KernelMatrix::of(a.format).filter(|rows| !rows.is_remote())?;
        let facts = Arc::new(Facts {
            spans: rows.spans(n),
            longest: rows.lengths(n).into_iter().max().unwrap_or(0) as usize,
            even: rows.pieces().is_none() && !a.format.has_long_rows(),
        });
        push(&mut self.facts, (a.serial, facts.clone()), PROGRAMS);
        Some(facts)
    }
}

/// Appends to a list of at most `most` elements, dropping the oldest.
fn push<X>(list: &mut Vec<X>, new: X, most: usize) {
    if list.len() == most {
        list.remove(0);
    }
    list.push(new);
}
