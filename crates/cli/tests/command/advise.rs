//! `lacuna advise`.
use crate::Bench;

#[test]
fn what_was_tried_is_ranked_and_the_winner_can_be_asked_for() {
    let bench = Bench::new();
    for (matrix, never) in [("gen:poisson2d:14x12", "bicgstab"), ("gen:convection:14x12", "cg + ")] {
        let ran = bench.run(&format!("advise {matrix} --json found.json --plot race.svg"));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
        assert!(
            ran.out.contains("<- fastest") && ran.out.contains("  in Rust     LinearSystem::new(a)"),
            "{}",
            ran.out
        );
        assert!(ran.out.contains("direct") && !ran.out.contains(never), "{}", ran.out);
        let command = ran.out.lines().find_map(|line| line.strip_prefix("  once        lacuna ")).unwrap();
        assert_eq!(bench.run(command).code, 0, "{command}");
        let json = std::fs::read_to_string(bench.path("found.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let trials = json["trials"].as_array().unwrap();
        assert!(trials.len() > 6 && trials[0]["outcome"] == "converged", "{json}");
        let total =
            |k: usize| trials[k]["setup"].as_f64().unwrap() + trials[k]["solve"].as_f64().unwrap_or(1e9);
        let converged = trials.iter().filter(|trial| trial["outcome"] == "converged").count();
        assert!((1..converged).all(|k| total(k - 1) <= total(k)), "{json}");
        let svg = std::fs::read_to_string(bench.path("race.svg")).unwrap();
        assert!(
            svg.matches("<polyline").count() >= converged
                && svg.contains("gmres") == matrix.contains("convection")
        );
    }
}

#[test]
fn the_command_repeats_the_trial() {
    let bench = Bench::new().with_spd();
    let command = |ran: crate::Ran| {
        let line = ran.out.lines().find_map(|line| line.strip_prefix("  once        ").map(String::from));
        line.unwrap_or_else(|| panic!("{} {}", ran.out, ran.err))
    };
    let options = "--rhs random:1 --type c32 --rtol 1e-4 --atol 1e-3 --max-iters 900 --backend cpu";
    let ran = bench.run(&format!("advise gen:helmholtz:6x6 {options} --json found.json"));
    assert!(ran.out.contains(".stop(Stop::default().rtol(1e-4).atol(1e-3).max_iters(900))"), "{}", ran.out);
    let once = command(ran);
    assert!(once.starts_with(&format!("lacuna solve gen:helmholtz:6x6 {options}")), "{once}");
    let json = std::fs::read_to_string(bench.path("found.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["trials"][0]["command"], once.as_str());
    // A file whose name a shell would divide.
    std::fs::rename(bench.path("a.mtx"), bench.path("it's a.mtx")).unwrap();
    let mut advise = bench.command("advise");
    let once = command(crate::Ran::from(advise.arg("it's a.mtx").output().unwrap()));
    assert!(once.starts_with(r"lacuna solve 'it'\''s a.mtx'"), "{once}");
}

#[test]
fn the_winner_is_remembered_by_structure() {
    let bench = Bench::new();
    let solve = |matrix: &str, more: &str| {
        let ran = bench.run(&format!("solve {matrix} --method tune {more} --json found.json"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let json = std::fs::read_to_string(bench.path("found.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&json).unwrap()["choices"].to_string()
    };
    const BEFORE: &str = "the fastest on this structure before";
    let matrix = "gen:convection:30x30:10";
    assert!(!solve(matrix, "").contains(BEFORE));
    assert_eq!(bench.run(&format!("advise {matrix}")).code, 0);
    let choices = solve(matrix, "");
    assert_eq!(choices.matches(BEFORE).count(), 2, "{choices}");
    // With a preconditioner asked for; other values, another structure, another type.
    assert!(!solve(matrix, "--precond jacobi").contains(BEFORE));
    assert_eq!(solve("gen:convection:30x30:20", "").matches(BEFORE).count(), 2);
    assert!(!solve("gen:convection:31x30:10", "").contains(BEFORE));
    assert!(!solve(matrix, "--type f32").contains(BEFORE));
}

#[test]
fn what_nothing_solves_is_told_and_so_is_a_wrong_wish() {
    let bench = Bench::new();
    bench.matrix("singular.mtx", 3, 3, &["1 1 1", "2 1 2", "3 3 1"]);
    let ran = bench.run("advise singular.mtx --seconds 1");
    assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
    assert!(ran.out.contains("not available: direct: A is structurally singular"), "{}", ran.out);
    assert!(ran.out.contains("Nothing solved it."), "{}", ran.out);
    // What comes next is neither the command that ran nor one of its trials.
    let next: Vec<_> = ran.out.lines().filter_map(|line| line.strip_prefix("  try         ")).collect();
    assert!(next.iter().any(|line| line.starts_with("`lacuna info singular.mtx --why`")), "{}", ran.out);
    assert!(next.iter().all(|line| !line.contains("advise")), "{}", ran.out);
    assert!(bench.refused("advise gen:poisson1d:3 --seconds 0").contains("above 0"));
    bench.matrix("tall.mtx", 3, 2, &["1 1 1", "2 2 2", "3 1 1"]);
    let ran = bench.run("advise tall.mtx");
    assert!(ran.out.contains("lsmr") && ran.out.contains("cgls"), "{} {}", ran.out, ran.err);
}
