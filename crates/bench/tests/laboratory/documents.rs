//! Tables in documents, made from results kept earlier.
use crate::{Bench, product, solve};
use lacuna::formats::FORMATS;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- table: ";

/// The project's own documents with tables of results.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = ["", "docs/performance", "docs/results"]
        .into_iter()
        .flat_map(|folder| root.join(folder).read_dir().unwrap());
    let markdown =
        files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "md"));
    markdown.filter(|path| std::fs::read_to_string(path).unwrap().contains(BEGIN)).collect()
}

#[test]
fn the_documents_say_what_was_kept() {
    let documents = documents();
    for name in ["../README.md", "performance/README.md"] {
        assert!(documents.iter().any(|path| path.ends_with(name)), "{name}");
    }
    let paths: Vec<_> = documents.iter().map(|path| path.to_str().unwrap()).collect();
    let ran = Bench::new().run(&format!("report --check --fill {}", paths.join(" ")));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn tables_are_filled_and_words_are_kept() {
    let bench = Bench::new();
    let matrix = "gen:poisson-p1:9";
    let of = |(format, us)| {
        solve(matrix, ["cg", "none", format, "30 iterations"], us) + &product(matrix, format, us)
    };
    bench.file("kept.jsonl", &[("csr", 2.0), ("dia-sym", 1.0)].map(of).concat());
    bench.file(
        "peers.jsonl",
        r#"{"kind":"peer","peer":"slow","threads":2,"method":"cg","matrix":"gen:poisson-p1:9","type":"f64","n":81,"fresh_us":1e9,"again_us":1e9}
{"kind":"peer","peer":"quick","threads":1,"method":"spmv","matrix":"gen:poisson-p1:9","type":"f64","n":81,"fresh_us":1e-9,"again_us":1e-9}"#,
    );
    let words = |table: &str, options: &str| format!("{BEGIN}{table} kept.jsonl peers.jsonl{options} -->");
    let end = "<!-- end of table -->";
    let kinds = ["beside", "backends", "formats", "all"];
    let blocks: String = kinds
        .iter()
        .map(|kind| format!("Before.\n\n{}\nold\n{end}\n\nAfter.\n", words(kind, " commit=abc")))
        .collect();
    bench.file("page.md", &blocks);
    assert!(bench.refused("report --check --fill page.md").contains("page.md, line 4: the table differs"));
    assert_eq!(bench.run("report --fill page.md").code, 0);
    let text = std::fs::read_to_string(bench.path("page.md")).unwrap();
    for kind in kinds {
        let table = text.split(&words(kind, " commit=abc")).nth(1).unwrap().split(end).next().unwrap();
        assert!(table.contains("`lacuna compare gen:poisson-p1:9"), "{kind}: {table}");
        assert!(table.contains("| poisson-p1:9 | 81 |"), "{kind}: {table}");
        let rows: Vec<_> = table.lines().filter(|line| line.starts_with('|')).collect();
        let columns = rows[0].matches('|').count();
        assert!(rows.iter().all(|row| row.matches('|').count() == columns), "{kind}: {table}");
    }
    assert_eq!(
        (text.matches("Before.").count(), text.matches("After.").count(), text.matches("\nold\n").count()),
        (4, 4, 0)
    );
    assert_eq!(text.matches(", commit abc, ").count(), 4, "{text}");
    assert!(text.contains("1 000 000 000 slow (2 threads) | 0.00 |"), "{text}");
    assert!(text.contains("- again: behind in 2 of 4 rows: poisson-p1:9 spmv "), "{text}");
    // Appears with the table of formats and with the full tables.
    let auto = "- what `auto` takes, cpu: at most 1.05 of csr's time for ";
    assert_eq!(text.matches(auto).count(), 2, "{text}");
    assert!(text.contains("| fastest, of copy | `auto`, of the fastest |"), "{text}");
    assert_eq!(bench.run("report --check --fill page.md").code, 0);

    for (words, expected) in [
        (
            words("tables", ""),
            "page.md, line 1: expected all, backends, beside, best, formats or passes, got `tables`",
        ),
        (words("beside", " colour=red"), "expected commit or one of backend,"),
        (words("beside", " method=gmres"), "there are no such results"),
        (format!("{BEGIN}beside nothing.jsonl -->"), "nothing.jsonl"),
    ] {
        bench.file("page.md", &format!("{words}\n{end}\n"));
        let message = bench.refused("report --fill page.md");
        assert!(message.contains(expected), "{words}: {message}");
    }
    bench.file("page.md", &format!("{}\n", words("beside", "")));
    assert!(
        bench
            .refused("report --fill page.md")
            .contains("page.md, line 1: expected `<!-- end of table -->` below")
    );
}

#[test]
fn a_filter_that_drops_the_first_line_of_a_run_keeps_its_date() {
    let bench = Bench::new();
    let of = |method| solve("gen:poisson-p1:9", [method, "none", "csr", "30 iterations"], 1.0);
    // Only the first line of the run gives the date, the machine and the command.
    let mut second: serde_json::Value = serde_json::from_str(&of("gmres")).unwrap();
    for key in ["date", "machine", "version", "compiler", "command"] {
        assert!(second.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    bench.file("kept.jsonl", &format!("{}{second}\n", of("cg")));
    bench.file("page.md", &format!("{BEGIN}backends kept.jsonl method=gmres -->\n<!-- end of table -->\n"));
    assert_eq!(bench.run("report --fill page.md").code, 0);
    let text = std::fs::read_to_string(bench.path("page.md")).unwrap();
    let origin = "2026-11-26, it x 1, Lacuna 0.1.0, rustc: `lacuna compare gen:poisson-p1:9`";
    assert!(text.contains(origin), "{text}");
}

#[test]
fn rows_beside_peers_are_chosen_and_named() {
    let bench = Bench::new();
    let matrix = "gen:poisson2d:9x9";
    let products = FORMATS.iter().zip(1..).map(|(format, us)| product(matrix, format.name, us.into()));
    let solve = solve(matrix, ["cg", "jacobi", "csr", "to |b - A x| <= 1e-8 |b|"], 1.0);
    bench.file("kept.jsonl", &(products.collect::<String>() + &solve));
    bench.file(
        "peers.jsonl",
        r#"{"kind":"peer","peer":"quick","method":"spmv","matrix":"gen:poisson2d:9x9","type":"f64","n":81,"fresh_us":1e-9,"again_us":1e-9}
{"kind":"peer","peer":"blocks","format":"bcsr3","method":"spmv","matrix":"gen:poisson2d:9x9","type":"f64","n":81,"fresh_us":1e-10,"again_us":1e-10}
{"kind":"peer","peer":"slow","method":"cg","precond":"jacobi","stop":"to |b - A x| <= 1e-8 |b|","iterations":10,"matrix":"gen:poisson2d:9x9","type":"f64","n":81,"fresh_us":1e8,"again_us":1e8}
{"kind":"peer","peer":"other","method":"cg","matrix":"gen:poisson2d:9x9","type":"f64","n":81,"fresh_us":1,"again_us":1}"#,
    );
    let table = |kind: &str| {
        bench.file("page.md", &format!("{BEGIN}{kind} -->\n<!-- end of table -->\n"));
        assert_eq!(bench.run("report --fill page.md").code, 0);
        std::fs::read_to_string(bench.path("page.md")).unwrap()
    };
    let rows = |text: &str| text.lines().filter(|line| line.starts_with("| poisson2d:9x9")).count();
    // The worst eight are listed; peers that report another format are left out.
    let all = table("beside kept.jsonl peers.jsonl method=spmv");
    let count = rows(&all);
    assert!(count > 9 && all.contains("blocks (bcsr3)"), "{all}");
    assert!(all.contains(&format!("behind in {count} of {count} rows: ")), "{all}");
    assert!(all.ends_with(&format!(") and {} more\n<!-- end of table -->\n", count - 8)), "{all}");
    assert_eq!(rows(&table("best kept.jsonl peers.jsonl method=spmv")), 1);
    let csr = table("beside kept.jsonl peers.jsonl method=spmv format=csr");
    assert!(rows(&csr) == 1 && csr.contains("quick") && !csr.contains("blocks"), "{csr}");
    // Solves that run until convergence are compared as a whole, with peers that did the same.
    let solved = table("beside kept.jsonl peers.jsonl method=cg");
    assert!(solved.contains("| 1 000 000 000 slow | 0.00 |") && !solved.contains("other"), "{solved}");
}
