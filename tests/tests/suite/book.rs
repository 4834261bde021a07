//! The documents: every link leads somewhere, every program in them is run by a test, and no page of the guide is long.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Lines of a page of the guide at the most.
const LONGEST: usize = 250;

/// Languages of fenced blocks, the pages that may have them, and what runs them there: a file, and how it names the page.
/// `rust` and `toml` are checked below; `text` and `console` are for what is not run.
const RUN: [(&str, &str, &str, &str); 6] = [
    ("rust,ignore", "docs/guide/backends.md", "tests/tests/suite/guide.rs", "docs/guide/backends.md"),
    ("sh", "docs/guide/", "crates/cli/tests/command/guide.rs", "docs/guide"),
    ("c", "docs/guide/c.md", "crates/capi/examples/run.sh", "docs/guide/c.md"),
    ("fortran", "docs/guide/c.md", "crates/capi/examples/run.sh", "docs/guide/c.md"),
    ("python", "docs/guide/python.md", "crates/python/tests/test_docs.py", "python.md"),
    ("rust", "docs/guide/interop.md", "crates/formats/src/lib.rs", "docs/guide/interop.md"),
];

/// Documents by their path from the root of the repository.
struct Documents {
    pages: BTreeMap<String, String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// Every file below a folder whose name ends so.
fn below(folder: &str, end: &str, files: &mut Vec<String>) {
    let entries = std::fs::read_dir(root().join(folder)).unwrap_or_else(|e| panic!("{folder}: {e}"));
    for entry in entries {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            below(&path, end, files);
        } else if path.ends_with(end) {
            files.push(path);
        }
    }
}

impl Documents {
    /// Those of the repository.
    fn all() -> Self {
        let mut pages = vec!["README.md".into(), "CONTRIBUTING.md".into(), "CHANGELOG.md".into()];
        below("docs", ".md", &mut pages);
        below(".github", ".md", &mut pages);
        let others = ["crates/bench/README.md", "crates/python/README.md", "tests/fuzz/README.md"];
        pages.extend(others.map(String::from));
        let pages: BTreeMap<_, _> = pages.into_iter().map(|page| (page.clone(), read(&page))).collect();
        assert!(pages.len() > 40, "{}", pages.len());
        Documents { pages }
    }

    /// What is wrong with the links of a page.
    fn complaints_about_links(&self, page: &str) -> Vec<String> {
        let mut complaints = Vec::new();
        for (text, target) in links(&self.pages[page]) {
            if ["https://", "http://", "mailto:"].iter().any(|start| target.starts_with(start)) {
                continue;
            }
            let (file, anchor) = target.split_once('#').map_or((target, None), |(f, a)| (f, Some(a)));
            let to = if file.is_empty() { page.to_string() } else { resolved(page, file) };
            if !root().join(&to).exists() && !self.pages.contains_key(&to) {
                complaints.push(format!("{page}: `{target}` is not there"));
                continue;
            }
            if let Some(anchor) = anchor {
                let known = self.pages.get(&to).map(|text| anchors(text)).unwrap_or_default();
                if !known.contains(anchor) {
                    complaints.push(format!("{page}: `{target}` has no heading of that name"));
                }
            }
            // The book has no page for what lies outside it: there the text alone must say which file it is.
            if page.starts_with("docs/") && !to.starts_with("docs/") && !text.contains(&to) {
                complaints.push(format!("{page}: `{target}` leaves the book; its text must name `{to}`"));
            }
        }
        complaints
    }

    /// The languages of blocks of a page that no test runs.
    fn complaints_about_blocks(&self, page: &str, run_as_rust: &BTreeSet<String>) -> Vec<String> {
        let runs = |language: &str| match language {
            "text" | "console" => true,
            "toml" => page == "README.md" || page.starts_with("docs/"), // see `features_are_there`
            "rust" if run_as_rust.contains(page) => true,
            _ => RUN.iter().any(|(run, pages, ..)| *run == language && page.starts_with(pages)),
        };
        let unknown = blocks(&self.pages[page]).into_iter().filter(|(language, _)| !runs(language));
        unknown
            .map(|(language, text)| {
                let line = text.lines().next().unwrap_or_default();
                format!("{page}: no test runs the block of `{language}` that begins with `{line}`")
            })
            .collect()
    }
}

