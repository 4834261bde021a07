//! Sparse algebra on a device: products have the bits of those that the host computes, sets are the same.
use crate::numbers::{Rng, generated, random_matrix};
use crate::on_both;
use crate::solves::{Solve, solve};
use lacuna_engine::{
    CompressedRows, Device, Double, Each, Error, Format, FormatRefs, Graph, History, LinOp, Pass, Products,
    Recorder, Result, Run, Scalar, Scope,
};
use lacuna_formats::algebra::{galerkin_by_cells, product};
use lacuna_formats::{Csr, Triplets};
use lacuna_solvers::{Amg, OnHost, Placed, Preconditioner, Setup, SparseAlgebra, There, preconditioner};
use std::any::Any;

/// Backends that have kernels for it; others may leave it to the host.
const WITH: [&str; 3] = ["cuda", "opencl", "wrong"];

/// The product on a device, if it has kernels for it.
fn on_device<T: Scalar>(dev: &Device, factors: &[&Csr<T>]) -> Result<Option<Csr<T>>> {
    let factors: Vec<&dyn Format<T>> = factors.iter().map(|factor| *factor as &dyn Format<T>).collect();
    let Some(made) = dev.sparse_product(&factors)? else { return Ok(None) };
    Csr::new(made.shape.0, made.shape.1, made.row_ptr, made.col_idx, made.values).map(Some)
}

/// Whether a backend leaves sparse algebra to the host, and may.
fn has_none(dev: &Scope) -> bool {
    let one = Csr::<f64>::identity(1).unwrap();
    let none = on_device(dev, &[&one, &one]).unwrap().is_none();
    let backend = dev.info().backend;
    assert!(!(none && WITH.contains(&backend)), "`{backend}` leaves a small product to the host");
    assert!(!(none && dev.has_fast_sparse_algebra().unwrap()), "`{backend}` says it is fast, and has none");
    none
}

/// Compares by bits: equality of numbers takes 0 and −0 for the same.
#[track_caller]
fn assert_same<T: Scalar>(got: Option<Csr<T>>, want: &Csr<T>, what: &str) {
    let got = got.unwrap_or_else(|| panic!("{what}: the device left it to the host"));
    let bits = |a: &Csr<T>| -> Vec<[u64; 2]> {
        a.values().iter().map(|v| [v.re().to_bits(), v.im().to_bits()]).collect()
    };
    assert_eq!((got.rows(), got.cols(), got.row_ptr()), (want.rows(), want.cols(), want.row_ptr()), "{what}");
    assert_eq!(got.col_idx(), want.col_idx(), "{what}: columns");
    assert_eq!(bits(&got), bits(want), "{what}: values");
}

/// Products of matrices of every shape, of two and three factors.
pub fn products<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    if has_none(dev) {
        return;
    }
    let mut rng = Rng::new(91);
    let sizes = [
        [1, 1, 1],
        [1, 300, 1],
        [300, 1, 300],
        [5, 0, 7],
        [0, 4, 3],
        [257, 61, 1000],
        [900, 900, 90],
        [3, 700, 650],
    ];
    for [rows, inner, cols] in sizes {
        let a = random_matrix::<T>(&mut rng, rows, inner, 5);
        let b = random_matrix::<T>(&mut rng, inner, cols, 9);
        let what = format!("{rows}x{inner} by {inner}x{cols}");
        assert_same(on_device(dev, &[&a, &b]).unwrap(), &product(&a, &b).unwrap(), &what);
        let r = random_matrix::<T>(&mut rng, 40, rows, 12);
        let want = product(&r, &product(&a, &b).unwrap()).unwrap();
        assert_same(on_device(dev, &[&r, &a, &b]).unwrap(), &want, &what);
        assert_same(on_device(dev, &[&a]).unwrap(), &a, &what);
    }
    // Entries that cancel stay; squares of stencils meet in the same columns.
    let a = generated::<T>("gen:convection:23x19");
    assert_same(on_device(dev, &[&a, &a]).unwrap(), &product(&a, &a).unwrap(), "a stencil squared");
    let mut pair = Triplets::new(2, 2);
    [(0, 0, 1.0), (0, 1, 1.0), (1, 1, 1.0)]
        .into_iter()
        .for_each(|(i, j, v)| pair.push(i, j, T::from_real(v)));
    let mut other = Triplets::new(2, 1);
    [(0, 0, 1.0), (1, 0, -1.0)].into_iter().for_each(|(i, j, v)| other.push(i, j, T::from_real(v)));
    let (a, b) = (pair.to_csr().unwrap(), other.to_csr().unwrap());
    assert_same(on_device(dev, &[&a, &b]).unwrap(), &product(&a, &b).unwrap(), "cancelled");
}

