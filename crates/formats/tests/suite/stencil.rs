//! Constant coefficients on a grid are detected, preserved bitwise, and refused if they vary.
use lacuna_engine::Format;
use lacuna_formats::{Csr, Dia, Stencil, Triplets};
use lacuna_io::Spec;
use proptest::prelude::*;

fn generated(name: &str) -> Csr<f64> {
    Spec::parse(name).unwrap().build().unwrap()
}

#[test]
fn grids_are_found() {
    for (name, size) in [
        ("gen:poisson1d:40", [40, 1, 1]),
        ("gen:poisson2d:37x29", [37, 29, 1]),
        ("gen:poisson2d:3x50:9", [3, 50, 1]),
        ("gen:poisson3d:7x8x9", [7, 8, 9]),
        ("gen:poisson3d:3x3x3:27", [3, 3, 3]),
    ] {
        let a = generated(name);
        let stencil = Stencil::from_csr(&a).unwrap();
        assert_eq!(stencil.size(), size, "{name}");
        let x: Vec<f64> = (0..a.cols()).map(|j| 1.0 / (j + 3) as f64).collect();
        let dia = Dia::from_csr(&a).unwrap();
        assert!((0..a.rows()).all(|i| stencil.row(i, &x).to_bits() == dia.row(i, &x).to_bits()), "{name}");
    }
}

/// The matrix with these neighbours and coefficients on a grid.
fn on_grid([nx, ny, nz]: [i32; 3], neighbours: &[([i32; 3], f64)]) -> Triplets<f64> {
    let n = (nx * ny * nz) as usize;
    let mut t = Triplets::new(n, n);
    for i in 0..n as i32 {
        let at = [i % nx, i / nx % ny, i / nx / ny];
        for (step, c) in neighbours {
            let [x, y, z] = [0, 1, 2].map(|axis| at[axis] + step[axis]);
            if (0..nx).contains(&x) && (0..ny).contains(&y) && (0..nz).contains(&z) {
                t.push(i as usize, ((z * ny + y) * nx + x) as usize, *c);
            }
        }
    }
    t
}

proptest! {
    #[test]
    fn any_stencil_is_found_or_refused(
        size in prop::array::uniform3(1i32..9),
        neighbours in prop::collection::btree_map(prop::array::uniform3(-2i32..3), -4i32..5, 1..8),
        spoilt in any::<Option<prop::sample::Index>>(),
    ) {
        let neighbours: Vec<_> = neighbours.into_iter().map(|(step, c)| (step, f64::from(c) + 0.5)).collect();
        let mut a = on_grid(size, &neighbours).to_csr().unwrap();
        let spoilt = spoilt.filter(|_| a.nnz() > 0).map(|index| index.index(a.nnz()));
        if let Some(k) = spoilt {
            let mut values = a.values().to_vec();
            values[k] += 0.25;
            a.set_values(&values).unwrap();
        }
        let Ok(stencil) = Stencil::from_csr(&a) else { return Ok(()) };
        prop_assert_eq!(stencil.size().into_iter().product::<usize>(), a.rows());
        let x: Vec<f64> = (0..a.cols()).map(|j| 1.0 / (j + 3) as f64).collect();
        for i in 0..a.rows() {
            let plain = a.row_entries(i).fold(0.0, |sum: f64, (j, v)| v.mul_add(x[j], sum));
            prop_assert_eq!(stencil.row(i, &x).to_bits(), plain.to_bits(), "row {}", i);
        }
    }
}

#[test]
fn what_is_no_stencil_says_why() {
    let refusal = |a: &Csr<f64>| Stencil::from_csr(a).expect_err("should be refused").to_string();
    let a = generated("gen:poisson2d:30x20");
    let mut values = a.values().to_vec();
    values[a.row_ptr()[95] as usize] = -2.0;
    assert_eq!(
        refusal(&a.with_values(values).unwrap()),
        "Stencil::from_csr: row 95 (counted from 0) differs from row 31 on a grid of 30x20x1 by more than the grid's end; keep csr (38 KB)"
    );
    assert!(
        refusal(&generated("gen:dense:100"))
            .contains("row 0 (counted from 0) has 100 entries, 64 at most are kept")
    );
    assert!(refusal(&generated("gen:power-law:900")).contains("keep csr"));
    // A periodic grid has the same neighbours, but across its ends.
    let mut t =
        on_grid([20, 20, 1], &[([0, 0, 0], 4.0), ([-1, 0, 0], -1.0), ([1, 0, 0], -1.0), ([0, 1, 0], -1.0)]);
    t.push(20, 19, -1.0);
    assert!(refusal(&t.to_csr().unwrap()).contains("keep csr"));
    assert!(refusal(&Triplets::new(3, 4).to_csr().unwrap()).contains("are no points of a grid"));
}
