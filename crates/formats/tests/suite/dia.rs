//! Diagonals, stored fully or for a symmetric matrix.
use lacuna_engine::{Complex64, Format, Scalar};
use lacuna_formats::{Csr, Dia, Structure, Triplets, candidates};
use lacuna_io::Spec;
use proptest::prelude::*;

fn of<T: Scalar>(n: usize, entries: &[(usize, usize, T)]) -> Csr<T> {
    let mut triplets = Triplets::new(n, n);
    entries.iter().for_each(|&(i, j, v)| triplets.push(i, j, v));
    triplets.to_csr().unwrap()
}

fn message(a: &Csr<f64>) -> String {
    Dia::symmetric(a).expect_err("should be refused").to_string()
}

fn same_bits<T: Scalar>(a: &Csr<T>, x: &[T]) {
    let (all, half) = (Dia::from_csr(a).unwrap(), Dia::symmetric(a).unwrap());
    assert_eq!((half.shape(), half.nnz(), half.kernel()), (all.shape(), all.nnz(), "dia"));
    assert_eq!(half.offsets(), all.offsets());
    for i in 0..a.rows() {
        let [all, half] = [&all, &half].map(|a| a.row(i, x));
        assert_eq!(bytemuck::bytes_of(&half), bytemuck::bytes_of(&all), "row {i} of {}", a.rows());
    }
}

#[test]
fn half_the_diagonals_give_the_same_bits_in_half_the_bytes() {
    for name in ["gen:poisson-p1:31", "gen:poisson3d:9x8x7:27", "gen:elasticity3d:4", "gen:poisson1d:1"] {
        let a: Csr<f64> = Spec::parse(name).unwrap().build().unwrap();
        let x: Vec<_> = (0..a.cols()).map(|j| 1.0 / (j as f64 + 0.7)).collect();
        same_bits(&a, &x);
    }
    for n in [1, 2, 63, 64, 65, 127, 128, 129, 4095, 4097] {
        let mut entries: Vec<_> = (0..n).map(|i| (i, i, 4.0)).collect();
        entries.extend((7..n).flat_map(|i| [(i, i - 7, 1.0 / i as f64), (i - 7, i, 1.0 / i as f64)]));
        same_bits(&of(n, &entries), &vec![1.5; n]);
    }
    let a: Csr<f64> = Spec::parse("gen:poisson-p1:255").unwrap().build().unwrap();
    let [all, half] = [Dia::from_csr(&a), Dia::symmetric(&a)].map(|a| Format::bytes(&a.unwrap()) as f64);
    assert!((half / all - 4.0 / 7.0).abs() < 0.01, "four of seven diagonals, got {}", half / all);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_symmetric_ones_agree(
        n in 1usize..300,
        entries in prop::collection::vec((0usize..300, 0usize..12, -8i32..8, -8i32..8), 100..600),
    ) {
        // Nearly full, or the diagonals would have too few entries.
        let mut all: Vec<_> = (0..n).map(|i| (i, i, Complex64::new(4.0, 1.0))).collect();
        for d in 1..4 {
            all.extend((d..n).flat_map(|i| [(i, i - d), (i - d, i)]).map(|(i, j)| (i, j, Complex64::new(-1.0, 0.5))));
        }
        for (i, d, re, im) in entries {
            if i + d < n {
                let v = Complex64::new(f64::from(re), f64::from(im));
                all.extend([(i, i + d, v), (i + d, i, v)]);
            }
        }
        let x: Vec<_> = (0..n).map(|j| Complex64::new(1.0 + j as f64, 0.5 - j as f64)).collect();
        same_bits(&of(n, &all), &x);
    }
}

#[test]
fn what_is_not_symmetric_is_refused() {
    let refused = "Dia::symmetric: expected a matrix that is its own transpose; take dia";
    let near = |v: f64| of(3, &[(0, 0, 2.0), (1, 1, 2.0), (2, 2, 2.0), (0, 1, 1.0), (1, 0, v)]);
    assert!(Dia::symmetric(&near(1.0)).is_ok());
    assert_eq!(message(&near(1.0 + f64::EPSILON)), refused, "another value");
    let below = of(3, &[(0, 0, 2.0), (1, 1, 2.0), (1, 0, 1.0)]);
    assert_eq!(message(&below), refused, "nothing above the diagonal");
    let above = of(3, &[(0, 0, 2.0), (1, 1, 2.0), (0, 1, 1.0)]);
    assert_eq!(message(&above), refused, "nothing below it");
    let apart = of(3, &[(0, 0, 2.0), (0, 1, 1.0), (2, 1, 1.0)]);
    assert_eq!(message(&apart), refused, "as many above it as below");
    let zero = Csr::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], vec![2.0, 0.0, 2.0]).unwrap();
    assert_eq!(message(&zero), refused, "a zero on a diagonal that has no image");
    let wide = Csr::new(2, 3, vec![0, 1, 2], vec![0, 1], vec![2.0; 2]).unwrap();
    assert_eq!(message(&wide), refused, "not square");
    let hermitian = of(2, &[(0, 1, Complex64::new(1.0, 1.0)), (1, 0, Complex64::new(1.0, -1.0))]);
    assert!(Dia::symmetric(&hermitian).is_err(), "its conjugate");
}

#[test]
fn auto_leaves_it_where_a_cache_cannot_keep_what_is_read_twice() {
    let refused = |name: &str| {
        let a: Csr<f64> = Spec::parse(name).unwrap().build().unwrap();
        let all = candidates(&a, &Structure::of(&a), &[lacuna_engine::Cost::of_bytes("dia", 1.0)]);
        all.into_iter().find(|c| c.name == "dia-sym").unwrap().refused
    };
    assert_eq!(refused("gen:poisson-p1:63"), None);
    assert_eq!(refused("gen:convection:40x40"), Some("not symmetric"));
    assert_eq!(refused("gen:elasticity3d:31"), Some("a pair of diagonals too far apart to be read once"));
}
