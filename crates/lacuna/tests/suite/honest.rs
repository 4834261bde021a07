//! The outcome of a solve must describe the vector returned: at the ends of the number range, on singular and
//! indefinite systems, and where rounding limits what a recurrence can show.
use lacuna::prelude::*;
use lacuna::solvers::{METHODS, MethodInfo, PRECONDITIONERS, residual_norm, vector_norm};

fn matrix<T: Scalar>(n: usize, entries: impl IntoIterator<Item = (usize, usize, f64)>) -> Csr<T> {
    let mut triplets = Triplets::new(n, n);
    entries.into_iter().for_each(|(i, j, v)| triplets.push(i, j, T::from_real(v)));
    triplets.to_csr().unwrap()
}
fn tridiagonal<T: Scalar>(n: usize, below: f64, diagonal: impl Fn(usize) -> f64, above: f64) -> Csr<T> {
    let rows = (0..n).flat_map(|i| {
        let below = (i > 0).then(|| (i, i.wrapping_sub(1), below));
        let above = (i + 1 < n).then(|| (i, i + 1, above));
        below.into_iter().chain([(i, i, diagonal(i))]).chain(above)
    });
    matrix(n, rows.collect::<Vec<_>>())
}
fn ones<T: Scalar>(n: usize) -> Array1<T> {
    Array1::from_elem(n, T::one())
}

/// The exact relative residual, computed from numbers scaled near 1 by powers of two.
fn residual<T: Scalar>(a: &Csr<T>, b: &Array1<T>, x: &Array1<T>) -> f64 {
    let largest = |values: &[T]| values.iter().fold(0.0f64, |l, v| l.max(v.modulus()));
    let exponent = |values: &[T]| if largest(values) > 0.0 { -largest(values).log2() as i32 } else { 0 };
    let scaled =
        |values: &[T], e: i32| -> Vec<T> { values.iter().map(|v| v.scale_by_power_of_two(e)).collect() };
    let (values, b) = (a.values(), b.as_slice().unwrap());
    let (of_a, of_b) = (exponent(values), exponent(b));
    let a = a.with_values(scaled(values, of_a)).unwrap();
    let (b, x) = (scaled(b, of_b), scaled(x.as_slice().unwrap(), of_b - of_a));
    residual_norm(&a, &b, &x) / vector_norm(&b)
}

/// Solves, checks the properties that hold for every solve, and returns the outcome.
fn honest<T: Scalar>(name: &str, system: LinearSystem<T>, a: &Csr<T>, b: &Array1<T>, rtol: f64) -> Outcome {
    let mut system = system.prepare().unwrap_or_else(|e| panic!("{name}: {e}"));
    let (x, outcome) = system.solve(b.view()).unwrap();
    assert!(x.iter().all(|v| v.finite()), "{name}: {outcome:?}");
    let exact = residual(a, b, &x);
    let bound = if outcome.converged() { 1.01 * rtol } else { 1.01 };
    assert!(exact <= bound, "{name}: {exact:e}, {outcome:?}");
    if outcome.iterations < 10_000 {
        let reported = outcome.true_residual;
        assert!(
            (reported - exact).abs() <= 0.1 * exact + 1e-3 * bound,
            "{name}: reported {reported:e}, is {exact:e}, {outcome:?}"
        );
    }
    outcome
}
fn by_default<T: Scalar>(name: &str, a: Csr<T>, b: Array1<T>) -> Outcome {
    honest(name, LinearSystem::new(a.clone()), &a, &b, LinearSystem::<T>::DEFAULT_RTOL)
}
fn by<T: Scalar>(name: &str, method: &str, a: Csr<T>, b: Array1<T>) -> Outcome {
    honest(name, LinearSystem::new(a.clone()).method(method), &a, &b, LinearSystem::<T>::DEFAULT_RTOL)
}

/// The methods whose residual is `b − A x`.
fn square() -> impl Iterator<Item = &'static MethodInfo> {
    METHODS.iter().filter(|info| !info.least_squares())
}

