//! Random passes and sequences of operations: cases that nobody wrote by hand.
//!
//! `PROPTEST_CASES` sets their number; a failure is shrunk to the smallest failing case.
use crate::bits::{Trace, cells_of, upload};
use crate::numbers::{Rng, random_matrix};
use crate::on_both;
use lacuna_engine::{Cell, Device, Expr, Formula, Pass, Recorder, Run, Scalar, Scope, Vector};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::sync::Arc;

/// Number of vectors and cells in a random pass.
const VECTORS: usize = 5;
const CELLS: usize = 9;

#[derive(Clone, Copy, Debug)]
enum Scalars {
    Value(i8),
    Cell(usize),
    Negative(usize),
    Conjugate(usize),
    Root(usize),
    Sum(usize, usize),
    Difference(usize, usize),
    Product(usize, usize),
    Quotient(usize, usize),
    Larger(usize, usize),
    Nested(usize, usize, usize),
}

#[derive(Clone, Debug)]
struct RandomTerm {
    coefficient: Option<Scalars>,
    minus: bool,
    factor: Option<usize>,
    vector: usize,
}

#[derive(Clone, Debug)]
struct RandomPass {
    before: Vec<(usize, Scalars)>,
    updates: Vec<(usize, Vec<RandomTerm>)>,
    dots: Vec<(usize, usize, Option<usize>, usize)>,
    maxima: Vec<(usize, usize)>,
    after: Vec<(usize, Scalars)>,
}

fn scalars() -> BoxedStrategy<Scalars> {
    let c = || 0..CELLS;
    prop_oneof![
        (-3i8..4).prop_map(Scalars::Value),
        c().prop_map(Scalars::Cell),
        c().prop_map(Scalars::Negative),
        c().prop_map(Scalars::Conjugate),
        c().prop_map(Scalars::Root),
        (c(), c()).prop_map(|(a, b)| Scalars::Sum(a, b)),
        (c(), c()).prop_map(|(a, b)| Scalars::Difference(a, b)),
        (c(), c()).prop_map(|(a, b)| Scalars::Product(a, b)),
        (c(), c()).prop_map(|(a, b)| Scalars::Quotient(a, b)),
        (c(), c()).prop_map(|(a, b)| Scalars::Larger(a, b)),
        (c(), c(), c()).prop_map(|(a, b, d)| Scalars::Nested(a, b, d)),
    ]
    .boxed()
}

fn perhaps_a_factor() -> impl Strategy<Value = Option<usize>> {
    prop_oneof![3 => Just(None), 1 => (0..VECTORS).prop_map(Some)]
}

fn random_pass(updates: std::ops::Range<usize>) -> BoxedStrategy<RandomPass> {
    let term = (
        prop_oneof![2 => Just(None), 3 => scalars().prop_map(Some)],
        any::<bool>(),
        perhaps_a_factor(),
        0..VECTORS,
    )
        .prop_map(|(coefficient, minus, factor, vector)| RandomTerm {
            coefficient,
            minus,
            factor,
            vector,
        });
    (
        vec((0..CELLS, scalars()), 0..3),
        vec((0..VECTORS, vec(term.boxed(), 0..5)), updates),
        vec((0..CELLS, 0..VECTORS, perhaps_a_factor(), 0..VECTORS), 0..4),
        vec((0..CELLS, 0..VECTORS), 0..2),
        vec((0..CELLS, scalars()), 0..3),
    )
        .prop_map(|(before, updates, dots, maxima, after)| RandomPass {
            before,
            updates,
            dots,
            maxima,
            after,
        })
        .boxed()
}

/// Small and large lengths, most of them not multiples of a block size.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0usize..700, 2 => 700usize..9000, 1 => 60_000usize..140_000]
}

impl Scalars {
    fn formula<T: Scalar>(self, c: &[Cell<T>]) -> Formula<T> {
        match self {
            Scalars::Value(v) => Formula::from(v as f64),
            Scalars::Cell(a) => c[a].into(),
            Scalars::Negative(a) => -c[a],
            Scalars::Conjugate(a) => c[a].conj(),
            Scalars::Root(a) => c[a].sqrt(),
            Scalars::Sum(a, b) => c[a] + c[b],
            Scalars::Difference(a, b) => c[a] - c[b],
            Scalars::Product(a, b) => c[a] * c[b],
            Scalars::Quotient(a, b) => c[a] / c[b],
            Scalars::Larger(a, b) => c[a].max(c[b]),
            Scalars::Nested(a, b, d) => (c[a] - c[b].conj()) / (c[d] + 2.0) * 0.5,
        }
    }
}

