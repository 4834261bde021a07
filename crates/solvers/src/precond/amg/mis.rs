//! A maximal set of rows no two of which are within two steps of each other: MIS-2 (Bell, Dalton and Olson 2012,
//! doi:10.1137/110838844), with lists of those still at work (Kelley and Rajamanickam 2022, arXiv:2204.02934).
use super::strength::Graph;
use crate::random::mixed;
use lacuna_formats::parallel;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// In the set: above every priority.
const IN: u64 = u64::MAX;
/// Not in it: below every priority.
const OUT: u64 = 0;
/// Above [`OUT`] with any priority.
const UNDECIDED: u64 = 1 << 62;
/// Rows that a thread takes at a time.
const GRAIN: usize = 1 << 13;

/// Priorities that belong to the rows alone, different for all; rows without neighbours have none.
pub(super) fn priorities(graph: &Graph<'_>) -> Vec<u64> {
    parallel::collect(graph.len(), GRAIN, |i| if graph.is_isolated(i) { OUT } else { priority(i) })
}

fn priority(i: usize) -> u64 {
    UNDECIDED | (mixed(i as u64) >> 34) << 32 | i as u64
}

/// The rows of the set, increasing: what [`lacuna_engine::Backend::distance_two_set`] says. A maximum has no order, so that the
/// set depends on nothing but the graph and the priorities.
pub(super) fn distance_two_set(graph: &Graph<'_>, priorities: Vec<u64>) -> Vec<u32> {
    let n = graph.len();
    let key: Vec<_> = priorities.into_iter().map(AtomicU64::new).collect();
    let nearby = parallel::collect(n, GRAIN, |_| AtomicU64::new(OUT));
    let most = |of: &[AtomicU64], i: usize| {
        let own = of[i].load(Relaxed);
        graph.of(i).iter().fold(own, |most, &j| most.max(of[j as usize].load(Relaxed)))
    };
    // The rows next to none of the set, whose maximum may still change.
    let spread = |i: usize| {
        let m = most(&key, i);
        nearby[i].store(m, Relaxed);
        m != IN && m != OUT
    };
    let decide = |i: usize| {
        let own = key[i].load(Relaxed);
        let m = most(&nearby, i);
        let decided = if m == IN {
            OUT
        } else if m == own {
            IN
        } else {
            return true;
        };
        key[i].store(decided, Relaxed);
        false
    };
    let mut spreading = kept_of(n, spread);
    let mut undecided = kept_of(n, |i| key[i].load(Relaxed) != OUT && decide(i));
    while !undecided.is_empty() {
        spreading = kept(&spreading, spread);
        undecided = kept(&undecided, decide);
    }
    kept_of(n, |i| key[i].load(Relaxed) == IN)
}

/// Those of the first `n` rows for which `f` holds.
fn kept_of(n: usize, f: impl Fn(usize) -> bool + Sync) -> Vec<u32> {
    let part = |rows: Range<usize>| rows.filter(|i| f(*i)).map(|i| i as u32).collect::<Vec<_>>();
    parallel::concat(&parallel::map(parallel::ranges(n, GRAIN), part))
}

/// Those of some rows for which `f` holds.
fn kept(rows: &[u32], f: impl Fn(usize) -> bool + Sync) -> Vec<u32> {
    let part = |rows: &[u32]| rows.iter().copied().filter(|i| f(*i as usize)).collect::<Vec<_>>();
    parallel::concat(&parallel::map(rows.chunks(GRAIN), part))
}

#[cfg(test)]
mod tests {
    use super::{distance_two_set, priorities, priority};
    use crate::precond::amg::rows::RowCouplings;
    use crate::precond::amg::strength::strong;
    use lacuna_io::Spec;

    /// The rule read literally: rounds over all rows.
    #[test]
    fn it_is_the_set_of_plain_rounds_on_any_number_of_threads() {
        let a = Spec::parse("gen:poisson2d:61x47").unwrap().build::<f64>().unwrap();
        let n = a.rows();
        let (inf, out) = (u64::MAX, 0);
        let mut key: Vec<u64> = (0..n).map(priority).collect();
        let spread = |key: &[u64]| -> Vec<u64> {
            (0..n).map(|i| a.row_slices(i).0.iter().map(|&j| key[j as usize]).max().unwrap()).collect()
        };
        while key.iter().any(|k| *k != inf && *k != out) {
            let m = spread(&spread(&key));
            let undecided: Vec<usize> = (0..n).filter(|&i| key[i] != inf && key[i] != out).collect();
            undecided.into_iter().for_each(|i| {
                key[i] = if m[i] == inf {
                    out
                } else if m[i] == key[i] {
                    inf
                } else {
                    key[i]
                };
            });
        }
        let want: Vec<u32> = (0..n as u32).filter(|&i| key[i as usize] == inf).collect();
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let rows = RowCouplings::of(&a, None);
            assert!(rows.hermitian);
            let graph = strong(&a, &rows, 0.08).unwrap().1;
            assert_eq!(pool.install(|| distance_two_set(&graph, priorities(&graph))), want);
        }
    }
}