/// A system whose solution is far outside the number range has no solution here; one just inside the range
/// has.
fn ends<T: Scalar>(systems: &[(f64, f64)]) {
    for &(a, b) in systems {
        for info in square() {
            let a = matrix::<T>(1, [(0, 0, a)]);
            let b = Array1::from_elem(1, T::from_real(b));
            let outcome = by(&format!("{a:?} x = {b}, {}", info.name), info.name, a, b);
            assert!(outcome.converged() || outcome.reason == Reason::OutOfRange, "{outcome:?}");
        }
    }
}

#[test]
fn converged_is_said_of_what_is_handed_back() {
    let pairs =
        [(1e300, 1e-300), (1e200, 1e-200), (1e-200, 1e200), (1e-300, 1e300), (1e100, 1e-215), (4.0, 5e-324)];
    ends::<f64>(&pairs);
    ends::<Complex64>(&pairs);
    let pairs = [(1e30, 1e-30), (1e-20, 1e25), (1e-30, 1e30), (1e10, 1e-30), (4.0, 1e-45), (1e15, 1e-28)];
    ends::<f32>(&pairs);
    ends::<Complex32>(&pairs);
    for (scale, b) in [(1e150, 1e-200), (1e120, 1e-200), (1e-120, 1e200)] {
        let a = tridiagonal::<f64>(20, -scale, |_| 3.0 * scale, -scale);
        let outcome = by_default("out of range", a, Array1::from_elem(20, b));
        assert_eq!(outcome.reason, Reason::OutOfRange, "{outcome:?}");
    }
}

#[test]
fn a_factor_leaves_small_entries_their_digits() {
    let a = matrix::<f64>(2, [(0, 0, 1e200), (1, 1, 1e-150)]);
    let solution = Array1::from(vec![1e-200, 1e150]);
    for method in ["auto", "direct", "jacobi"] {
        let system = LinearSystem::new(a.clone()).method(method);
        let (x, outcome) = system.prepare().unwrap().solve(&ones(2)).unwrap();
        assert!(outcome.converged(), "{method}: {outcome:?}");
        assert!(x.iter().zip(&solution).all(|(x, exact)| (x / exact - 1.0).abs() < 1e-7), "{method}: {x}");
        let system = LinearSystem::new(a.clone()).method(method).x0(&solution);
        let outcome = system.prepare().unwrap().solve(&ones(2)).unwrap().1;
        assert!(outcome.converged() && outcome.iterations == 0, "{method}: {outcome:?}");
    }
}

#[test]
fn entries_that_no_factor_brings_into_the_range_are_named() {
    let a = matrix::<f64>(2, [(0, 0, 1e300), (1, 1, 1e-300)]);
    let named = |text: &str| text.contains("from 1.0e-300 to 1.0e300") && !text.contains("singular");
    for method in ["direct", "jacobi"] {
        let refused = LinearSystem::new(a.clone()).method(method).prepare().err().unwrap().to_string();
        assert!(named(&refused), "{refused}");
    }
    for guess in [0.0, 1e300] {
        let system = LinearSystem::new(a.clone()).x0(&[1.0 / 1e300, guess]);
        let outcome = system.prepare().unwrap().solve(&ones(2)).unwrap().1;
        assert!(!outcome.converged() && outcome.true_residual <= 1.0, "{outcome:?}");
        assert!(outcome.reason != Reason::AccuracyAttained, "{outcome:?}");
        let notes = outcome.notes.iter().filter(|note| note.contains("1e-300") || note.contains("1.0e-300"));
        assert!(notes.count() > 0 && !outcome.notes.join(" ").contains("singular"), "{outcome:?}");
        assert!(named(&outcome.choices.join(" ")), "{outcome:?}");
    }
    let wide = matrix::<f64>(2, [(0, 0, 1.0), (1, 1, 1e-60)]);
    let system = LinearSystem::new(wide).preconditioner("jacobi").refine(true);
    let refused = system.prepare().err().unwrap().to_string();
    assert!(refused.contains("from 1.0e-60 to 1.0e0") && refused.contains("f32"), "{refused}");
}

