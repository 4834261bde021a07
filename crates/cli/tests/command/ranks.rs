//! `--ranks`: one system divided among threads that send each other what several devices would.
use crate::Bench;

#[test]
fn a_solve_on_ranks_writes_what_one_cpu_writes() {
    let bench = Bench::new();
    let bytes = |name: &str| std::fs::read(bench.path(name)).unwrap();
    for (matrix, options) in [
        ("gen:poisson2d:40x41", ""),
        ("gen:convection:50x31:20", "--method gmres --precond ilu0 --format csr"),
        ("gen:poisson3d:12x12x12", "--precond amg --refine"),
    ] {
        let one = format!("{matrix} --backend cpu --rhs random:3 --output one.npy {options}");
        let (code, one) = bench.solve(&one);
        assert_eq!(code, 0, "{one}");
        for ranks in [1, 2, 5] {
            let args = format!("{matrix} --ranks {ranks} --rhs random:3 --output several.npy {options}");
            let (code, several) = bench.solve(&args);
            assert_eq!((code, &several["history"]), (0, &one["history"]), "{args}");
            assert!(bytes("several.npy") == bytes("one.npy"), "{args}");
            let notes = several["notes"].to_string();
            let count = if ranks == 1 { "1 rank:".into() } else { format!("{ranks} ranks:") };
            assert!(notes.contains(&count) && notes.contains(" gathers"), "{notes}");
            assert_eq!(notes.contains("whole vectors"), options.contains("ilu0"), "{notes}");
        }
    }
}

#[test]
fn numbers_of_ranks_that_there_cannot_be_are_refused() {
    let bench = Bench::new().with_spd();
    for (args, expected) in [
        ("solve a.mtx --ranks 0", "ranks: expected 1 to 256, got 0"),
        ("solve a.mtx --ranks 257", "expected 1 to 256, got 257"),
        ("solve a.mtx --ranks -1", "-1"),
        ("solve a.mtx --ranks 2", "3 rows are divided among 1 at most, in whole segments of 256 rows; got 2"),
        ("solve a.mtx --ranks 2 --backend cuda", "threads of the backend `cpu`; got the backend `cuda`"),
        ("solve a.mtx --ranks 2 --backend opencl", "got the backend `opencl`"),
        ("solve a.mtx --ranks 2 --device 0", "take the place of a device; got the device `0` too"),
        ("solve a.mtx --backend ranks:x", "expected `ranks:` and a number, as in `ranks:4`, got `x`"),
        ("info a.mtx --ranks 0", "expected 1 or more, got 0"),
        ("info a.mtx --ranks 2", "3 rows are divided among 1 at most"),
    ] {
        let message = bench.refused(args);
        assert!(message.contains(expected), "{args}: {message}");
    }
}

#[test]
fn a_division_is_described_before_anything_is_solved() {
    let bench = Bench::new();
    let ran = bench.run("info gen:poisson2d:64x64 --ranks 4");
    let line = "  ranks       4 ranks: 1024 to 1024 rows each, the busiest 0.3 % above the mean; halo 9.38 % of the rows, from 2 others \
                at most; at most ";
    assert!(ran.code == 0 && ran.out.contains(line), "{}", ran.out);
    let ran = bench.run("info gen:poisson2d:64x64 --ranks 4 --quiet --json -");
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["ranks"]["parts"][1]["rows"], serde_json::json!([1024, 2048]));
    assert_eq!(json["ranks"]["parts"][1]["halo"], 128);
    let speed_up = json["ranks"]["speed_up"].as_f64().unwrap();
    assert!((3.0..4.0).contains(&speed_up), "{speed_up}");
}
