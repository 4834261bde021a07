//! Allowed imports between crates, checked against the manifests.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Our crates that each of our crates may depend on.
const ALLOWED: [(&str, &[&str]); 21] = [
    ("crates/engine", &[]),
    ("crates/formats", &["engine"]),
    ("crates/io", &["engine", "formats"]),
    ("crates/cpu", &["engine", "formats"]),
    ("crates/direct", &["engine", "formats"]),
    ("kernels-opencl", &[]),
    ("kernels-cuda", &[]),
    ("crates/gpu", &["engine", "formats", "kernels-opencl"]),
    ("crates/drivers", &[]),
    ("crates/opencl", &["drivers", "engine", "formats", "gpu", "kernels-opencl"]),
    // Some of its kernels are the text of the others.
    ("crates/cuda", &["drivers", "engine", "formats", "gpu", "kernels-cuda", "kernels-opencl"]),
    ("crates/solvers", &["engine", "formats", "direct"]),
    ("crates/eigen", &["engine", "formats", "direct", "solvers"]),
    (
        "crates/lacuna",
        &["engine", "formats", "io", "gpu", "cpu", "opencl", "cuda", "ranks", "mpi", "solvers", "eigen"],
    ),
    ("crates/ranks", &["engine", "formats"]),
    ("crates/mpi", &["engine", "ranks"]),
    ("crates/measure", &["lacuna"]),
    ("crates/cli", &["lacuna", "measure"]),
    ("crates/bench", &["lacuna", "measure"]),
    ("crates/capi", &["lacuna"]),
    ("crates/python", &["lacuna"]),
];

/// Our crates in each dependency table of a manifest.
fn dependencies(manifest: &str) -> BTreeMap<String, Vec<String>> {
    let mut tables = BTreeMap::<String, Vec<String>>::new();
    let mut table = String::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            // `[dependencies.lacuna-engine]` is both a table and a name.
            let (head, name) = header.rsplit_once('.').unwrap_or((header, ""));
            let names_one = name.starts_with("lacuna") && head.ends_with("dependencies");
            table = if names_one { head.into() } else { header.into() };
            if names_one {
                tables.entry(table.clone()).or_default().push(name.into());
            }
        } else if line.starts_with("lacuna") && table.ends_with("dependencies") {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            tables.entry(table.clone()).or_default().push(name.into());
        }
    }
    tables
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What is in a folder, which must exist.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries.map(|entry| entry.unwrap_or_else(|e| panic!("{}: {e}", folder.display())).path()).collect()
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// Every source file of a crate with its text; fails if there is none.
fn sources(name: &str) -> Vec<(PathBuf, String)> {
    let (mut folders, mut files) = (vec![root().join("crates").join(name).join("src")], Vec::new());
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push((path.clone(), read(&path)));
            }
        }
    }
    assert!(!files.is_empty(), "the crate `{name}` has no sources");
    files
}

/// Fails if a source of the crate contains one of the words, but for examples.
fn names_none_of(name: &str, words: &[&str]) {
    for (path, text) in sources(name) {
        let is_code = |line: &&str| !line.trim_start().starts_with("///");
        let code = text.lines().filter(is_code).collect::<Vec<_>>().join("\n");
        for word in words {
            assert!(!code.contains(word), "{} names `{word}`", path.display());
        }
    }
}

#[test]
fn crates_import_only_what_they_may() {
    for (folder, allowed) in ALLOWED {
        for (table, imports) in dependencies(&read(&root().join(folder).join("Cargo.toml"))) {
            if table.ends_with("dev-dependencies") && folder != "crates/engine" {
                continue; // tests may use any crate, but the source may not
            }
            for import in imports {
                let import = import.strip_prefix("lacuna-").unwrap_or(&import);
                let own = table.ends_with("dev-dependencies") && import == "engine";
                let may = allowed.contains(&import) || own;
                assert!(may, "`{folder}` imports `{import}` in [{table}]; it may import {allowed:?}");
            }
        }
    }
}

/// A new crate is not allowed to import anything before it is listed.
#[test]
fn every_crate_is_listed() {
    let listed = ALLOWED.iter().filter_map(|(folder, _)| folder.strip_prefix("crates/"));
    let found = entries(&root().join("crates"));
    let found = found.iter().filter_map(|path| path.file_name()?.to_str());
    assert_eq!(found.collect::<BTreeSet<_>>(), listed.collect::<BTreeSet<_>>());
}

/// Nor do their tests: what they share is in `measure`.
#[test]
fn nothing_imports_the_command_or_the_laboratory() {
    let tests = [".", "tests", "tests/fuzz", "tests/model"];
    for folder in ALLOWED.iter().map(|(folder, _)| *folder).chain(tests) {
        for (table, imports) in dependencies(&read(&root().join(folder).join("Cargo.toml"))) {
            for name in ["lacuna-cli", "lacuna-bench"] {
                assert!(
                    !imports.iter().any(|import| import == name),
                    "`{folder}` imports {name} in [{table}]"
                );
            }
        }
    }
}

#[test]
fn a_solver_names_no_backend_and_a_backend_no_solver() {
    const BACKENDS: [&str; 3] = ["lacuna_cpu", "lacuna_opencl", "lacuna_cuda"];
    names_none_of("solvers", &["Reference::"]);
    for name in ["engine", "formats", "solvers", "gpu", "ranks"] {
        names_none_of(name, &BACKENDS);
    }
    for name in ["engine", "formats", "cpu", "gpu", "opencl", "cuda", "ranks"] {
        names_none_of(name, &["lacuna_solvers"]);
    }
}

/// Memory is handled below: formats, engine and backends. The C interface alone takes pointers.
#[test]
fn nothing_from_solvers_upwards_has_unsafe_code() {
    // But where other languages hand in addresses: the interfaces for C and Python.
    for name in ["solvers", "eigen", "ranks", "lacuna", "measure", "cli", "bench"] {
        names_none_of(name, &["unsafe"]);
    }
}

/// Functions whose last bit depends on the platform: set-ups take those of `libm`, and roots.
#[test]
fn engine_formats_and_solvers_call_no_function_of_the_platform() {
    for name in ["engine", "formats", "solvers", "eigen", "ranks"] {
        for (path, text) in sources(name) {
            let (text, _tests) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
            for word in
                [".hypot(", ".ln()", ".log2()", ".log10()", ".powf(", ".exp()", ".sin()", ".cos()", ".atan2("]
            {
                assert!(!text.contains(word), "{} calls `{word}`", path.display());
            }
        }
    }
}

/// A renamed folder must not turn these tests into ones that see nothing.
#[test]
fn a_folder_that_is_not_there_fails() {
    assert!(std::panic::catch_unwind(|| names_none_of("core", &["lacuna_solvers"])).is_err());
}

#[test]
fn manifests_are_read_as_written() {
    let text = "[dependencies]\nlacuna-engine.workspace = true\nrayon = \"1\"\n\n[dependencies.lacuna-cpu]\npath = \"x\"\n\
                [target.'cfg(unix)'.dependencies]\nlacuna-cuda = { workspace = true }\n[dev-dependencies]\nlacuna = \"0\"\n";
    let found = dependencies(text);
    assert_eq!(found["dependencies"], ["lacuna-engine", "lacuna-cpu"]);
    assert_eq!(found["target.'cfg(unix)'.dependencies"], ["lacuna-cuda"]);
    assert_eq!(found["dev-dependencies"], ["lacuna"]);
}
