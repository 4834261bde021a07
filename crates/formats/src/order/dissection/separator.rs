//! A few vertices without which a graph falls into two parts of about equal weight.
use super::level::Level;
use std::collections::BinaryHeap;

/// Where a vertex is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    First,
    Second,
    Between,
}

/// Vertices of the graph that is divided at once.
const COARSEST: usize = 100;
/// Starts from which one side of it is grown.
const STARTS: usize = 8;
/// A contraction that leaves more than this part of the vertices is the last.
const STALLED: f64 = 0.95;
/// The part of the weight that one side may have.
const SIDE: f64 = 0.6;
/// Moves without gain after which others are given up, for each vertex between the sides, and at most.
const PATIENCE: [usize; 2] = [1, 100];
/// Rounds of moves at most.
const ROUNDS: usize = 8;

/// Divides a graph. One side is empty where nothing divides it.
pub(super) fn separator(graph: &Level) -> Vec<Side> {
    let total: u64 = graph.weight.iter().map(|w| u64::from(*w)).sum();
    let most = u32::try_from(3 * total / (2 * COARSEST as u64)).unwrap_or(u32::MAX).max(2);
    let mut levels: Vec<(Level, Vec<u32>)> = Vec::new();
    loop {
        let last = levels.last().map_or(graph, |(level, _)| level);
        if last.len() <= COARSEST {
            break;
        }
        let next = last.contracted(most);
        let stalled = next.0.len() as f64 > STALLED * last.len() as f64;
        if stalled {
            break;
        }
        levels.push(next);
    }
    let coarsest = levels.last().map_or(graph, |(level, _)| level);
    let mut side = divided(coarsest, total);
    while let Some((_, became)) = levels.pop() {
        let finer = levels.last().map_or(graph, |(level, _)| level);
        let of_pair = became.iter().map(|&i| side[i as usize]).collect();
        let mut division = Division::new(finer, of_pair, total);
        division.improve();
        side = division.side;
    }
    side
}

/// The best of several divisions.
fn divided(graph: &Level, total: u64) -> Vec<Side> {
    let n = graph.len();
    let mut best: Option<Division<'_>> = None;
    let starts = if n > 10 * COARSEST { 2 } else { STARTS };
    for k in 0..starts.min(n) {
        let mut division = Division::new(graph, vec![Side::Second; n], total);
        division.grow((k * n / starts) as u32);
        division.improve();
        if best.as_ref().is_none_or(|best| division.is_better_than(best.cost())) {
            best = Some(division);
        }
    }
    best.map_or_else(Vec::new, |best| best.side)
}

/// A division of a graph that moves improve.
struct Division<'a> {
    graph: &'a Level,
    side: Vec<Side>,
    /// The weights of the sides and of what is between them.
    weight: [u64; 3],
    total: u64,
    /// For vertices between the sides, the weights of their neighbours on each side.
    beside: Vec<[u64; 2]>,
    moved: Vec<bool>,
    /// Moves to each side: gain, vertex. Those whose gain has changed are passed over.
    moves: [BinaryHeap<(i64, u32)>; 2],
}

const SIDES: [Side; 2] = [Side::First, Side::Second];

impl<'a> Division<'a> {
    fn new(graph: &'a Level, side: Vec<Side>, total: u64) -> Self {
        let mut weight = [0; 3];
        side.iter().zip(&graph.weight).for_each(|(side, w)| weight[*side as usize] += u64::from(*w));
        let n = graph.len();
        Division {
            graph,
            side,
            weight,
            total,
            beside: vec![[0; 2]; n],
            moved: vec![false; n],
            moves: Default::default(),
        }
    }

    /// The weight between the sides, and the difference of their weights.
    fn cost(&self) -> (u64, u64) {
        (self.weight[2], self.weight[0].abs_diff(self.weight[1]))
    }

    fn is_better_than(&self, cost: (u64, u64)) -> bool {
        let fits =
            |between: u64, difference: u64| (self.total - between + difference) as f64 / 2.0 <= self.most();
        let own = self.cost();
        match (fits(own.0, own.1), fits(cost.0, cost.1)) {
            (true, false) => true,
            (false, true) => false,
            (true, true) => own < cost,
            (false, false) => (own.1, own.0) < (cost.1, cost.0),
        }
    }

    fn most(&self) -> f64 {
        SIDE * self.total as f64
    }

    fn weight_of(&self, i: u32) -> u64 {
        u64::from(self.graph.weight[i as usize])
    }

    fn gain(&self, i: u32, to: usize) -> i64 {
        self.weight_of(i) as i64 - self.beside[i as usize][1 - to] as i64
    }

    /// Counts the neighbours of a vertex that is now between the sides.
    fn count(&mut self, i: u32) {
        let mut beside = [0; 2];
        for &j in self.graph.neighbours(i) {
            if self.side[j as usize] != Side::Between {
                beside[self.side[j as usize] as usize] += self.weight_of(j);
            }
        }
        self.beside[i as usize] = beside;
    }

