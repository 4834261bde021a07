//! Allowed imports between crates, checked against the manifests.
use std::collections::BTreeMap;
use std::path::Path;

/// Our crates that each of our crates may depend on.
const ALLOWED: [(&str, &[&str]); 12] = [
    ("crates/engine", &[]),
    ("crates/formats", &["engine"]),
    ("crates/cpu", &["engine", "formats"]),
    ("kernels-opencl", &[]),
    ("kernels-cuda", &[]),
    ("crates/gpu", &["engine", "formats", "kernels-opencl"]),
    ("crates/opencl", &["engine", "formats", "gpu", "kernels-opencl"]),
    ("crates/cuda", &["engine", "formats", "gpu", "kernels-cuda"]),
    ("crates/solvers", &["engine", "formats"]),
    ("crates/lacuna", &["engine", "formats", "gpu", "cpu", "opencl", "cuda", "solvers"]),
    ("crates/cli", &["lacuna"]),
    ("crates/bench", &["lacuna", "cli"]),
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
            table = if name.starts_with("lacuna") { head.into() } else { header.into() };
            if name.starts_with("lacuna") {
                tables.entry(table.clone()).or_default().push(name.into());
            }
        } else if line.starts_with("lacuna") && table.ends_with("dependencies") {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            tables.entry(table.clone()).or_default().push(name.into());
        }
    }
    tables
}

#[test]
fn crates_import_only_what_they_may() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (folder, allowed) in ALLOWED {
        let manifest = root.join(folder).join("Cargo.toml");
        let manifest = std::fs::read_to_string(&manifest).unwrap_or_else(|e| panic!("{manifest:?}: {e}"));
        for (table, imports) in dependencies(&manifest) {
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

#[test]
fn a_solver_names_no_backend_and_a_backend_no_solver() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    for (name, forbidden) in [
        ("solvers", &["lacuna_cpu", "lacuna_opencl", "lacuna_cuda", "Reference::"][..]),
        ("formats", &["lacuna_cpu", "lacuna_opencl", "lacuna_cuda", "lacuna_solvers"]),
        ("cpu", &["lacuna_solvers"]),
        ("gpu", &["lacuna_cpu", "lacuna_opencl", "lacuna_cuda", "lacuna_solvers"]),
        ("opencl", &["lacuna_solvers"]),
        ("cuda", &["lacuna_solvers"]),
    ] {
        let mut folders = vec![crates.join(name).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                for word in forbidden {
                    assert!(!text.contains(word), "{} names {word}", path.display());
                }
            }
        }
    }
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