/// The rounds that [`Backend::distance_two_set`] is specified by, read literally.
pub(crate) fn set_by_rounds(graph: Graph<'_>, priorities: &[u64]) -> Vec<u32> {
    let (inside, outside) = (u64::MAX, 0);
    let row = |i: usize| &graph.neighbours[graph.row_ptr[i] as usize..graph.row_ptr[i + 1] as usize];
    let largest = |of: &[u64]| -> Vec<u64> {
        let near = |i: usize| row(i).iter().fold(of[i], |most, &j| most.max(of[j as usize]));
        (0..of.len()).map(near).collect()
    };
    let mut keys = priorities.to_vec();
    while keys.iter().any(|key| *key != inside && *key != outside) {
        let within_two = largest(&largest(&keys));
        for (key, most) in keys.iter_mut().zip(within_two).filter(|(key, _)| **key != inside) {
            *key = if most == inside {
                outside
            } else if most == *key && most != outside {
                inside
            } else {
                *key
            };
        }
    }
    (0..).zip(keys).filter(|(_, key)| *key == inside).map(|(i, _)| i).collect()
}

/// Maximal sets of rows at a distance of three and more.
pub fn sets<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    if has_none(dev) {
        return;
    }
    let mut rng = Rng::new(17);
    // Some rows alone, some their own neighbours; both ways.
    let symmetric = |n: usize, edges: &[(usize, usize)]| {
        let mut all = Triplets::new(n, n);
        edges.iter().for_each(|&(i, j)| {
            all.push(i, j, T::one());
            all.push(j, i, T::one());
        });
        all.to_csr().unwrap()
    };
    let star: Vec<_> = (1..700).map(|j| (0, j)).collect();
    let path: Vec<_> = (1..1000).map(|j| (j - 1, j)).collect();
    let scattered: Vec<_> = (0..4000).map(|_| (rng.below(3000), rng.below(3000))).collect();
    let graphs = [
        ("none", symmetric(0, &[])),
        ("one row", symmetric(1, &[(0, 0)])),
        ("no edges", symmetric(300, &[])),
        ("a star", symmetric(700, &star)),
        ("a path", symmetric(1000, &path)),
        ("scattered edges", symmetric(3000, &scattered)),
        ("a grid", generated::<T>("gen:poisson2d:61x47")),
    ];
    for (what, a) in graphs {
        let graph = Graph { row_ptr: a.row_ptr(), neighbours: a.col_idx() };
        let alone = |i: usize| a.row_slices(i).0.iter().all(|j| *j as usize == i);
        let hashed: Vec<u64> = (0..a.rows())
            .map(|i| if alone(i) { 0 } else { (rng.below(1 << 30) as u64 | 1) << 32 | i as u64 })
            .collect();
        // In the order of rows a path takes as many rounds as it has members of the set.
        let ordered: Vec<u64> = (0..a.rows() as u64).map(|i| i + 1).collect();
        for priorities in [hashed, ordered] {
            let got = dev.distance_two_set(graph, &priorities).unwrap();
            assert_eq!(got, Some(set_by_rounds(graph, &priorities)), "{what}");
        }
    }
    // A row too long for a thread.
    let long: Vec<_> = (1..5000).map(|j| (0, j)).collect();
    let a = symmetric(5000, &long);
    let graph = Graph { row_ptr: a.row_ptr(), neighbours: a.col_idx() };
    let ordered: Vec<u64> = (1..=5000).collect();
    if let Some(got) = dev.distance_two_set(graph, &ordered).unwrap() {
        assert_eq!(got, set_by_rounds(graph, &ordered));
    }
}