impl RandomPass {
    fn pass<T: Scalar>(&self, c: &[Cell<T>], v: &[Vector<T>]) -> Pass<T> {
        let mut pass = Pass::new("random");
        for (cell, formula) in &self.before {
            pass = pass.eval(c[*cell], formula.formula(c));
        }
        for (dst, terms) in &self.updates {
            let mut sum: Option<Expr<T>> = None;
            for RandomTerm { coefficient, minus, factor, vector } in terms {
                let vector = Expr::from(v[*vector]);
                let vector = match factor {
                    Some(f) => v[*f] * vector,
                    None => vector,
                };
                let term = match coefficient {
                    Some(c_) => c_.formula(c) * vector,
                    None => vector,
                };
                sum = Some(match (sum, minus) {
                    (None, false) => term,
                    (None, true) => -term,
                    (Some(sum), false) => sum + term,
                    (Some(sum), true) => sum - term,
                });
            }
            pass = pass.set(v[*dst], sum.unwrap_or(Expr::value(T::zero())));
        }
        for (cell, a, factor, b) in &self.dots {
            let b = Expr::from(v[*b]);
            let b = match factor {
                Some(f) => v[*f] * b,
                None => b,
            };
            pass = pass.dot(c[*cell], v[*a], b);
        }
        for (cell, of) in &self.maxima {
            pass = pass.largest(c[*cell], v[*of]);
        }
        for (cell, formula) in &self.after {
            pass = pass.eval(c[*cell], formula.formula(c));
        }
        pass
    }
}

