//! New values on the same pattern: the same bits as a newly prepared system, no growth in memory; and the
//! errors.
use super::own_device;
use lacuna::prelude::*;

fn matrix() -> Csr<f64> {
    Spec::parse("gen:convection:9x8:5").unwrap().build().unwrap()
}

fn system(a: Csr<f64>, reorder: &str, precond: &str) -> LinearSystem<f64> {
    LinearSystem::new(a).method("bicgstab").preconditioner(precond).format("csr").reorder(reorder)
}

/// Values that differ between steps.
fn values(a: &Csr<f64>, step: usize) -> Vec<f64> {
    let grown = |(k, v): (usize, &f64)| v * (1.0 + 1e-3 * ((3 * k + step) % 7) as f64);
    a.values().iter().enumerate().map(grown).collect()
}

/// Resident pages of this process, if the system reports them.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn ten_thousand_updates_leave_nothing_behind_and_give_the_bits_of_a_system_made_anew() {
    for (reorder, precond) in [("none", "jacobi"), ("rcm", "neumann:order=2")] {
        let a = matrix();
        let b = Array1::from_iter((0..a.rows()).map(|i| 1.0 + i as f64));
        let dev = own_device();
        let mut prepared = system(a.clone(), reorder, precond).on(&dev).prepare().unwrap();
        let (before, mut at_first) = (dev.in_use(), None);
        for step in 0..10_000 {
            prepared.update_values(&values(&a, step)).unwrap();
            let (x, outcome) = prepared.solve(b.view()).unwrap();
            assert!(outcome.converged());
            if step % 1000 == 0 {
                let mut fresh = a.clone();
                fresh.set_values(&values(&a, step)).unwrap();
                let mut anew = system(fresh, reorder, precond).prepare().unwrap();
                assert_eq!(x, anew.solve(b.view()).unwrap().0, "{step}");
            }
            if step == 1000 {
                at_first = resident();
            }
        }
        assert_eq!(dev.in_use(), before);
        if let Some((first, last)) = at_first.zip(resident()) {
            // Other tests run beside this one.
            assert!(last < first + 2000, "{last} pages, {first} after a thousand updates");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_and_the_system_stays_as_it_was() {
    let a = matrix();
    let mut prepared = system(a.clone(), "none", "jacobi").prepare().unwrap();
    let b = Array1::ones(a.rows());
    let before = prepared.solve(b.view()).unwrap().0;
    assert!(matches!(prepared.update_values(&[1.0]), Err(Error::Length { .. })));
    let mut bad = a.values().to_vec();
    bad[5] = f64::NAN;
    assert!(matches!(prepared.update_values(&bad), Err(Error::Entry { .. })));
    assert_eq!(prepared.solve(b.view()).unwrap().0, before);
    // Jacobi rejects a zero on the diagonal, and names its row.
    bad.copy_from_slice(a.values());
    let row = 7;
    let at = (a.row_ptr()[row] as usize..).find(|&k| a.col_idx()[k] as usize == row).unwrap();
    bad[at] = 0.0;
    assert!(matches!(prepared.update_values(&bad), Err(Error::Entry { row: 7, column: 7, .. })));
    prepared.update_values(a.values()).unwrap();
    assert_eq!(prepared.solve(b.view()).unwrap().0, before);
}

#[test]
fn options_stand_in_names() {
    let b = Array1::ones(matrix().rows());
    for (method, precond) in [("gmres:restart=7", "neumann:order=4,omega=0.8"), ("bicgstab", "neumann")] {
        let mut prepared =
            LinearSystem::new(matrix()).method(method).preconditioner(precond).prepare().unwrap();
        assert!(prepared.solve(b.view()).unwrap().1.converged());
        assert_eq!(
            (prepared.method().name.as_str(), prepared.preconditioner().name.as_str()),
            (method, precond)
        );
    }
    let refused = |method: &str, precond: &str| {
        let system = LinearSystem::new(matrix()).method(method).preconditioner(precond).prepare();
        system.err().unwrap().to_string()
    };
    assert!(refused("gmres:cycle=3", "none").contains("its options are restart=30"));
    assert!(refused("gmres", "neumann:degree=3").contains("its options are order=3"));
    assert!(refused("gmres", "neumann:omega=3").contains("above 0 and below 2"));
    assert!(refused("gmres", "ilu").contains("expected one of auto, none, jacobi"));
}

/// Two sweeps of Jacobi's method, by a struct of this file.
struct TwoSweeps;

impl<T: Scalar> Preconditioner<T> for TwoSweeps {
    fn set_up(&mut self, a: &Csr<T>, _: &mut Setup<'_>) -> Result<Parts<T>> {
        let d = lacuna::solvers::inverse_diagonal(a)?;
        Ok(Parts::new().vector(d).scratch(a.rows()).scratch(a.rows()).report("sweeps", 2))
    }
    fn apply(&self, k: &mut Recorder<'_, T>, on: &Handles<T>, r: Vector<T>, z: Vector<T>, then: Pass<T>) {
        let ([d], [s, t]) = (on.vectors(), on.scratch());
        k.multi_axpy_dot(Pass::new("first").set(s, d * r));
        k.spmv_dot(&on.a(), s, t, Pass::new("second").set(z, s + d * r - d * t).then(then));
    }
}

#[test]
fn what_the_preconditioner_reports_is_that_of_the_last_values() {
    let a = Spec::parse("gen:poisson2d:40x40").unwrap().build::<f64>().unwrap();
    let b = Array1::ones(a.rows());
    let mut prepared = LinearSystem::new(a.clone()).preconditioner("amg").prepare().unwrap();
    let mut parts_of_setup = || {
        let choices = prepared.solve(b.view()).unwrap().1.choices;
        let lines: Vec<_> = choices.into_iter().filter(|line| line.contains(" set-up ")).collect();
        let doubled: Vec<f64> = a.values().iter().map(|v| 2.0 * v).collect();
        prepared.update_values(&doubled).unwrap();
        lines
    };
    let (made, updated) = (parts_of_setup(), parts_of_setup());
    assert_eq!((made.len(), updated.len()), (1, 1));
    // The aggregates are kept.
    assert!(made[0].contains("aggregates") && !updated[0].contains("aggregates"), "{made:?} {updated:?}");
}

#[test]
fn a_preconditioner_of_ones_own_is_updated_and_tells_what_it_made() {
    let a = matrix();
    let mut prepared = LinearSystem::new(a.clone()).preconditioner(TwoSweeps).prepare().unwrap();
    let b = Array1::ones(a.rows());
    let plain = LinearSystem::new(a.clone()).preconditioner("none").prepare().unwrap().solve(b.view());
    let (plain, own) = (plain.unwrap().1, prepared.solve(b.view()).unwrap().1);
    assert!(own.converged() && own.iterations < plain.iterations);
    assert!(own.choices.contains(&"preconditioner own: sweeps 2".to_string()), "{:?}", own.choices);
    prepared.update_values(&values(&a, 3)).unwrap();
    assert!(prepared.solve(b.view()).unwrap().1.converged());
}
