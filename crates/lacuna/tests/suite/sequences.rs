//! Random sequences of new values and right-hand sides, hostile ones among them: whatever came before, a solve that says
//! `converged` has a small residual on the host, `x` stays finite, and values that a new system solves are solved.
use lacuna::prelude::*;
use lacuna::solvers::{residual_norm, vector_norm};

/// Sequences; more if `LACUNA_SEQUENCES` says so.
const SEQUENCES: u64 = 60;
const STEPS: usize = 8;
const RTOL: f64 = 1e-8;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
    /// Between −1 and 1.
    fn number(&mut self) -> f64 {
        self.below(1 << 20) as f64 / (1 << 19) as f64 - 1.0
    }
    fn one_of<V: Copy>(&mut self, of: &[V]) -> V {
        of[self.below(of.len())]
    }
}

/// A small matrix with some kind of values.
fn matrix(random: &mut Random) -> Csr<f64> {
    let spec = random.one_of(&[
        "gen:poisson2d:9x8",
        "gen:convection:10x9:5",
        "gen:poisson-p1:8",
        "gen:dense:12",
        "gen:poisson2d:40x40",
        "gen:elasticity3d:2",
        "gen:poisson2d:1x1",
    ]);
    Spec::parse(spec).unwrap().build().unwrap()
}

/// New values for a matrix: well-behaved or not.
fn values(random: &mut Random, a: &Csr<f64>) -> Vec<f64> {
    let mut values = a.values().to_vec();
    match random.below(12) {
        0 => {}
        1 => values.iter_mut().for_each(|v| *v *= 1.0 + 1e-3 * random.number()),
        2 => values.iter_mut().for_each(|v| *v *= -1.0),
        3 => {
            let by = random.one_of(&[1e-250, 1e-30, 1e30, 1e250, f64::MIN_POSITIVE]);
            values.iter_mut().for_each(|v| *v *= by);
        }
        4 => values.iter_mut().for_each(|v| *v = random.number()),
        5 => values.iter_mut().for_each(|v| *v = 0.0),
        6 => {
            let row = random.below(a.rows());
            values[a.row_ptr()[row] as usize..a.row_ptr()[row + 1] as usize].fill(0.0);
        }
        7 => {
            let places = values.len();
            values[random.below(places)] = random.one_of(&[f64::NAN, f64::INFINITY]);
        }
        8 => _ = values.pop(),
        9 => {
            // Units of its own for each row.
            for row in 0..a.rows() {
                let unit = 10f64.powi(random.below(25) as i32 - 12);
                values[a.row_ptr()[row] as usize..a.row_ptr()[row + 1] as usize]
                    .iter_mut()
                    .for_each(|v| *v *= unit);
            }
        }
        10 => {
            let of = a.entries().map(|(i, j, v)| if i == j { 0.0 } else { v });
            values = of.collect();
        }
        _ => {
            let of = a.entries().map(|(i, j, v)| if i == j { v.abs() * a.rows() as f64 } else { v });
            values = of.collect();
        }
    }
    values
}

fn right_hand_side(random: &mut Random, n: usize) -> Vec<f64> {
    let by = random.one_of(&[0.0, 1.0, 1.0, 1.0, 1e-290, 1e290, -3.0]);
    let mut b: Vec<f64> = (0..n).map(|_| by * random.number()).collect();
    if random.below(12) == 0 {
        b[random.below(n)] = f64::NAN;
    }
    b
}

/// `‖b − A x‖ / ‖b‖`, with everything brought near 1 by powers of two.
fn residual(a: &Csr<f64>, b: &[f64], x: &[f64]) -> f64 {
    let exponent = |v: &[f64]| {
        let most = v.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        if most == 0.0 { 0 } else { -(most.log2().floor() as i32) }
    };
    let times = |v: &[f64], by: i32| -> Vec<f64> { v.iter().map(|v| v.scale_by_power_of_two(by)).collect() };
    let (of_a, of_b) = (exponent(a.values()), exponent(b));
    let (near, b) = (a.with_values(times(a.values(), of_a)).unwrap(), times(b, of_b));
    // x is what b and A make it, as long as it is in range.
    residual_norm(&near, &b, &times(x, of_b - of_a)) / vector_norm(&b)
}

