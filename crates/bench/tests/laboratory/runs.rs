//! `lacuna-bench run`.
use crate::Bench;
use serde_json::Value;

fn kept(bench: &Bench, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(bench.path(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn passes_stand_beside_loops_by_hand() {
    let bench = Bench::new();
    let ran = bench.run("run passes --small --types f32 --backends cpu --rounds 1 --json kept.jsonl");
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
    let ran = bench.run("run matrices --small --backends cpu --rounds 1 --quiet --json kept.jsonl");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let cases: Vec<_> = kept(&bench, "kept.jsonl").into_iter().filter(|l| l["kind"] == "case").collect();
    let work: Vec<_> = cases.iter().map(|c| c["method"].as_str().unwrap()).collect();
    assert_eq!(work, ["read", "assemble", "to-coo", "to-dia", "to-ell", "to-sell", "to-packed", "to-bcsr3"]);
    for case in &cases {
        let entries = case["nnz"].as_u64().unwrap();
        assert!(case["measured"]["bytes"].as_u64().unwrap() > 8 * entries, "{case}");
        assert_eq!((&case["backend"], &case["stop"]), (&"host".into(), &"once".into()), "{case}");
    }
    assert_eq!(bench.run("run matrices --small --backends cpu --threads 1 --rounds 1 --quiet").code, 0);
}

#[test]
fn what_got_slower_is_told_by_the_exit_code() {
    let bench = Bench::new();
    let measure = "run spmv --small --backends cpu --threads 1 --rounds 3 --quiet";
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
