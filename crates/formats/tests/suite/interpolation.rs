//! Linear interpolation between grids, and coefficients by position, agree with matrices that are stored.
use lacuna_engine::{Complex32, Error, Format, Scalar};
use lacuna_formats::{Csr, Interpolation, POSITIONS, Stencil, position};

#[test]
fn restriction_is_the_transpose_of_prolongation() {
    for (size, axes) in [
        ([7, 6, 5], [true; 3]),
        ([1, 9, 2], [false, true, true]),
        ([4, 3, 1], [true, false, false]),
        ([2, 2, 2], [true; 3]),
        ([3, 4, 5], [false; 3]),
    ] {
        let made = Interpolation::<f64>::prolongation(size, axes).unwrap();
        let p = made.to_csr().unwrap();
        let r = Interpolation::<f64>::restriction(size, axes).unwrap();
        assert_eq!(r.to_csr().unwrap(), p.transpose(), "{size:?}");
        assert_eq!([made.nnz(), r.nnz()], [p.nnz(); 2], "{size:?}");
        assert_eq!((made.shape(), r.shape()), ((p.rows(), p.cols()), (p.cols(), p.rows())));
        // A constant is interpolated exactly, except that points with a coarse neighbour on one side only get
        // half of it.
        let ones = vec![1.0; p.cols()];
        for i in 0..p.rows() {
            let at = [i % size[0], i / size[0] % size[1], i / size[0] / size[1]];
            let ends = (0..3).filter(|&k| axes[k] && at[k] % 2 == 0 && (at[k] == 0 || at[k] + 1 == size[k]));
            assert_eq!(made.row(i, &ones), 0.5f64.powi(ends.count() as i32), "{size:?} {at:?}");
        }
    }
}

#[test]
fn grids_without_points_are_refused() {
    for (size, axes) in [([1, 4, 4], [true; 3]), ([4, 0, 4], [false; 3])] {
        let error = Interpolation::<f64>::prolongation(size, axes).unwrap_err();
        assert!(matches!(error, Error::Argument { .. }), "{error}");
        assert!(error.to_string().contains("expected a point along each axis"), "{error}");
    }
    let error = Interpolation::<f64>::restriction([1 << 20; 3], [true; 3]).unwrap_err();
    assert!(matches!(error, Error::Structure { .. }), "{error}");
    let error = Interpolation::<f64>::restriction([1 << 11, 1 << 10, 1 << 10], [true; 3]).unwrap_err();
    assert!(error.to_string().contains("expected at most 2147483647 points"), "{error}");
}

#[test]
fn coefficients_follow_the_position() {
    for size in [[5, 4, 3], [1, 3, 2], [2, 2, 1], [40, 1, 1]] {
        let steps: Vec<[i32; 3]> = (0..27).rev().map(|k| [k % 3 - 1, k / 3 % 3 - 1, k / 9 - 1]).collect();
        let value = |p: usize, k: usize| Complex32::new((100 * p) as f32, k as f32 + 1.0);
        let coefficients: Vec<Vec<_>> =
            (0..POSITIONS).map(|p| (0..27).map(|k| value(p, k)).collect()).collect();
        let stencil = Stencil::by_position(size, &steps, &coefficients).unwrap();
        assert!(stencil.has_positions());
        let a: Csr<Complex32> = stencil.to_csr().unwrap();
        assert_eq!((a.nnz(), (a.rows(), a.cols())), (stencil.nnz(), stencil.shape()));
        let point = |i: usize| [i % size[0], i / size[0] % size[1], i / size[0] / size[1]];
        let mut entries = 0;
        for i in 0..a.rows() {
            for (k, steps) in steps.iter().enumerate() {
                let to: [i64; 3] = std::array::from_fn(|axis| point(i)[axis] as i64 + i64::from(steps[axis]));
                if (0..3).all(|axis| (0..size[axis] as i64).contains(&to[axis])) {
                    let j = to[0] as usize + size[0] * (to[1] as usize + size[1] * to[2] as usize);
                    assert_eq!(a.get(i, j), Some(value(position(point(i), size), k)), "{size:?} {i} {j}");
                    entries += 1;
                }
            }
        }
        assert_eq!(entries, a.nnz(), "{size:?}");
        // No row and no column exceeds the bound, and it is no larger than that of one row of the largest.
        let largest = |a: &Csr<Complex32>| {
            let sums = (0..a.rows()).map(|i| a.row_entries(i).map(|(_, v)| v.modulus()).sum::<f64>());
            sums.fold(0.0, f64::max)
        };
        let bound = stencil.norm_bound();
        assert!(bound >= largest(&a) && bound >= largest(&a.transpose()), "{size:?}");
        let each = coefficients.iter().flatten().map(|v| v.modulus()).fold(0.0, f64::max);
        assert!(bound <= each * stencil.neighbours().len() as f64, "{size:?}");
    }
}

#[test]
fn coefficients_that_do_not_fit_are_refused() {
    let refusal = |size: [usize; 3], steps: &[[i32; 3]], coefficients: &[Vec<f64>]| {
        Stencil::by_position(size, steps, coefficients).unwrap_err().to_string()
    };
    let of = |count: usize| vec![vec![1.0; count]; POSITIONS];
    let steps = [[0, 0, 0], [1, 0, 0]];
    assert!(refusal([3; 3], &[[2, 0, 0]], &of(1)).contains("expected steps of -1, 0 and 1, got [2, 0, 0]"));
    assert!(refusal([3; 3], &steps, &of(3)).contains("expected 2 coefficients for each of 27 positions"));
    assert!(
        refusal([3; 3], &steps, &of(2)[1..]).contains("expected 2 coefficients for each of 27 positions")
    );
    assert!(refusal([3; 3], &[[0; 3]; 2], &of(2)).contains("got [0, 0, 0] twice"));
    assert!(refusal([3, 0, 3], &steps, &of(2)).contains("expected 1 to 2147483647 points, got 0"));
    assert!(refusal([1 << 21; 3], &steps, &of(2)).contains("32-bit"));
}