/// Tests a property, always with the same random numbers.
fn check<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value)) {
    let given = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    let config = Config { cases: given.unwrap_or(cases), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&strategy, |value| {
        property(value);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

/// Random vectors and cells on a device.
fn state<T: Scalar>(dev: &Scope, seed: u64, n: usize) -> (Vec<Cell<T>>, Vec<Vector<T>>) {
    let mut rng = Rng::new(seed);
    let c = cells_of(dev, &rng.vector::<T>(CELLS));
    (c, (0..VECTORS).map(|_| upload(dev, &rng.vector::<T>(n))).collect())
}

fn everything<T: Scalar>(dev: &Scope, c: &[Cell<T>], v: &[Vector<T>]) -> Trace<T> {
    let mut trace = Trace::new();
    trace.cells(dev, "cells", c);
    v.iter().enumerate().for_each(|(i, v)| trace.vector(dev, format!("vector {i}"), *v));
    trace
}

/// A random pass, twice.
pub fn passes_agree<T: Scalar>(make: fn() -> Device) {
    check(40, (random_pass(1..7), length(), any::<u64>()), |(random, n, seed)| {
        on_both!(make, format!("n = {n}"), |dev| {
            let (c, v) = state::<T>(dev, seed, n);
            dev.multi_axpy_dot(random.pass(&c, &v)).unwrap();
            dev.multi_axpy_dot(random.pass(&c, &v)).unwrap();
            everything(dev, &c, &v)
        });
    });
}

/// A random pass on the rows of a random product; vector 0 is the operand, vector 1 the product.
pub fn products_agree<T: Scalar>(make: fn() -> Device) {
    let size = prop_oneof![4 => 1usize..600, 1 => 600usize..20_000];
    check(30, (random_pass(0..5), size, 0usize..60, any::<u64>()), |(mut random, n, per_row, seed)| {
        random.updates.iter_mut().for_each(|(dst, _)| *dst = (*dst).max(1));
        on_both!(make, format!("n = {n}, {per_row} entries a row"), |dev| {
            let (c, v) = state::<T>(dev, seed, n);
            let per_row = per_row.min(200_000 / n);
            let a = random_matrix::<T>(&mut Rng::new(seed), n, n, per_row);
            let a = dev.matrix(Arc::new(a)).unwrap();
            dev.spmv_dot(&a, v[0], v[1], random.pass(&c, &v)).unwrap();
            everything(dev, &c, &v)
        });
    });
}

/// Random passes on the rows of basis operations with random numbers of columns.
pub fn bases_agree<T: Scalar>(make: fn() -> Device) {
    let size = prop_oneof![4 => 0usize..1500, 1 => 40_000usize..70_000];
    check(20, (random_pass(0..4), size, 1usize..12, any::<u64>()), |(random, n, columns, seed)| {
        on_both!(make, format!("n = {n}, {columns} columns"), |dev| {
            let (c, v) = state::<T>(dev, seed, n);
            let basis = crate::basis::random_basis::<T>(dev, &mut Rng::new(!seed), n, columns);
            let h = dev.run_of_cells(columns).unwrap();
            let (g, x) = (dev.run_of_cells(columns * columns).unwrap(), dev.basis(n, columns).unwrap());
            let mut k = Recorder::new(dev, "random basis");
            k.basis_dot(basis, v[0], h);
            k.basis_axpy(basis, h, v[1], random.pass(&c, &v));
            k.basis_dot(basis, v[2], h);
            k.basis_add(basis, h, v[3], random.pass(&c, &v));
            k.basis_gram(basis, basis, g);
            k.basis_combine(basis, g, x);
            k.basis_combine_add(x, g, basis);
            let mut plan = k.finish().and_then(|program| dev.plan(program)).unwrap();
            let run = Run { limit: 1, history: &mut Default::default(), watch: None };
            dev.execute(&mut plan, run).unwrap();
            let mut trace = everything(dev, &c, &v);
            trace.cells(dev, "h", &(0..columns).map(|j| h.at(j)).collect::<Vec<_>>());
            trace.cells(dev, "g", &(0..columns * columns).map(|j| g.at(j)).collect::<Vec<_>>());
            (0..columns).for_each(|j| trace.vector(dev, format!("column {j}"), basis.column(j)));
            trace
        });
    });
}

/// One operation of a random sequence.
#[derive(Clone, Debug)]
enum RandomOp {
    Sweep(RandomPass),
    Product(RandomPass),
    Project(RandomPass),
    Dots,
}

/// A sequence of operations gives the same bits whether or not passes are fused into the sweep before them.
pub fn fusion_changes_nothing<T: Scalar>(make: fn() -> Device) {
    let op = prop_oneof![
        5 => random_pass(0..3).prop_map(RandomOp::Sweep),
        1 => random_pass(0..3).prop_map(RandomOp::Product),
        1 => random_pass(0..3).prop_map(RandomOp::Project),
        1 => Just(RandomOp::Dots),
    ];
    check(80, (vec(op, 2..7), 0usize..400, any::<u64>()), |(mut ops, n, seed)| {
        for op in &mut ops {
            if let RandomOp::Product(pass) = op {
                pass.updates.iter_mut().for_each(|(dst, _)| *dst = (*dst).max(1));
            }
        }
        let run = |fused: bool| {
            let dev = &make().scope();
            let (mut c, v) = state::<T>(dev, seed, n);
            let a = random_matrix::<T>(&mut Rng::new(seed), n, n, 4);
            let a = dev.matrix(Arc::new(a)).unwrap();
            let basis = crate::basis::random_basis::<T>(dev, &mut Rng::new(!seed), n, 3);
            // The coefficients of the basis are among the cells that passes read and write.
            let h = dev.run_of_cells(3).unwrap();
            (0..3).for_each(|j| c[j] = h.at(j));
            let mut k = Recorder::new(dev, "sequence");
            if !fused {
                k.without_fusion();
            }
            for op in &ops {
                match op {
                    RandomOp::Sweep(pass) => k.multi_axpy_dot(pass.pass(&c, &v)),
                    RandomOp::Product(pass) => k.spmv_dot(&a, v[0], v[1], pass.pass(&c, &v)),
                    RandomOp::Project(pass) => k.basis_axpy(basis, h, v[2], pass.pass(&c, &v)),
                    RandomOp::Dots => k.basis_dot(basis, v[3], h),
                }
            }
            let mut plan = k.finish().and_then(|program| dev.plan(program)).unwrap();
            let run = Run { limit: 1, history: &mut Default::default(), watch: None };
            dev.execute(&mut plan, run).unwrap();
            everything(dev, &c, &v)
        };
        run(true).agrees_with(&run(false), "fused against apart");
    });
}
