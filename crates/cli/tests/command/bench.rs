//! `lacuna bench` and `lacuna report`.
use crate::Bench;
use serde_json::Value;

fn kept(bench: &Bench, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(bench.path(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn passes_stand_beside_loops_by_hand() {
    let bench = Bench::new();
    let ran = bench.run("bench passes --small --types f32 --backends cpu --rounds 1 --json kept.jsonl");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("vectors of 2000 elements, f32; passes"), "{}", ran.out);
    let lines = kept(&bench, "kept.jsonl");
    let cases: Vec<_> = lines.iter().filter(|l| l["kind"] == "case").collect();
    assert_eq!(cases.len(), 2 * 8 * 2);
    for pair in cases.chunks(2) {
        let backends = [&pair[0]["backend"], &pair[1]["backend"]];
        assert_eq!((backends, &pair[0]["method"]), ([&"cpu".into(), &"by-hand".into()], &pair[1]["method"]));
        assert_eq!(pair[0]["measured"]["bytes"], pair[1]["measured"]["bytes"], "{}", pair[0]["method"]);
        assert_eq!(pair[0]["measured"]["reproducible"], true);
    }
}

#[test]
fn matrices_are_read_assembled_and_converted() {
    let bench = Bench::new();
    let ran = bench.run("bench matrices --small --backends cpu --rounds 1 --quiet --json kept.jsonl");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let cases: Vec<_> = kept(&bench, "kept.jsonl").into_iter().filter(|l| l["kind"] == "case").collect();
    let work: Vec<_> = cases.iter().map(|c| c["method"].as_str().unwrap()).collect();
    assert_eq!(work, ["read", "assemble", "to-coo", "to-dia", "to-ell", "to-sell", "to-packed", "to-bcsr3"]);
    for case in &cases {
        let entries = case["nnz"].as_u64().unwrap();
        assert!(case["measured"]["bytes"].as_u64().unwrap() > 8 * entries, "{case}");
        assert_eq!((&case["backend"], &case["stop"]), (&"host".into(), &"once".into()), "{case}");
    }
    assert_eq!(bench.run("bench matrices --small --backends cpu --threads 1 --rounds 1 --quiet").code, 0);
}

#[test]
fn what_got_slower_is_told_by_the_exit_code() {
    let bench = Bench::new();
    let measure = "bench spmv --small --backends cpu --threads 1 --rounds 3 --quiet";
    assert_eq!(bench.run(&format!("{measure} --json now.jsonl")).code, 0);
    for (name, factor, code, word) in
        [("fast.jsonl", 0.01, 1, "SLOWER"), ("slow.jsonl", 100.0, 0, " 0 slower")]
    {
        let mut lines = kept(&bench, "now.jsonl");
        for time in lines.iter_mut().filter_map(|l| l.get_mut("measured")?.get_mut("again")) {
            for part in ["median", "low", "high"] {
                time[part] = (time[part].as_f64().unwrap() * factor).into();
            }
        }
        let text: Vec<_> = lines.iter().map(|l| l.to_string()).collect();
        bench.file(name, &text.join("\n"));
        let ran = bench.run(&format!("{measure} --against {name}"));
        assert_eq!(ran.code, code, "{}{}", ran.out, ran.err);
        assert!(ran.out.contains(word) && ran.out.contains("cases compared"), "{}", ran.out);
    }
}

#[test]
fn papers_say_what_is_not_there() {
    let bench = Bench::new();
    let ran = bench
        .run("bench papers --small --backends cpu --rounds 1 --quiet --json kept.jsonl --html page.html");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let lines = kept(&bench, "kept.jsonl");
    let notes: Vec<_> =
        lines.iter().filter(|l| l["kind"] == "note").map(|l| l["suite"].as_str().unwrap()).collect();
    assert_eq!(notes.len(), 5);
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    for name in notes {
        let measured = |l: &&Value| l["suite"] == name && l["measured"].is_object();
        assert!(lines.iter().any(|l| measured(&l)) && page.contains(&format!("<h1>{name}</h1>")), "{name}");
    }
    // Everything present is reported as present, and everything missing as missing.
    let about = lines.iter().find(|l| l["kind"] == "note" && l["suite"] == "Bell and Garland 2008").unwrap();
    let (here, missing) = about["text"].as_str().unwrap().split_once("; ").unwrap();
    let formats: Vec<_> = lacuna::formats::FORMATS.iter().map(|f| f.name).collect();
    for name in ["DIA", "ELL", "CSR", "COO", "HYB", "PKT"] {
        let there = formats.contains(&name.to_lowercase().as_str());
        assert_eq!((here.contains(name), missing.contains(name)), (there, !there), "{about}");
    }
}

#[test]
fn kept_results_make_a_page_and_tables() {
    let bench = Bench::new();
    for (rounds, name) in [(1, "a.jsonl"), (2, "b.jsonl")] {
        let args = format!(
            "compare gen:poisson-p1:9 gen:poisson-p1:15 --backends cpu --methods cg --rounds {rounds} --json {name}"
        );
        assert_eq!(bench.run(&args).code, 0);
    }
    bench.file(
        "peers.jsonl",
        r#"{"kind":"peer","peer":"slow","threads":2,"method":"cg","matrix":"gen:poisson-p1:9","type":"f64","n":81,"fresh_us":1e9,"again_us":1e9}"#,
    );
    let ran = bench.run("report a.jsonl b.jsonl peers.jsonl");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let rows: Vec<_> = ran.out.lines().filter(|l| l.starts_with("| poisson-p1:")).collect();
    // Of two runs of the same case only one counts; the peer is listed with the system that it solved.
    assert_eq!(rows.len(), 2, "{}", ran.out);
    assert!(
        rows[0].contains("| slow (2 threads) | 1 000 000 000 | 0.00 |") && rows[1].ends_with("| | | | |"),
        "{}",
        ran.out
    );
    let columns = |line: &str| line.matches('|').count();
    let head = ran.out.lines().position(|l| l.starts_with("| system")).unwrap();
    let table: Vec<_> = ran.out.lines().skip(head).take(4).map(columns).collect();
    assert_eq!(table, [17; 4], "{}", ran.out);

    bench.file(
        "gpu.jsonl",
        r#"{"kind":"peer","peer":"quick","method":"cg","matrix":"gen:poisson-p1:9","type":"f64","n":81,"fresh_us":1e9,"again_us":1e8,"on_device_us":1e7,"residual":0.5,"format":"ell"}"#,
    );
    let ran = bench.run("report a.jsonl peers.jsonl gpu.jsonl");
    let rows: Vec<_> = ran.out.lines().filter(|l| l.starts_with("| poisson-p1:")).collect();
    let [with_transfers, without] =
        ["| quick (ell) | 100 000 000 | 0.00 | 0.00 |", "| quick (ell) | 10 000 000 | 0.00 |"];
    assert!(rows[0].contains(with_transfers) && rows[0].ends_with(without), "{}", ran.out);
    assert!(rows[1].ends_with("| | | | | | | |"), "{}", ran.out);
    assert_eq!(columns(rows[0]), 21);

    let ran = bench.run("report a.jsonl --html page.html");
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert!(std::fs::read_to_string(bench.path("page.html")).unwrap().contains("poisson-p1:15"));
    assert!(bench.refused("report nothing.jsonl").contains("nothing.jsonl"));
}
