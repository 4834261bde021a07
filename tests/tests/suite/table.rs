//! The rows of the table of equal bits.
use lacuna_solvers::{METHODS, PRECONDITIONERS};
use lacuna_tests::table::{cover, rows};

#[test]
fn the_cover_has_everything_and_is_small() {
    let formats: Vec<_> = lacuna_formats::FORMATS.iter().map(|format| format.name).collect();
    let all = rows(&formats);
    let some = cover(&all);
    for info in METHODS {
        assert!(some.iter().any(|row| row.0.name == info.name), "{}", info.name);
    }
    for info in PRECONDITIONERS.iter() {
        assert!(some.iter().any(|row| row.1.name == info.name), "{}", info.name);
    }
    for format in formats {
        assert!(some.iter().any(|row| row.2 == format), "{format}");
    }
    assert!(8 * some.len() < all.len(), "{} of {}", some.len(), all.len());
}
