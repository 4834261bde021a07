//! How the levels of a triangular solve are launched.
use lacuna_engine::{Scalar, Triangle};

/// The part of a solve that one launch computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The places of one level, by any number of work-groups.
    Level(u32, u32),
    /// Consecutive levels, by one work-group with a barrier between levels.
    Levels(u32, u32),
}

/// The launches of a solve: a level with more than `narrow` places gets its own launch; consecutive smaller
/// ones share one.
pub fn solve_stages<T: Scalar>(triangle: &Triangle<'_, T>, narrow: usize) -> Vec<Stage> {
    let mut stages = Vec::new();
    for level in 0..triangle.depth() as u32 {
        let places = triangle.level(level as usize);
        match stages.last_mut() {
            _ if places.len() > narrow => stages.push(Stage::Level(places.start as u32, places.end as u32)),
            Some(Stage::Levels(_, end)) => *end = level + 1,
            _ => stages.push(Stage::Levels(level, level + 1)),
        }
    }
    stages
}

#[cfg(test)]
mod tests {
    use super::{Stage, solve_stages};
    use lacuna_engine::Triangle;

    #[test]
    fn narrow_levels_share_a_launch() {
        let levels = [0, 1, 3, 13, 14, 30, 40];
        let triangle = Triangle::<f64> { row_ptr: &[], columns: &[], values: &[], levels: &levels };
        let want = [
            Stage::Levels(0, 2),
            Stage::Level(3, 13),
            Stage::Levels(3, 4),
            Stage::Level(14, 30),
            Stage::Level(30, 40),
        ];
        assert_eq!(solve_stages(&triangle, 4), want);
    }
}
