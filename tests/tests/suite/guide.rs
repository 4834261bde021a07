//! What the guide quotes is what is there.
use std::path::Path;

#[test]
fn the_page_on_backends_quotes_the_file_it_walks_through() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read =
        |file: &str| std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    let (page, file) = (read("docs/guide/backends.md"), read("tests/outsider/src/lib.rs"));
    let quotes: Vec<_> =
        page.split("```rust,ignore\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(quotes.len() > 5);
    for quote in quotes {
        assert!(file.contains(quote), "not in the file:\n{quote}");
    }
}
