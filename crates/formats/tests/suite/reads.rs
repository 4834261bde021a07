//! What products read of x.
use lacuna_engine::Format;
use lacuna_engine::sum::SEGMENT;
use lacuna_formats::{Csr, FORMATS, Interpolation, columns_read, convert};
use lacuna_io::Spec;
use std::sync::Arc;

/// With NaN in all elements that it is not said to read, a product of some rows is the same.
#[test]
fn products_read_nothing_else() {
    let mut seen = Vec::new();
    let specs = [
        "gen:poisson2d:37x41",
        "gen:convection:30x51:20",
        "gen:power-law:3000",
        "gen:elasticity3d:8",
        "gen:dense:600",
    ];
    for spec in specs {
        let a: Arc<Csr<f64>> = Arc::new(Spec::parse(spec).unwrap().build().unwrap());
        for info in FORMATS {
            let Ok(format) = convert(&a, info.name) else { continue };
            check(&*format);
            seen.push(info.name);
        }
    }
    for coarsened in [[true, true, true], [true, false, true]] {
        check(&Interpolation::<f64>::prolongation([19, 18, 17], coarsened).unwrap());
        check(&Interpolation::<f64>::restriction([19, 18, 17], coarsened).unwrap());
    }
    let missing = FORMATS.iter().find(|info| !seen.contains(&info.name) && !info.name.starts_with("bcsr"));
    assert!(missing.is_none() && seen.contains(&"bcsr3"), "{missing:?} of {seen:?}");
}

fn check(a: &dyn Format<f64>) {
    let (n, cols) = a.shape();
    let x: Vec<f64> = (0..cols).map(|i| (i as f64 * 0.7).sin() + 2.0).collect();
    for start in (0..n).step_by(2 * SEGMENT) {
        let rows = start..(start + 2 * SEGMENT).min(n);
        let mut only = vec![f64::NAN; cols];
        assert!(columns_read(a, rows.clone(), |run| only[run.clone()].copy_from_slice(&x[run])));
        for row in rows {
            assert_eq!(a.row(row, &only).to_bits(), a.row(row, &x).to_bits(), "{} row {row}", a.kernel());
        }
    }
}