#[test]
fn a_factor_of_the_matrix_changes_nothing() {
    fn of<T: Scalar>(exponents: &[i32]) {
        for info in square() {
            let below = if info.hermitian() { -1.0 } else { -1.5 };
            let mut first = None;
            for &exponent in exponents {
                let scale = 2f64.powi(exponent);
                let a = tridiagonal::<T>(40, below * scale, |i| (3.0 + (i % 3) as f64) * scale, -scale);
                let outcome = by(&format!("2^{exponent}, {}", info.name), info.name, a, ones(40));
                assert!(outcome.converged(), "{} 2^{exponent}: {outcome:?}", info.name);
                // An odd power of two has no exact square root, and minres takes the root of the norm in M.
                let residual = if info.name == "minres" { 0.0 } else { outcome.true_residual };
                let facts = (outcome.iterations, residual.to_bits());
                let (first, backward) = *first.get_or_insert((facts, outcome.backward_error));
                assert_eq!(first, facts, "{} 2^{exponent}", info.name);
                let near = if info.name == "minres" { 1e-3 } else { 1e-12 };
                assert!((outcome.backward_error / backward - 1.0).abs() < near, "{} 2^{exponent}", info.name);
            }
        }
    }
    of::<f64>(&[0, 700, -700, 510, -510, 170, 3]);
    of::<Complex64>(&[0, 900, -500]);
    of::<f32>(&[0, 66, -66, -99, 22]);
    of::<Complex32>(&[0, 100, -66]);
}

#[test]
fn a_residual_is_not_taken_for_small_because_its_rounding_is() {
    // Jordan blocks: x grows like 10⁵ᵏ, and a residual in working precision is noise.
    for (n, above, method) in
        [(4, 1e5, "gmres"), (5, 1e4, "bicgstab"), (5, 1e5, "gmres"), (8, 100.0, "gmres")]
    {
        let a = tridiagonal::<f64>(n, 0.0, |_| 1.0, above);
        let _ = by("jordan", method, a, Array1::from_iter((0..n).map(|i| 1.0 / (1.0 + i as f64))));
        let a = tridiagonal::<f32>(n.min(5), 0.0, |_| 1.0, above / 30.0);
        let _ = by("jordan in f32", method, a, ones(n.min(5)));
    }
}

#[test]
fn where_rounding_ends_a_recurrence_the_classical_form_goes_on() {
    for (step, spread) in [(0.1, 1e-5), (0.3, 1e-10)] {
        // D A D with graded D.
        let d = |i: usize| f64::powf(spread, step * i as f64);
        let n = 12usize;
        let entries = (0..n).flat_map(|i| {
            let below = (i > 0).then(|| (i, i.wrapping_sub(1), -d(i) * d(i.wrapping_sub(1))));
            let above = (i + 1 < n).then(|| (i, i + 1, -d(i) * d(i + 1)));
            below.into_iter().chain([(i, i, 2.5 * d(i) * d(i))]).chain(above).collect::<Vec<_>>()
        });
        let a = matrix::<f64>(n, entries);
        let classical = by("graded, classical", "classical-cg", a.clone(), ones(n));
        let outcome = by("graded", "cg", a, ones(n));
        assert!(outcome.converged() || !classical.converged(), "{outcome:?}\n{classical:?}");
    }
    // At the limit of a number type the precision is to blame, not the preconditioner.
    let a = Spec::parse("gen:poisson-p1:31").unwrap().build::<f64>().unwrap();
    for rtol in [1e-16, 1e-20, 0.0] {
        let system = LinearSystem::new(a.clone()).stop(Stop::default().rtol(rtol));
        let outcome = honest("p1", system, &a, &ones(a.rows()), 1e-15);
        let named =
            matches!(outcome.reason, Reason::Converged | Reason::Stagnated | Reason::AccuracyAttained);
        assert!(named && outcome.true_residual < 4.6e-14, "{outcome:?}");
    }
}

#[test]
fn rounding_is_not_blamed_for_a_row_that_is_far_from_its_own_terms() {
    // The first row hides how far the last two, which contradict each other, are from a least residual.
    let entries = [(0, 0, 1e17), (1, 1, 1.0), (2, 2, 1.0), (2, 3, 1.0), (3, 2, 1.0), (3, 3, 1.0)];
    let b = Array1::from(vec![1.0, 1.0, 1.0, 2.0]);
    let outcome = by("a large row", "gmres", matrix::<f64>(4, entries), b);
    assert!(
        outcome.backward_error < f64::EPSILON && outcome.reason != Reason::AccuracyAttained,
        "{outcome:?}"
    );
}