/// What a solve promises.
fn check(a: &Csr<f64>, b: &[f64], x: &[f64], outcome: &Outcome, at: &str) {
    assert!(x.iter().all(|v| v.is_finite()), "{at}: {outcome:?}");
    if outcome.converged() && b.iter().any(|v| *v != 0.0) {
        let residual = residual(a, b, x);
        assert!(residual <= 1.01 * RTOL, "{at}: {residual:e}, {outcome:?}");
    }
    if !outcome.converged() {
        assert!(!outcome.why.is_empty() && !outcome.advice.is_empty(), "{at}: {outcome:?}");
    }
}

fn sequence(seed: u64) {
    let random = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    random.below(2);
    let given = matrix(random);
    let method =
        random.one_of(&["auto", "auto", "auto", "cg", "bicgstab", "gmres", "minres", "idr", "direct"]);
    let preconditioner = match method {
        "direct" => "auto",
        _ => random.one_of(&["auto", "auto", "none", "jacobi", "ilu0", "ilut", "amg", "ssor", "fsai"]),
    };
    let (refined, order) = (random.below(5) == 0, random.one_of(&["none", "none", "rcm", "matching"]));
    let made = |a: &Csr<f64>| {
        let stop = Stop::default().rtol(RTOL).max_iters(2000);
        let system = LinearSystem::new(a.clone()).method(method).preconditioner(preconditioner).stop(stop);
        system.reorder(order).refine(refined).prepare()
    };
    let name =
        format!("sequence {seed}: {method} {preconditioner} {order} refined {refined}, n = {}", given.rows());
    let Ok(mut system) = made(&given) else { return };
    let (n, mut a, mut refused) = (given.rows(), given.clone(), false);
    for step in 0..STEPS {
        let at = format!("{name}, step {step}");
        if random.below(2) == 0 {
            let values = values(random, &given);
            let whole = given.with_values(values.clone());
            match (system.update_values(&values), whole) {
                (Ok(()), Ok(whole)) => (a, refused) = (whole, false),
                (Err(error), Ok(whole)) => {
                    assert!(!error.to_string().is_empty());
                    // The order stays that of former values, and so does what is asked for.
                    let same = order == "none" && (method != "auto" || preconditioner == "auto");
                    assert!(!same || made(&whole).is_err(), "{at}: a new system takes the values: {error}");
                    refused = true;
                }
                (Err(_), Err(_)) => {} // the values before still hold
                (Ok(()), Err(error)) => panic!("{at}: values are taken, though {error}"),
            }
        }
        if random.below(3) == 0 {
            let columns: Vec<_> = (0..random.below(4)).map(|_| right_hand_side(random, n)).collect();
            let b = Array2::from_shape_fn((n, columns.len()), |(i, j)| columns[j][i]);
            let mut x = Array2::zeros(b.raw_dim());
            match system.solve_columns(b.view(), x.view_mut()) {
                Ok(outcomes) => {
                    assert!(!refused || columns.is_empty(), "{at}: values that were refused are solved");
                    assert_eq!(outcomes.len(), columns.len());
                    for (j, (b, outcome)) in columns.iter().zip(&outcomes).enumerate() {
                        check(&a, b, &x.column(j).to_vec(), outcome, &format!("{at}, column {j}"));
                    }
                }
                Err(error) => {
                    let bad = columns.iter().flatten().any(|v| !v.is_finite());
                    assert!(bad || refused, "{at}: {error}");
                    assert!(x.iter().all(|v| v.is_finite()), "{at}");
                }
            }
            continue;
        }
        let b = right_hand_side(random, n);
        match system.solve(&b) {
            Ok((x, outcome)) => {
                assert!(!refused, "{at}: values that were refused are solved");
                check(&a, &b, x.as_slice().unwrap(), &outcome, &at);
                // Where nothing is left to choose, the order and the places of entries stay those of former values.
                let open = method == "auto" && order == "none" && !refined;
                if open && !outcome.converged() && outcome.reason != Reason::Limit {
                    let anew = made(&a).and_then(|mut anew| anew.solve(&b));
                    let solved = anew.is_ok_and(|(_, outcome)| outcome.converged());
                    assert!(!solved, "{at}: a new system converges: {outcome:?}");
                }
            }
            Err(error) => assert!(refused || b.iter().any(|v| !v.is_finite()), "{at}: {error}"),
        }
    }
}

#[test]
fn what_came_before_changes_no_promise() {
    let many = std::env::var("LACUNA_SEQUENCES").ok().and_then(|many| many.parse().ok()).unwrap_or(SEQUENCES);
    (0..many).for_each(sequence);
}