/// What is refused, and what is left to the host.
pub fn refusals<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    if has_none(dev) {
        return;
    }
    let [a, b] = [(4, 5), (6, 4)].map(|(rows, cols)| random_matrix::<T>(&mut Rng::new(3), rows, cols, 3));
    let error = on_device(dev, &[&a, &b]).unwrap_err();
    assert!(matches!(error, Error::Shape { .. }), "{error}");
    let sell = lacuna_formats::Sell::from_csr(&a).unwrap();
    let error = dev.sparse_product::<T>(&[&sell]).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert!(dev.sparse_product::<T>(&[]).is_err());
    let priorities = [1, 2, 3];
    for (row_ptr, neighbours) in [(&[0, 1, 1][..], &[1][..]), (&[0, 1, 2, 3, 3], &[0, 1, 2])] {
        let error = dev.distance_two_set(Graph { row_ptr, neighbours }, &priorities).unwrap_err();
        assert!(matches!(error, Error::Length { .. }), "{error}");
    }
    for (row_ptr, neighbours) in
        [([0, 1, 2, 3], [0, 3, 1]), ([0, 2, 1, 3], [0, 1, 2]), ([0, 1, 2, 9], [0, 1, 2])]
    {
        let graph = Graph { row_ptr: &row_ptr, neighbours: &neighbours };
        let error = dev.distance_two_set(graph, &priorities).unwrap_err();
        assert!(matches!(error, Error::Structure { .. }), "{error}");
    }
    // A sum that overflows: the host says where.
    let large = T::from_real(if T::EPSILON > 1e-10 { 1e30 } else { 1e300 });
    let huge = Csr::identity(3).unwrap().scaled(large).unwrap();
    assert!(on_device(dev, &[&huge, &huge]).unwrap().is_none());
    assert!(product(&huge, &huge).is_err());
    // Rows too long for a team: of the left factor, of products, of the result.
    let filled = |rows: usize, cols: usize| {
        let mut all = Triplets::new(rows, cols);
        (0..rows * cols).for_each(|k| all.push(k / cols, k % cols, T::one()));
        all.to_csr().unwrap()
    };
    for [rows, inner, cols] in [[1, 9000, 1], [1, 600, 500], [2, 2, 5000]] {
        let (a, b) = (filled(rows, inner), filled(inner, cols));
        if let Some(made) = on_device(dev, &[&a, &b]).unwrap() {
            assert_same(Some(made), &product(&a, &b).unwrap(), "long rows");
        }
    }
}

/// A device whose products are compared with those of the host.
struct Compared<'d> {
    dev: &'d Device,
    cells: &'static [[usize; 2]],
    count: usize,
}

impl SparseAlgebra for Compared<'_> {
    fn product(&mut self, factors: &[Each<FormatRefs<'_>>]) -> Result<Option<Each<Products>>> {
        let made = self.dev.sparse_product_of_each(factors)?;
        match &made {
            Some(Each::F64(made)) => self.compare(factors, made)?,
            Some(Each::C64(made)) => self.compare(factors, made)?,
            Some(other) => panic!("a set-up computes in {}", other.kind().name()),
            None => panic!("level {}: the device left it to the host", self.count),
        }
        self.count += 1;
        Ok(made)
    }
}

impl Compared<'_> {
    fn compare<W: Double>(&self, factors: &[Each<FormatRefs<'_>>], made: &CompressedRows<W>) -> Result<()> {
        let csr = |factor: &Each<FormatRefs<'_>>| {
            let format: &dyn Any = *factor.get::<W>().unwrap();
            format.downcast_ref::<Csr<W>>().unwrap().clone()
        };
        let factors: Vec<Csr<W>> = factors.iter().map(csr).collect();
        let [r, a, p] = &factors[..] else { panic!("expected R A P, got {} factors", factors.len()) };
        let CompressedRows { shape, row_ptr, col_idx, values } = made.clone();
        let made = Csr::new(shape.0, shape.1, row_ptr, col_idx, values)?;
        let cells = self.cells[self.count.min(self.cells.len() - 1)];
        assert_same(Some(made), &galerkin_by_cells(r, a, p, cells)?, &format!("level {}", self.count));
        Ok(())
    }
}

