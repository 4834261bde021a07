//! Plots as PNG, of a build with that feature.
use crate::Bench;

#[test]
fn plots_are_drawn_as_png() {
    let bench = Bench::new().with_spd();
    bench.matrix("empty.mtx", 0, 0, &[]).matrix("<&>.mtx", 0, 0, &[]).vector("zeros.mtx", &[0.0; 3]);
    for args in [
        "solve gen:poisson2d:20x20",
        "solve a.mtx --rhs zeros.mtx",
        "solve <&>.mtx",
        "info a.mtx",
        "info empty.mtx",
        "spmv a.mtx --format csr --rounds 1",
        "advise a.mtx --seconds 1",
    ] {
        let ran = bench.run(&format!("{args} --plot plot.PNG"));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args}");
        let png = std::fs::read(bench.path("plot.PNG")).unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n"), "{args}");
        std::fs::remove_file(bench.path("plot.PNG")).unwrap();
    }
}