#[test]
fn singular_systems_are_explained_and_x_is_no_worse_than_the_guess() {
    let line = |n: usize| tridiagonal::<f64>(n, -1.0, |i| if i == 0 || i + 1 == n { 1.0 } else { 2.0 }, -1.0);
    for info in square() {
        for precond in PRECONDITIONERS.iter().filter(|p| info.accepts(p) && !p.needs_stencil) {
            let a = line(50);
            let system = LinearSystem::new(a.clone()).method(info.name).preconditioner(precond.name);
            if precond.name == "direct" {
                let refused = system.prepare().err().unwrap();
                assert!(
                    matches!(&refused, Error::Unsupported { message, .. } if message.contains("singular")),
                    "{refused}"
                );
                continue;
            }
            let outcome = honest(info.name, system, &a, &ones(50), 1e-8);
            let notes = outcome.notes.join("; ");
            assert!(
                !outcome.converged() && notes.contains("sum to 0") && notes.contains("no x"),
                "{outcome:?}"
            );
        }
        let a = matrix::<f64>(3, [(0, 0, 2.0), (2, 2, 3.0)]);
        let outcome = by("an empty row", info.name, a, ones(3));
        assert!(
            outcome.notes.iter().any(|note| note.contains("row 1 (counted from 0) has no nonzero entry")),
            "{outcome:?}"
        );
    }
    let twice = matrix::<f64>(2, [(0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.0)]);
    for b in [[1.0, 2.0], [0.3, -0.9]] {
        let outcome = by_default("an equation that stands twice", twice.clone(), Array1::from(b.to_vec()));
        let notes = outcome.notes.join("; ");
        assert!(notes.contains("the rank of A is 1 of 2") && notes.contains("no x"), "{outcome:?}");
        assert_ne!(outcome.reason, Reason::AccuracyAttained);
    }
    let consistent = Array1::from_iter((0..50).map(|i| if i < 25 { 1.0 } else { -1.0 }));
    assert!(by_default("consistent", line(50), consistent).converged());
}

#[test]
fn the_automatic_choice_goes_on_where_a_matrix_is_not_what_it_looks_like() {
    // Symmetric with a positive diagonal, but indefinite.
    let shifted = |shift: f64| tridiagonal::<f64>(100, -1.0, |_| 2.0 - shift, -1.0);
    let outcome = by_default("shifted", shifted(0.1), ones(100));
    assert!(outcome.converged() && outcome.iterations <= 2, "{outcome:?}");
    let system = LinearSystem::new(shifted(0.1)).preconditioner("none");
    let outcome = system.prepare().unwrap().solve(&ones(100)).unwrap().1;
    assert!(outcome.converged(), "{outcome:?}");
    assert!(outcome.notes.iter().any(|note| note.contains(" continued from ")), "{outcome:?}");
    let outcome = by("asked for cg", "cg", shifted(0.01), ones(100));
    assert_eq!(outcome.reason, Reason::IndefiniteOperator);
    assert!(outcome.notes.iter().any(|note| note.contains("gmres")), "{outcome:?}");
    // Negative definite.
    let outcome = by_default("negative", tridiagonal::<f64>(60, 1.0, |_| -2.0, 1.0), ones(60));
    assert!(outcome.converged() && outcome.iterations <= 2, "{outcome:?}");
    let negative = LinearSystem::new(tridiagonal::<f64>(60, 1.0, |_| -2.0, 1.0)).preconditioner("none");
    let outcome = negative.prepare().unwrap().solve(&ones(60)).unwrap().1;
    assert!(
        outcome.converged() && outcome.choices[0].contains("method cg") && outcome.iterations <= 60,
        "{outcome:?}"
    );
    // A nearly zero diagonal entry.
    let a =
        matrix::<f64>(4, [(0, 0, 1e-18), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.0), (2, 2, 2.0), (3, 3, 3.0)]);
    assert!(by_default("tiny pivot", a.clone(), ones(4)).converged());
    assert!(by("tiny pivot", "gmres", a, ones(4)).converged());
    // Complex symmetric, solved by a method for Hermitian matrices.
    let mut triplets = Triplets::new(6, 6);
    for i in 0..6 {
        triplets.push(i, i, Complex64::new(2.0, 1.0));
        if i > 0 {
            triplets.push(i, i - 1, Complex64::new(0.0, 1.5));
            triplets.push(i - 1, i, Complex64::new(0.0, 1.5));
        }
    }
    let outcome = by("complex symmetric", "cg", triplets.to_csr().unwrap(), ones(6));
    assert!(
        outcome.converged() || outcome.notes.iter().any(|note| note.contains("not Hermitian")),
        "{outcome:?}"
    );
}