/// The coarse matrices of `amg`, for one and for several unknowns a node, and for new values.
pub fn set_ups<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    if has_none(dev) {
        return;
    }
    let cases: [(&str, &str, &'static [[usize; 2]]); 3] = [
        ("gen:poisson2d:40x40", "amg:coarsest=20", &[[1, 1]]),
        ("gen:convection:40x40", "amg:coarsest=20", &[[1, 1]]),
        ("gen:elasticity3d:5", "amg:coarsest=20,block=3", &[[3, 3]]),
    ];
    for (matrix, name, cells) in cases {
        let a = generated::<T>(matrix);
        let mut amg = preconditioner::<T>(name).unwrap().unwrap();
        let mut compared = Compared { dev, cells, count: 0 };
        let _ = amg.set_up(&a, &mut Setup::new().with_algebra(&mut compared)).unwrap();
        let levels = compared.count;
        assert!(levels > 0, "{matrix}: no level");
        compared.count = 0;
        let mut again = Setup::new().with_algebra(&mut compared).for_new_values();
        let _ = amg.set_up(&a.scaled(T::from_real(3.0)).unwrap(), &mut again).unwrap();
    }
    // The rigid-body modes: six coarse unknowns for a node of three.
    let a = generated::<T>("gen:elasticity3d:5");
    let node = |k: usize| [k % 5 + 1, k / 5 % 6, k / 30].map(|c| c as f64 / 5.0);
    let points: Vec<[f64; 3]> = (0..a.rows() / 3).map(node).collect();
    let options = lacuna_solvers::AmgOptions::default().coarsest(20);
    let mut amg = Amg::new(options).rigid_body_modes(&points);
    let mut compared = Compared { dev, cells: &[[3, 6], [6, 6]], count: 0 };
    let there = amg.set_up(&a, &mut Setup::new().with_algebra(&mut compared)).unwrap();
    assert!(compared.count > 0);
    let here = amg.set_up(&a, &mut Setup::new()).unwrap();
    assert_eq!(there.bytes(), here.bytes());
}

/// Levels large enough that a device with fast sparse algebra does it: the solve has the bits of the host's.
pub fn large_levels<T: Scalar>(make: fn() -> Device) {
    let cases = [("gen:poisson2d:180x180", "cg", "amg"), ("gen:convection:60x70x12:3", "bicgstab", "amg")];
    for (matrix, method, precond) in cases {
        let case = Solve { matrix, method, precond, max_iters: 3 };
        on_both!(make, matrix, |dev| { solve::<T>(dev, &case) });
    }
}

/// Leaves whole set-ups to a device, whatever their size.
struct Whole<'d>(&'d Device);

impl SparseAlgebra for Whole<'_> {
    fn there(&self, _: usize) -> Option<There> {
        Some(There { device: self.0.clone(), matrix: None })
    }
    fn product(&mut self, _: &[Each<FormatRefs<'_>>]) -> Result<Option<Each<Products>>> {
        Ok(None)
    }
}

/// A V-cycle on a device, applied to a vector.
fn applied<T: Scalar>(dev: &Scope, m: &Placed<T>, n: usize) -> Vec<[u64; 2]> {
    let [r, z] = dev.vectors::<T, 2>(n).unwrap();
    let numbers: Vec<T> = (0..n).map(|i| T::from_real(((i * 37 % 101) as f64 - 50.0) / 51.0)).collect();
    dev.upload(&numbers, r).unwrap();
    let mut k = Recorder::new(dev, "one cycle");
    m.apply(&mut k, r, z, Pass::nothing());
    let mut plan = k.finish().and_then(|program| dev.plan(program)).unwrap();
    dev.execute(&mut plan, Run { limit: 1, history: &mut History::off(), watch: None }).unwrap();
    let mut numbers = vec![T::zero(); n];
    dev.download(z, &mut numbers).unwrap();
    numbers.iter().map(|v| [v.re().to_bits(), v.im().to_bits()]).collect()
}

