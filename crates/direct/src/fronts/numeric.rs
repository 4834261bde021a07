//! All fronts of a block: subtrees side by side, then what is above them.
use super::front::{Done, Source, Workspace};
use super::{Front, Fronts, Tree};
use crate::Number;
use crate::columns::Columns;
use crate::failure::{failed, filled, out_of_memory};
use lacuna_engine::Result;
use lacuna_formats::interrupt;
use lacuna_formats::parallel::{map_checked, threads};
use std::ops::Range;
use std::sync::Arc;

/// A subtree that takes less than this part of the whole is done by one thread.
const PART: f64 = 1.0 / 64.0;
/// Predicted seconds below which one thread does everything, and above which those above the subtrees share large fronts.
const ALONE: f64 = 1.3e-3;
/// A pivot is replaced if it is below this part of the largest entry.
const TINY: f64 = 1e-10;
/// The fronts of a subtree, and what its root passes on.
type Subtree<W> = Result<(Vec<(u32, Front<W>)>, Vec<W>, usize)>;

impl<W: Number> Fronts<W> {
    /// Factors the diagonal block at `block` of a matrix, which is given by columns and by rows.
    pub(crate) fn new(
        tree: Arc<Tree>,
        columns: &Columns<W>,
        rows: &Columns<W>,
        block: Range<usize>,
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Self> {
        let largest = columns.values[columns.ptr[block.start]..columns.ptr[block.end]]
            .iter()
            .map(|v| v.size())
            .fold(0.0, f64::max);
        let source = Source { columns, rows, start: block.start, tiny: TINY * largest };
        let (count, n) = (tree.len(), block.len());
        let grain = if tree.total < ALONE { f64::INFINITY } else { PART * tree.total };
        let is_below: Vec<bool> = tree.seconds.iter().map(|seconds| *seconds < grain).collect();
        let mut made: Vec<Option<Front<W>>> = (0..count).map(|_| None).collect();
        let mut passed: Vec<Vec<W>> = filled(Vec::new(), count)?;
        let mut replaced = 0;

        let is_top_of_subtree =
            |k: usize| is_below[k] && tree.parent(k).is_none_or(|parent| !is_below[parent]);
        let tops: Vec<usize> = (0..count).filter(|&k| is_top_of_subtree(k)).collect();
        let workspace = || Workspace::new(n);
        let subtree = |workspace: &mut Result<Workspace<W>>, top: usize| match workspace {
            Ok(workspace) => subtree(&tree, &source, top, workspace),
            Err(_) => Err(out_of_memory((n * size_of::<u32>()) as u64)),
        };
        let done: Vec<Subtree<W>> = if grain.is_finite() {
            map_checked(tops.iter().copied(), Some(&mut *check), workspace, subtree)?
        } else {
            let mut own = workspace();
            tops.iter().map(|&top| subtree(&mut own, top)).collect()
        };
        for (top, done) in tops.into_iter().zip(done) {
            let (fronts, rest, count) = done?;
            fronts.into_iter().for_each(|(k, front)| made[k as usize] = Some(front));
            passed[top] = rest;
            replaced += count;
        }

        let mut own = Workspace::new(n)?;
        for wave in waves(&tree, &is_below)? {
            // A front for each thread, or one after the other, each by all threads.
            let share = wave.len() < threads();
            let tasks: Vec<Task<W>> = wave
                .into_iter()
                .map(|k| {
                    (
                        k,
                        tree.children(k)
                            .iter()
                            .map(|&c| (c, std::mem::take(&mut passed[c as usize])))
                            .collect(),
                    )
                })
                .collect();
            let done: Vec<(usize, Result<Done<W>>)> = match share {
                true => {
                    let mut done = Vec::with_capacity(tasks.len());
                    for task in tasks {
                        check()?;
                        done.push(above(&tree, &source, &mut own, task, true));
                    }
                    done
                }
                false => {
                    map_checked(tasks, Some(&mut *check), workspace, |workspace, task| match workspace {
                        Ok(workspace) => above(&tree, &source, workspace, task, false),
                        Err(_) => (task.0, Err(out_of_memory((n * size_of::<u32>()) as u64))),
                    })?
                }
            };
            for (k, done) in done {
                let (front, rest, count) = done?;
                (made[k], passed[k]) = (Some(front), rest);
                replaced += count;
            }
        }
        let fronts: Option<Vec<Front<W>>> = made.into_iter().collect();
        let fronts = fronts.ok_or_else(|| failed("a front was left out"))?;
        Ok(Fronts { tree, fronts, replaced })
    }
}

/// A front above the subtrees, with what its children pass on.
type Task<W> = (usize, Vec<(u32, Vec<W>)>);

fn above<W: Number>(
    tree: &Tree,
    source: &Source<'_, W>,
    workspace: &mut Workspace<W>,
    (k, children): Task<W>,
    share: bool,
) -> (usize, Result<Done<W>>) {
    let passed = children.iter().map(|(child, passed)| (*child as usize, &passed[..]));
    (k, workspace.front(tree, source, k, passed, share))
}

/// The fronts above the subtrees in waves: each needs nothing but the waves before.
fn waves(tree: &Tree, is_below: &[bool]) -> Result<Vec<Vec<usize>>> {
    let mut wave_of = filled(0usize, tree.len())?;
    let mut waves: Vec<Vec<usize>> = Vec::new();
    for k in (0..tree.len()).filter(|&k| !is_below[k]) {
        let after = tree.children(k).iter().map(|&c| c as usize).filter(|&c| !is_below[c]);
        let wave = after.map(|c| wave_of[c] + 1).max().unwrap_or(0);
        wave_of[k] = wave;
        if wave == waves.len() {
            waves.push(Vec::new());
        }
        waves[wave].push(k);
    }
    Ok(waves)
}

/// The fronts below and with `top`, by one thread.
fn subtree<W: Number>(
    tree: &Tree,
    source: &Source<'_, W>,
    top: usize,
    workspace: &mut Workspace<W>,
) -> Subtree<W> {
    let order = tree.below(top);
    let mut fronts = Vec::with_capacity(order.len());
    // What is passed on and not yet taken: of the next front the children are the last.
    let mut open: Vec<(usize, Vec<W>)> = Vec::new();
    let mut replaced = 0;
    for k in order {
        let children = open.split_off(open.len() - tree.children(k as usize).len());
        let passed = children.iter().map(|(child, passed)| (*child, &passed[..]));
        interrupt::check()?;
        let (front, rest, count): Done<W> = workspace.front(tree, source, k as usize, passed, false)?;
        fronts.push((k, front));
        open.push((k as usize, rest));
        replaced += count;
    }
    let rest = open.pop().map(|(_, rest)| rest).unwrap_or_default();
    Ok((fronts, rest, replaced))
}