    fn offer(&mut self, i: u32, to: usize) {
        if !self.moved[i as usize] {
            self.moves[to].push((self.gain(i, to), i));
        }
    }

    /// The best move to a side, which remains in its place.
    fn best(&mut self, to: usize) -> Option<(i64, u32)> {
        while let Some(&(gain, i)) = self.moves[to].peek() {
            let holds = self.side[i as usize] == Side::Between && !self.moved[i as usize];
            if holds && gain == self.gain(i, to) {
                return Some((gain, i));
            }
            self.moves[to].pop();
        }
        None
    }

    /// Moves a vertex from between to a side; its neighbours on the other side come between, and are added to `pulled`.
    fn shift(&mut self, i: u32, to: usize, pulled: &mut Vec<u32>) {
        let w = self.weight_of(i);
        self.side[i as usize] = SIDES[to];
        self.moved[i as usize] = true;
        self.weight[2] -= w;
        self.weight[to] += w;
        let graph = self.graph;
        for &j in graph.neighbours(i) {
            match self.side[j as usize] {
                Side::Between => {
                    self.beside[j as usize][to] += w;
                    self.offer(j, 1 - to);
                }
                side if side == SIDES[to] => {}
                _ => {
                    let w = self.weight_of(j);
                    self.side[j as usize] = Side::Between;
                    self.weight[1 - to] -= w;
                    self.weight[2] += w;
                    self.count(j);
                    pulled.push(j);
                    for &other in graph.neighbours(j) {
                        if self.side[other as usize] == Side::Between {
                            self.beside[other as usize][1 - to] -= w;
                            self.offer(other, to);
                        }
                    }
                    (0..2).for_each(|to| self.offer(j, to));
                }
            }
        }
    }

    /// Grows the first side from a vertex until it has half of the weight; everything is on the second one before.
    fn grow(&mut self, start: u32) {
        let n = self.graph.len() as u32;
        let (mut pulled, mut fresh) = (Vec::new(), 0..n);
        let mut next = Some(start);
        while 2 * self.weight[0] < self.total - self.weight[2] {
            // Where the component ends, another begins.
            let found = next.take().or_else(|| {
                self.best(0)
                    .map(|(_, i)| i)
                    .or_else(|| fresh.find(|&i| self.side[i as usize] == Side::Second))
            });
            let Some(i) = found else { break };
            if self.side[i as usize] == Side::Second {
                let w = self.weight_of(i);
                self.side[i as usize] = Side::Between;
                self.weight[1] -= w;
                self.weight[2] += w;
            }
            self.shift(i, 0, &mut pulled);
        }
    }

    /// Moves vertices as long as the weight between the sides falls.
    fn improve(&mut self) {
        for _ in 0..ROUNDS {
            let before = self.cost();
            self.round();
            if !self.is_better_than(before) {
                break;
            }
        }
    }

    /// Moves each vertex once at most, the best first, even where it is a loss; goes back to the best division met.
    fn round(&mut self) {
        self.moved.fill(false);
        self.moves.iter_mut().for_each(BinaryHeap::clear);
        let between: Vec<u32> =
            (0..self.graph.len() as u32).filter(|&i| self.side[i as usize] == Side::Between).collect();
        for &i in &between {
            self.count(i);
            (0..2).for_each(|to| self.offer(i, to));
        }
        let patience = (PATIENCE[0] * between.len()).clamp(15, PATIENCE[1]);
        // Moves with the side and where the list of those that were pulled begins.
        let (mut done, mut pulled): (Vec<(u32, usize, usize)>, Vec<u32>) = (Vec::new(), Vec::new());
        let (mut best, mut kept) = (self.cost(), 0);
        while done.len() - kept < patience {
            let Some((i, to)) = self.choose() else { break };
            done.push((i, to, pulled.len()));
            self.shift(i, to, &mut pulled);
            if self.is_better_than(best) {
                (best, kept) = (self.cost(), done.len());
            }
        }
        for (i, to, first) in done.drain(kept..).rev() {
            for j in pulled.drain(first..) {
                let w = u64::from(self.graph.weight[j as usize]);
                self.side[j as usize] = SIDES[1 - to];
                self.weight[2] -= w;
                self.weight[1 - to] += w;
            }
            let w = self.weight_of(i);
            self.side[i as usize] = Side::Between;
            self.weight[to] -= w;
            self.weight[2] += w;
        }
    }

    /// The next move: that of more gain, among equals that to the lighter side, unless that side gets too heavy.
    fn choose(&mut self) -> Option<(u32, usize)> {
        let lighter = usize::from(self.weight[1] < self.weight[0]);
        let mut chosen: Option<(i64, u32, usize)> = None;
        for to in [lighter, 1 - lighter] {
            let Some((gain, i)) = self.best(to) else { continue };
            let fits = to == lighter || (self.weight[to] + self.weight_of(i)) as f64 <= self.most();
            if fits && chosen.is_none_or(|(best, ..)| gain > best) {
                chosen = Some((gain, i, to));
            }
        }
        chosen.map(|(_, i, to)| (i, to))
    }
}
