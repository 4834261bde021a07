//! Blocks of an intermediate matrix, in memory while they are needed.
use crate::parallel::map_with;
use std::ops::Range;

/// Runs of rows at a time on each thread.
const RUNS: usize = 16;

/// Several runs of rows of `R` at a time, with the blocks of `A P` that they use. These are computed before
/// them, and reused after the last run that uses them: on matrices whose rows couple close neighbours, few
/// blocks are in memory at a time.
pub(super) struct Window<'a, B> {
    /// The blocks that each run uses.
    needed: &'a [Range<usize>],
    /// Runs before it.
    done: Range<usize>,
    pub(super) blocks: Vec<Option<B>>,
    spare: Vec<B>,
}

impl<'a, B: Default + Send> Window<'a, B> {
    pub(super) fn new(needed: &'a [Range<usize>], blocks: usize) -> Self {
        Window { needed, done: 0..0, blocks: (0..blocks).map(|_| None).collect(), spare: Vec::new() }
    }

    /// Moves on to the next runs, whose missing blocks `fill` computes, if there are any.
    pub(super) fn advance(&mut self, fill: impl Fn((usize, B)) -> (usize, B) + Sync) -> Option<Range<usize>> {
        self.advance_with(|| (), |(), block| fill(block))
    }

    /// [`Window::advance`] with working memory for each thread, created by `init`.
    pub(super) fn advance_with<M>(
        &mut self,
        init: impl Fn() -> M + Sync,
        fill: impl Fn(&mut M, (usize, B)) -> (usize, B) + Sync,
    ) -> Option<Range<usize>> {
        let first = self.done.end;
        let later = self.needed[first..].iter().filter(|blocks| !blocks.is_empty());
        let kept_from = later.map(|blocks| blocks.start).min().unwrap_or(self.blocks.len());
        self.spare.extend(self.blocks[..kept_from].iter_mut().filter_map(Option::take));
        if first == self.needed.len() {
            return None;
        }
        self.done = first..(first + RUNS * rayon::current_num_threads()).min(self.needed.len());
        let wanted = self.needed[self.done.clone()].iter().cloned().flatten();
        let mut wanted: Vec<usize> = wanted.filter(|&block| self.blocks[block].is_none()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let spare = &mut self.spare;
        let tasks = wanted.into_iter().map(|block| (block, spare.pop().unwrap_or_default()));
        for (block, made) in map_with(tasks, init, fill) {
            self.blocks[block] = Some(made);
        }
        Some(self.done.clone())
    }
}
