//! `lacuna-bench report`.
use crate::{Bench, solve};

#[test]
fn kept_results_make_a_page_and_tables() {
    let bench = Bench::new();
    for (us, name) in [(2.0, "a.jsonl"), (3.0, "b.jsonl")] {
        let cg = |matrix| solve(matrix, ["cg", "none", "csr", "30 iterations"], us);
        bench.file(name, &(cg("gen:poisson-p1:9") + &cg("gen:poisson-p1:15")));
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
