//! Letters as strokes on a grid. Two digits are a point: x from 0 to 4; y from 0 at the top to 8 at the
//! bottom, with the baseline at 6. Spaces join points, commas separate strokes.
use super::Point;

/// Length of a step of the grid.
const STEP: f64 = 1.25;

#[rustfmt::skip]
const LETTERS: [(char, &str); 41] = [
    ('a', "42 46,43 32 12 03 05 16 36 45"), ('b', "00 06,03 12 32 43 45 36 16 05"),
    ('c', "43 32 12 03 05 16 36 45"), ('d', "40 46,43 32 12 03 05 16 36 45"),
    ('e', "04 44 43 32 12 03 05 16 36 45"), ('f', "30 20 11 16,02 32"),
    ('g', "42 47 38 18 07,43 32 12 03 05 16 36 45"), ('h', "00 06,03 12 32 43 46"),
    ('i', "22 26,20 20"), ('j', "32 37 28 18,30 30"), ('k', "00 06,42 04 46"), ('l', "20 26"),
    ('m', "02 06,03 12 23 26,23 32 43 46"), ('n', "02 06,03 12 32 43 46"),
    ('o', "12 32 43 45 36 16 05 03 12"), ('p', "02 08,03 12 32 43 45 36 16 05"),
    ('q', "42 48,43 32 12 03 05 16 36 45"), ('r', "12 16,14 22 32 43"),
    ('s', "43 32 12 03 14 34 45 36 16 05"), ('t', "20 25 36 46,12 42"), ('u', "02 05 16 36 45,42 46"),
    ('v', "02 26 42"), ('w', "02 16 24 36 42"), ('x', "02 46,42 06"), ('y', "02 26,42 18"), ('z', "02 42 06 46"),
    ('0', "10 30 41 45 36 16 05 01 10"), ('1', "11 20 26"), ('2', "01 10 30 41 42 06 46"),
    ('3', "01 10 30 41 42 33 44 45 36 16 05,13 33"), ('4', "30 04 44,30 36"),
    ('5', "40 00 03 12 32 43 45 36 16 05"), ('6', "30 10 01 05 16 36 45 43 32 12 03"), ('7', "00 40 16"),
    ('8', "10 30 41 42 33 44 45 36 16 05 04 13 02 01 10,13 33"), ('9', "43 34 14 03 01 10 30 41 45 36 16"),
    ('-', "13 33"), ('=', "02 42,04 44"), ('.', "26 26"), ('/', "40 06"), ('%', "40 06,10 11 01 10,35 45 36 35"),
];

pub(super) fn width(words: &str) -> f64 {
    (words.chars().count() as f64 * 6.0 - 2.0) * STEP
}

/// The strokes of `words` from `at`; unknown letters are spaces.
pub(super) fn strokes(at: Point, words: &str) -> Vec<Vec<Point>> {
    let mut strokes = Vec::new();
    for (k, letter) in words.chars().enumerate() {
        let drawn = LETTERS.iter().find(|(known, _)| *known == letter).map_or("", |(_, drawn)| *drawn);
        let left = at[0] + k as f64 * 6.0 * STEP;
        for stroke in drawn.split(',').filter(|stroke| !stroke.is_empty()) {
            let point = |xy: &str| {
                let [x, y] = [0, 1].map(|k| f64::from(xy.as_bytes()[k] - b'0'));
                [left + x * STEP, at[1] + (y - 6.0) * STEP]
            };
            strokes.push(stroke.split(' ').map(point).collect());
        }
    }
    strokes
}
