//! Blocks of an intermediate matrix, in memory while they are needed.
use crate::parallel::{map, map_with};
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
        let missing = self.missing()?;
        self.keep(map(missing, fill))
    }

    /// [`Window::advance`] with working memory for each thread, created by `init`.
    pub(super) fn advance_with<M: Send>(
        &mut self,
        init: impl Fn() -> M + Sync,
        fill: impl Fn(&mut M, (usize, B)) -> (usize, B) + Sync,
    ) -> Option<Range<usize>> {
        let missing = self.missing()?;
        self.keep(map_with(missing, init, fill))
    }

    /// Moves on: the missing blocks of the next runs, each with memory for it. No blocks are kept that no run uses any more.
    fn missing(&mut self) -> Option<Vec<(usize, B)>> {
        let first = self.done.end;
        let kept_from = least(&self.needed[first..]).unwrap_or(self.blocks.len());
        for block in &mut self.blocks[..kept_from] {
            self.spare.extend(block.take());
        }
        if first == self.needed.len() {
            return None;
        }
        self.done = first..(first + RUNS * rayon::current_num_threads()).min(self.needed.len());
        let mut missing = Vec::new();
        for block in wanted(&self.needed[self.done.clone()]) {
            if self.blocks[block].is_none() {
                missing.push((block, self.spare.pop().unwrap_or_default()));
            }
        }
        Some(missing)
    }

    /// Keeps the missing blocks. Returns the runs for which all blocks are there.
    fn keep(&mut self, made: Vec<(usize, B)>) -> Option<Range<usize>> {
        for (block, made) in made {
            self.blocks[block] = Some(made);
        }
        Some(self.done.clone())
    }
}

/// The first block that some run uses.
fn least(needed: &[Range<usize>]) -> Option<usize> {
    needed.iter().filter(|blocks| !blocks.is_empty()).map(|blocks| blocks.start).min()
}

/// The blocks that some runs use, in increasing order.
fn wanted(needed: &[Range<usize>]) -> Vec<usize> {
    let mut wanted: Vec<usize> = needed.iter().cloned().flatten().collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}
