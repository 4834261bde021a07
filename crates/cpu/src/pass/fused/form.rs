//! Forms of passes: their structure, independent of the actual vectors.
use crate::plan::step::{Dot, Term, Update};
use lacuna_engine::lower::Coefficient;

/// Maximum number of vectors of a form.
pub(super) const VECTORS: usize = 9;

/// The positions of a term's factor, if it has one, and of its vector in the vector list of a pass.
pub(super) type TermForm = (Option<usize>, usize);

/// The updates and dot products of a pass, with vectors given by their positions in its list.
pub(super) struct Form {
    pub(super) updates: &'static [(usize, &'static [TermForm])],
    /// The first operand, and the second one with its factor.
    pub(super) dots: &'static [(usize, TermForm)],
}

/// No vector.
pub(super) const NONE: u32 = u32::MAX;

impl Form {
    /// The slots of the vectors, if updates and dot products have this form.
    pub(super) fn vectors(&self, updates: &[Update], dots: &[Dot]) -> Option<[u32; VECTORS]> {
        if self.updates.len() != updates.len() || self.dots.len() != dots.len() {
            return None;
        }
        let mut vectors = [NONE; VECTORS];
        // Whether this slot may be at this position: slots and positions correspond one to one.
        let mut is = |at: usize, slot: u32| match vectors.iter().position(|known| *known == slot) {
            None if vectors[at] == NONE => {
                vectors[at] = slot;
                true
            }
            known => known == Some(at),
        };
        let mut fits = |form: &TermForm, factor: Option<u32>, vector: u32| {
            let factors = match (form.0, factor) {
                (Some(at), Some(slot)) => is(at, slot),
                (form, factor) => form.is_none() && factor.is_none(),
            };
            factors && is(form.1, vector)
        };
        // A loop multiplies by the factor first, which is how a term is rounded that comes first or has a cell.
        let rounds_alike =
            |term: &Term| term.factor.is_none() || matches!(term.coefficient, Coefficient::Cell(_));
        let of_updates = self.updates.iter().zip(updates).all(|((_, terms), update)| {
            terms.len() == update.terms.len()
                && update.terms.iter().skip(1).all(rounds_alike)
                && terms.iter().zip(&update.terms).all(|(f, t)| fits(f, t.factor, t.vector))
        });
        let of_results =
            self.updates.iter().zip(updates).all(|((dst, _), update)| fits(&(None, *dst), None, update.dst));
        let of_dots = self
            .dots
            .iter()
            .zip(dots)
            .all(|((a, b), dot)| fits(&(None, *a), None, dot.a) && fits(b, dot.factor, dot.b));
        (of_updates && of_results && of_dots).then_some(vectors)
    }
}
