//! How the levels of a triangular solve are launched.
/// The part of a solve that one launch computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The places of one level, by any number of work-groups.
    Level(u32, u32),
    /// Consecutive levels, by one work-group with a barrier between levels.
    Levels(u32, u32),
}

/// The launches of a solve over these [`levels`](lacuna_engine::Triangle::levels): one with more than `narrow` places gets
/// its own launch; consecutive smaller ones share one.
pub fn solve_stages(levels: &[u32], narrow: u32) -> Vec<Stage> {
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
    use super::{Stage, solve_stages};

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
        assert_eq!(solve_stages(&levels, 4), want);
    }
}