/// `S A S*` with numbers of modulus 1 (1 for real types), with rows coupled to none and a part that is singular by itself.
fn turned<T: Scalar>(a: &Csr<T>) -> Csr<T> {
    let n = a.rows();
    let mut b = Triplets::new(n + 9, n + 9);
    let s = |i: usize| match (T::KIND.is_complex(), i % 3) {
        (false, _) | (_, 0) => T::one(),
        (_, 1) => T::from_parts(0.0, 1.0),
        _ => T::from_parts(-0.6, 0.8),
    };
    a.entries().for_each(|(i, j, v)| b.push(i, j, if i == j { v } else { v * (s(i) * s(j).conj()) }));
    (n..n + 2).for_each(|i| b.push(i, i, T::from_real(3.0)));
    // A path of seven rows whose sums are 0.
    for i in n + 2..n + 9 {
        let ends = usize::from(i == n + 2) + usize::from(i == n + 8);
        b.push(i, i, T::from_real(2.0 - ends as f64));
        if i + 1 < n + 9 {
            b.push(i, i + 1, -T::one());
            b.push(i + 1, i, -T::one());
        }
    }
    b.to_csr().unwrap()
}

/// Hierarchies made by the device and kept there: levels and bits of the host's, for the first values and for others.
pub fn hierarchies<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    let on_device = dev.algebra(T::KIND, |_| Ok(Some(()))).unwrap().is_some();
    let may = T::KIND != T::KIND.narrow() && WITH.contains(&dev.info().backend);
    assert_eq!(on_device, may, "sparse algebra of `{}`", dev.info().backend);
    let amg = "amg:coarsest=20";
    let cases = [
        ("gen:poisson2d:40x40", amg),
        // With a coarsest level that is smoothed.
        ("gen:poisson2d:90x90", "amg:coarsest=20,complexity=1.31"),
        ("gen:poisson3d:9x8x7:27", amg),
        ("gen:poisson3d:16x15x9", amg),
        ("gen:poisson-p1:24", amg),
        ("gen:wathen:9x8", amg),
        ("gen:smooth:20", amg),
        // With diagonal entries that are negative when weak ones are added.
        ("gen:spe10-like:1:12x14x10", amg),
    ];
    for (matrix, name) in cases {
        let a = turned(&lacuna_io::Spec::parse(matrix).unwrap().build::<T>().unwrap());
        let other = a.scaled(T::from_real(0.3)).unwrap();
        let a_there = dev.matrix::<T>(std::sync::Arc::new(a.clone())).unwrap();
        let placed = |algebra: &mut dyn SparseAlgebra| {
            let kind = preconditioner::<T>(name).unwrap().unwrap();
            Placed::new(dev, kind, &a, a_there, Setup::new().with_algebra(algebra)).unwrap()
        };
        let [mut there, mut here] = [placed(&mut Whole(dev)), placed(&mut OnHost)];
        for values in ["given", "new"] {
            let lines = |m: &Placed<T>| {
                let lines = m.report().iter().filter(|(what, _)| *what == "level" || *what == "note");
                lines.map(|(_, line)| line.clone()).collect::<Vec<_>>()
            };
            assert_eq!(lines(&there), lines(&here), "{matrix}, {values} values");
            let place = if on_device { "on the device" } else { "on the host" };
            let is_there = |(what, of): &(&str, String)| *what == "set-up" && of.contains(place);
            assert!(there.report().iter().any(is_there), "{matrix}, {values} values: not made {place}");
            assert_eq!(
                applied(dev, &there, a.rows()),
                applied(dev, &here, a.rows()),
                "{matrix}, {values} values: a cycle"
            );
            there.update(&other, Setup::new().with_algebra(&mut Whole(dev))).unwrap();
            here.update(&other, Setup::new().with_algebra(&mut OnHost)).unwrap();
        }
        assert_eq!(there.bytes(), here.bytes(), "{matrix}");
    }
}
