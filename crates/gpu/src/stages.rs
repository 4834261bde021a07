//! How a triangular solve is launched.
use lacuna_engine::{Format, Scalar};
use lacuna_formats::Triangular;
use std::any::Any;

/// The part of a solve that one launch computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The places of one level, by any number of work-groups.
    Level(u32, u32),
    /// Consecutive levels, by one work-group with a barrier between levels.
    Levels(u32, u32),
    /// All levels, of so many: so many groups of rows that depend on each other alone, a warp for each.
    Groups(u32, u32),
}

/// The launches of a solve; none if the matrix is stored for no solves. With groups there is one. Otherwise a level with more than
/// `narrow` places gets its own launch, and consecutive smaller ones share one.
///
/// Reference of the groups: Wang, Klie, Parashar and Sudan 2009, doi:10.1007/978-3-642-01973-9_99.
pub fn solve_stages<T: Scalar>(a: &dyn Format<T>, narrow: u32) -> Option<Vec<Stage>> {
    let any: &dyn Any = a;
    match any.downcast_ref::<Triangular<T>>() {
        Some(own) if own.groups() > 0 => Some(vec![Stage::Groups(own.depth() as u32, own.groups() as u32)]),
        _ => a.triangle().map(|triangle| levels_of(triangle.levels, narrow)),
    }
}

fn levels_of(levels: &[u32], narrow: u32) -> Vec<Stage> {
    let mut stages = Vec::new();
    for (level, places) in (0..).zip(levels.windows(2)) {
        match stages.last_mut() {
            _ if places[1] - places[0] > narrow => stages.push(Stage::Level(places[0], places[1])),
            Some(Stage::Levels(_, end)) => *end = level + 1,
            _ => stages.push(Stage::Levels(level, level + 1)),
        }
    }
    stages
}

#[cfg(test)]
mod tests {
    use super::{Stage, levels_of};

    #[test]
    fn narrow_levels_share_a_launch() {
        let levels = [0, 1, 3, 13, 14, 30, 40];
        let want = [
            Stage::Levels(0, 2),
            Stage::Level(3, 13),
            Stage::Levels(3, 4),
            Stage::Level(14, 30),
            Stage::Level(30, 40),
        ];
        assert_eq!(levels_of(&levels, 4), want);
    }
}