/// A path from the root, for a link on a page.
fn resolved(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.push(name.to_str().unwrap()),
            _ => {}
        }
    }
    parts.join("/")
}

/// The fenced blocks of a page: language and text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find("```") {
        let begins_line = at == 0 || rest[..at].ends_with('\n');
        rest = &rest[at + 3..];
        if begins_line && let Some((language, after)) = rest.split_once('\n') {
            let end = after.find("\n```").map_or(after.len(), |end| end + 1);
            found.push((language, &after[..end]));
            rest = after[end..].strip_prefix("```").unwrap_or("");
        }
    }
    found
}

/// A page without its fenced blocks and, in what remains, without code.
fn prose(page: &str) -> String {
    let mut is_block = false;
    let lines = page.lines().filter(|line| {
        let fence = line.starts_with("```");
        is_block ^= fence;
        !fence && !is_block
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The links of a page: text and target.
fn links(page: &str) -> Vec<(String, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        if fenced {
            continue;
        }
        let mut from = 0;
        while let Some(at) = line[from..].find("](").map(|at| from + at) {
            let Some(end) = line[at..].find(')').map(|end| at + end) else { break };
            let is_code = line[..at].matches('`').count() % 2 == 1;
            if !is_code {
                let text = line[..at].rfind('[').map_or("", |begin| &line[begin + 1..at]);
                found.push((text.to_string(), &line[at + 2..end]));
            }
            from = end;
        }
    }
    found
}

/// The anchors of the headings of a page, as mdBook and the usual hosts make them.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in prose(page).lines() {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String =
            kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect();
        if !found.insert(anchor.clone()) {
            let again = (1..).map(|k| format!("{anchor}-{k}")).find(|name| !found.contains(name));
            found.extend(again);
        }
    }
    found
}

/// The pages whose Rust is run by tests of documentation: those of the facade list them.
fn run_as_rust() -> BTreeSet<String> {
    let facade = read("crates/lacuna/src/lib.rs");
    let (_, list) = facade.split_once("pages! {\n").unwrap();
    let (list, _) = list.split_once('}').unwrap();
    let pages: BTreeSet<_> = list.split('"').skip(1).step_by(2).map(String::from).collect();
    assert!(pages.contains("README.md") && pages.len() > 5, "{pages:?}");
    pages
}