#[test]
fn a_guess_of_another_scale_is_neither_lost_nor_overflows() {
    for (guess, b) in [(1e10, 1e-300), (1e300, 1.0), (1e-300, 1e10)] {
        let a = matrix::<f64>(1, [(0, 0, 1.0)]);
        let b = Array1::from_elem(1, b);
        let system = LinearSystem::new(a.clone()).x0(Array1::from_elem(1, guess).view());
        assert!(honest("guess", system, &a, &b, 1e-8).converged(), "{guess}, {b}");
    }
}

/// Small systems of many kinds, most of them hard or unsolvable.
fn random<T: Scalar>(rng: &mut impl FnMut() -> f64) -> Csr<T> {
    let n = 1 + (rng() * 24.0) as usize;
    let kind = (rng() * 9.0) as usize;
    let scale = if rng() < 0.2 { f64::powf(10.0, (rng() - 0.5) * 1.5 * T::MAX.log10()) } else { 1.0 };
    let mut entries = Vec::new();
    for i in 0..n {
        for j in 0..n {
            let r = rng() - 0.5;
            let v = match kind {
                0 if i == j => 3.0 + r,           // dominant
                0 | 1 if i.abs_diff(j) <= 2 => r, // banded
                2 if j > i && rng() < 0.4 => r,   // nilpotent
                3 if i.abs_diff(j) == 1 => {
                    if i < j {
                        1.0
                    } else {
                        -1.0
                    }
                } // skew
                4 if i % 3 != 1 && rng() < 0.5 => r, // empty rows
                5 if i == j => f64::powi(0.1, 2 * i as i32), // graded
                5 if i.abs_diff(j) == 1 => 0.3 * f64::powi(0.1, (i + j) as i32),
                6 if i == j => 1.0, // Jordan
                6 if j == i + 1 => 1e3,
                7 => 1.0 / (1 + i + j) as f64, // Hilbert
                8 if i == j => {
                    if i == 0 || i + 1 == n {
                        1.0
                    } else {
                        2.0
                    }
                } // a line with Neumann ends
                8 if i.abs_diff(j) == 1 => -1.0,
                _ => 0.0,
            };
            if v * scale != 0.0 && T::from_real(v * scale).finite() && T::from_real(v * scale) != T::zero() {
                entries.push((i, j, v * scale));
            }
        }
    }
    matrix(n, entries)
}

#[test]
fn no_small_system_breaks_the_rules() {
    fn of<T: Scalar>(seeds: std::ops::Range<u64>) -> usize {
        let mut solved = 0;
        for seed in seeds {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            let mut rng = move || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 11) as f64 / (1u64 << 53) as f64
            };
            let a = random::<T>(&mut rng);
            let b = Array1::from_iter((0..a.rows()).map(|_| T::from_real(rng() - 0.5)));
            if b.iter().all(|v| *v == T::zero()) {
                continue;
            }
            let methods: Vec<_> = square().collect();
            let [method, precond] =
                [methods.len(), PRECONDITIONERS.len()].map(|count| (rng() * count as f64) as usize);
            for method in [methods[method].name, "auto"] {
                let system =
                    LinearSystem::new(a.clone()).method(method).preconditioner(PRECONDITIONERS[precond].name);
                let name =
                    format!("{} seed {seed}, {method}, {}", T::KIND.name(), PRECONDITIONERS[precond].name);
                if let Err(refused) = system.prepare() {
                    assert!(
                        matches!(
                            refused,
                            Error::Entry { .. } | Error::Element { .. } | Error::Unsupported { .. }
                        ),
                        "{name}: {refused}"
                    );
                    continue;
                }
                let system =
                    LinearSystem::new(a.clone()).method(method).preconditioner(PRECONDITIONERS[precond].name);
                solved +=
                    usize::from(honest(&name, system, &a, &b, LinearSystem::<T>::DEFAULT_RTOL).converged());
            }
        }
        solved
    }
    assert!(of::<f64>(0..400) > 100);
    assert!(of::<f32>(400..600) > 30);
    assert!(of::<Complex64>(600..800) > 30);
    assert!(of::<Complex32>(800..900) > 15);
}