#[test]
fn links_lead_somewhere() {
    let all = Documents::all();
    let complaints: Vec<_> = all.pages.keys().flat_map(|page| all.complaints_about_links(page)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let links: usize = all.pages.values().map(|page| links(page).len()).sum();
    assert!(links > 200, "{links}");
}

#[test]
fn the_table_of_contents_has_each_page_once() {
    let summary = read("docs/SUMMARY.md");
    let mut listed: Vec<_> = links(&summary).into_iter().map(|(_, page)| format!("docs/{page}")).collect();
    let mut pages = Vec::new();
    below("docs", ".md", &mut pages);
    pages.retain(|page| page != "docs/SUMMARY.md");
    listed.sort();
    pages.sort();
    assert_eq!(listed, pages);
}

#[test]
fn blocks_of_a_language_are_run() {
    let (all, run_as_rust) = (Documents::all(), run_as_rust());
    let pages = || all.pages.keys().filter(|page| *page == "README.md" || page.starts_with("docs/"));
    let complaints: Vec<_> =
        pages().flat_map(|page| all.complaints_about_blocks(page, &run_as_rust)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    for (language, pages, runner, name) in RUN {
        let mentions =
            read(runner).contains(name) || read(runner).contains(&name.replace("docs/guide/", "guide/"));
        assert!(mentions, "{runner} does not run the blocks of `{language}` of {pages}");
    }
    let with_rust =
        |page: &&String| blocks(&all.pages[*page]).iter().any(|(language, _)| *language == "rust");
    for page in &run_as_rust {
        assert!(
            pages().filter(with_rust).any(|with| with == page) || page == "docs/guide/README.md",
            "{page} has no Rust to run"
        );
    }
}

#[test]
fn features_named_in_a_manifest_are_there() {
    let manifest = read("crates/lacuna/Cargo.toml");
    let (_, features) = manifest.split_once("\n[features]\n").unwrap();
    let (features, _) = features.split_once("\n[").unwrap();
    let known: BTreeSet<_> =
        features.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect();
    let mut seen = 0;
    for (page, text) in &Documents::all().pages {
        for (_, block) in blocks(text).into_iter().filter(|(language, _)| *language == "toml") {
            for list in block.split("features = [").skip(1).filter_map(|rest| rest.split(']').next()) {
                for name in list.split('"').skip(1).step_by(2) {
                    assert!(known.contains(name), "{page}: the crate `lacuna` has no feature `{name}`");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 2, "{seen}");
}

#[test]
fn no_page_of_the_guide_is_long() {
    for (page, text) in Documents::all().pages {
        let lines = text.lines().count();
        assert!(!page.starts_with("docs/guide/") || lines <= LONGEST, "{page} has {lines} lines");
    }
}

/// The words of a text that begin with `LACUNA_` after a character.
fn variables(text: &str, after: char) -> BTreeSet<String> {
    let ends = |c: char| !(c.is_ascii_uppercase() || c == '_');
    let words = text.split(after).filter(|word| word.starts_with("LACUNA_"));
    words.map(|word| word.split(ends).next().unwrap_or_default().to_string()).collect()
}

/// What the libraries and the command read is in the table of environment variables, and nothing else.
#[test]
fn environment_variables_are_documented() {
    let mut sources = vec!["kernels-cuda/toolkit.sh".to_string(), "crates/cuda/build.rs".into()];
    for crate_folder in std::fs::read_dir(root().join("crates")).unwrap() {
        let name = crate_folder.unwrap().file_name().into_string().unwrap();
        below(&format!("crates/{name}/src"), ".rs", &mut sources);
    }
    let mut read_there: BTreeSet<String> =
        sources.iter().flat_map(|file| variables(&read(file), '"')).collect();
    read_there.extend(variables(&read("kernels-cuda/toolkit.sh"), '{'));
    let page = read("docs/guide/devices.md");
    let (_, table) = page.split_once("## Environment variables").unwrap();
    let said = variables(table, '`');
    // The compiler's name at build time, and what tests must not skip.
    let others = ["LACUNA_RUSTC", "LACUNA_REQUIRE"];
    let missing = read_there.difference(&said).filter(|name| !others.contains(&name.as_str()));
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "docs/guide/devices.md has no line for {missing:?}");
    let unknown: Vec<_> = said.difference(&read_there).collect();
    assert!(unknown.is_empty() && said.len() > 8, "nothing reads {unknown:?} of docs/guide/devices.md");
}

/// The picture of the architecture is the one that its script draws from the manifests and the sources.
#[test]
fn the_picture_of_the_architecture_is_of_this_code() {
    let script = root().join("docs/theory/architecture.py");
    match std::process::Command::new("python3").arg(&script).arg("--check").current_dir(root()).output() {
        Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr)),
        Err(error) => {
            let required = std::env::var("LACUNA_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|name| name == "python3"), "python3: {error}");
            eprintln!(
                "*** SKIPPED: the picture of the architecture, since python3 is not there: {error} ***"
            );
        }
    }
}

/// These tests notice what they are there for.
#[test]
fn what_is_wrong_is_noticed() {
    let page = "docs/guide/a.md";
    let said = |text: &str| -> Vec<String> {
        let pages =
            [(page.to_string(), text.to_string()), ("docs/b.md".into(), "# Some `code`, and more\n".into())];
        let documents = Documents { pages: pages.into() };
        let mut said = documents.complaints_about_links(page);
        said.extend(documents.complaints_about_blocks(page, &BTreeSet::new()));
        said
    };
    let right = "# A\n[b](../b.md#some-code-and-more), [a](#a), [out](https://x.y), `[no](link)`, \
                 [`README.md`](../../README.md)\n```text\n[no](link)\n```\n```sh\nlacuna devices\n```\n";
    assert_eq!(said(right), [""; 0]);
    for (wrong, about) in [
        ("[b](b.md)", "is not there"),
        ("[b](../b.md#some-code)", "no heading"),
        ("![a](a.png)", "is not there"),
        ("[the readme](../../README.md)", "leaves the book"),
        ("```rust\nlet a = 1;\n```\n", "no test runs the block of `rust`"),
        ("a\n```\nplain\n```\n", "no test runs the block of ``"),
        ("```text\nb\n```\n```python\nx = 1\n```\n", "no test runs the block of `python`"),
    ] {
        let said = said(wrong);
        assert!(said.len() == 1 && said[0].contains(about), "{wrong}: {said:?}");
    }
}