/// The Hilbert matrix, whose condition no number type bears.
fn hilbert<T: Scalar>(n: usize) -> Csr<T> {
    matrix(n, (0..n * n).map(|k| (k / n, k % n, 1.0 / (k / n + k % n + 1) as f64)))
}

/// A few steps without progress end a method that stays at the level of rounding errors.
#[test]
fn attained_accuracy_ends_what_would_go_on() {
    let a = || tridiagonal::<f64>(30, -1.0, |i| 2.5 + (i % 3) as f64 * 0.1, -1.0);
    for (method, preconditioner, most) in [
        ("direct", "auto", 20),
        ("richardson", "ilu0", 100),
        ("gauss-seidel", "auto", 300),
        ("jacobi", "auto", 400),
        ("sor:omega=1.2", "auto", 300),
    ] {
        let system = LinearSystem::new(a()).method(method).preconditioner(preconditioner);
        let system = system.stop(Stop::default().rtol(1e-17));
        let outcome = honest(method, system, &a(), &ones(30), 1e-17);
        assert_eq!(outcome.reason, Reason::AccuracyAttained, "{method}: {outcome:?}");
        assert!(outcome.iterations <= most && outcome.true_residual < 1e-15, "{method}: {outcome:?}");
    }
    let ended = |outcome: &Outcome| matches!(outcome.reason, Reason::AccuracyAttained | Reason::Stagnated);
    let outcome = honest(
        "hilbert",
        LinearSystem::new(hilbert::<f64>(12)).method("direct").stop(Stop::default().rtol(1e-16)),
        &hilbert(12),
        &ones(12),
        1e-16,
    );
    assert!(outcome.converged() || ended(&outcome) && outcome.iterations <= 50, "{outcome:?}");
    let outcome = by("hilbert in f32", "direct", hilbert::<f32>(12), ones(12));
    assert!(outcome.converged() || ended(&outcome) && outcome.iterations <= 50, "{outcome:?}");
    // A singular one: rows and columns sum to 0.
    let line = tridiagonal::<f64>(200, -1.0, |i| if i % 199 == 0 { 1.0 } else { 2.0 }, -1.0);
    let refused = LinearSystem::new(line.clone()).method("direct").prepare();
    assert!(matches!(&refused, Err(e) if e.to_string().contains("singular")), "{:?}", refused.err());
    let outcome = by("a line without ends", "auto", line, ones(200));
    assert!(!outcome.converged() && outcome.iterations <= 250, "{outcome:?}");
    assert!(outcome.why.contains("no x solves the system"), "{outcome:?}");
    assert_eq!(outcome.advice, "subtract the mean of b, or fix an unknown");
    // What is known from the sums of the columns is not tried.
    assert!(!outcome.notes.iter().any(|note| note.contains(" continued from ")), "{outcome:?}");
}

/// No vector of single precision meets the tolerance: neither `minres` nor the automatic choice tries for long.
#[test]
fn a_graded_matrix_is_not_tried_for_long() {
    let entries = [
        (0, 0, 0.6315),
        (0, 1, -8.51e-6),
        (1, 0, -8.51e-6),
        (1, 1, 4.587e-10),
        (1, 2, -0.0933),
        (2, 1, -0.0933),
        (2, 2, 7.59e7),
    ];
    let a = || matrix::<f32>(3, entries);
    for (method, most) in [("minres", 100), ("auto", 300)] {
        let outcome = by(method, method, a(), Array1::from(vec![0.72, -0.21, 0.3]));
        let ended = matches!(outcome.reason, Reason::AccuracyAttained | Reason::Stagnated);
        assert!(outcome.converged() || ended && outcome.iterations <= most, "{method}: {outcome:?}");
    }
}
