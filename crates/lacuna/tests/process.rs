//! Concurrent solves and unusual contexts: inside rayon's workers, in many threads, after a fork; and what
//! solves leave untouched.
use lacuna::ndarray::s;
use lacuna::prelude::*;
use rayon::prelude::*;
use std::sync::{Arc, Mutex};

/// A fork does not copy other running threads to the child, so no other test may hold a lock at that moment.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn inside_rayon_and_in_many_threads_the_bits_are_the_same() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // More than 65 536 rows: rayon checks vectors of this length.
    let a = Arc::new(Spec::parse("gen:convection:300x300").unwrap().build::<f64>().unwrap());
    let b = Array1::<f64>::ones(a.rows());
    let solve = |method: &str| {
        let mut dev = default_backend().unwrap();
        let stop = Stop { max_iters: 20, ..Stop::default() };
        let mut system = LinearSystem::new(a.clone()).method(method).stop(stop).prepare(&mut dev).unwrap();
        let (x, outcome) = system.solve(&mut dev, b.view()).unwrap();
        (x, outcome.reason, outcome.iterations)
    };
    let expected = solve("bicgstab");
    assert!(
        (0..8)
            .into_par_iter()
            .map(|_| solve("bicgstab"))
            .collect::<Vec<_>>()
            .iter()
            .all(|got| *got == expected)
    );
    let (left, right) = rayon::join(|| solve("gmres"), || solve("gmres"));
    assert!(left == right);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| solve("bicgstab"))).collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap() == expected));
    });
}

#[test]
fn a_solve_leaves_everything_but_x_alone() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let a = Spec::parse("gen:convection:30x30").unwrap().build::<f64>().unwrap();
    let n = a.rows();
    let dev = &mut default_backend().unwrap();
    let wide = Array2::from_shape_fn((n, 3), |(i, j)| ((i * 7 + j) % 13) as f64 - 6.0);
    let (b, kept) = (wide.column(1), wide.clone());
    for (method, precond) in [("bicgstab", "jacobi"), ("gmres", "jacobi"), ("classical-bicgstab", "none")] {
        let make = || LinearSystem::new(a.clone()).method(method).preconditioner(precond).restart(7);
        let [mut one, mut two] = [(); 2].map(|()| make().prepare(dev).unwrap());
        let (x, outcome) = one.solve(dev, b).unwrap();
        assert!(outcome.converged(), "{method} {precond}: {outcome:?}");
        // Errors between solves.
        assert!(two.solve(dev, Array1::from_elem(n, f64::NAN).view()).is_err());
        assert!(one.solve(dev, b.slice(s![..n - 1])).is_err());
        for system in [&mut two, &mut one] {
            let (y, other) = system.solve(dev, b).unwrap();
            assert!(x == y && outcome.history == other.history, "{method} {precond}");
        }
        // Starting from the solution, no iterations are needed.
        let mut again = x.clone();
        let warm = one.solve_into(dev, b, again.view_mut()).unwrap();
        assert!(warm.converged() && warm.iterations == 0 && again == x, "{method} {precond}");
        let reversed = Array1::from_iter(b.iter().rev().copied());
        let mut into = Array2::<f64>::zeros((n, 2));
        one.solve_into(dev, reversed.slice(s![..;-1]), into.column_mut(1)).unwrap();
        assert!(into.column(1) == x && into.column(0).iter().all(|v| *v == 0.0), "{method} {precond}");
    }
    assert_eq!(wide, kept);
}

/// The exit status of a child: 0 success, 1 different bits, 2 an error, anything else a signal.
#[cfg(unix)]
fn in_child(body: impl FnOnce() -> Result<bool>) -> i32 {
    // SAFETY: the child runs nothing but `body`, and ends by `_exit` or by the alarm's signal.
    unsafe {
        match libc::fork() {
            0 => {
                libc::alarm(10);
                libc::_exit(body().map_or(2, |same| i32::from(!same)))
            }
            child => {
                let mut status = 0;
                libc::waitpid(child, &mut status, 0);
                if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 256 }
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn after_a_fork_a_solve_ends() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let solved = |dev: &mut DefaultBackend, spec: &str| -> Result<Array1<f64>> {
        let a = Spec::parse(spec)?.build::<f64>()?;
        Ok(solve(dev, &a, Array1::ones(a.rows()).view())?.0)
    };
    let dev = &mut default_backend().unwrap();
    for spec in ["gen:poisson2d:30x30", "gen:poisson2d:300x300"] {
        let expected = solved(dev, spec).unwrap();
        let a = Spec::parse(spec).unwrap().build::<f64>().unwrap();
        let b = Array1::ones(a.rows());
        let mut prepared = LinearSystem::new(a).prepare(dev).unwrap();
        for (what, end) in [
            ("the parent's device", in_child(|| Ok(solved(dev, spec)? == expected))),
            ("a device of its own", in_child(|| Ok(solved(&mut default_backend()?, spec)? == expected))),
            ("the parent's system", in_child(|| Ok(prepared.solve(dev, b.view())?.0 == expected))),
        ] {
            assert!([0, 2].contains(&end), "{spec}, {what}: {end}");
        }
        assert!(
            prepared.solve(dev, b.view()).unwrap().0 == expected && solved(dev, spec).unwrap() == expected
        );
    }
}

#[test]
fn a_prepared_system_and_its_device_go_to_another_thread() {
    fn assert_send<T: Send>() {}
    assert_send::<Prepared<f32>>();
    assert_send::<Prepared<Complex64>>();
    assert_send::<LinearSystem<f64>>();
    assert_send::<lacuna::cpu::Cpu>();
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let a = Spec::parse("gen:convection:40x40").unwrap().build::<f64>().unwrap();
    let b = vec![1.0; a.rows()];
    let mut dev = default_backend().unwrap();
    let mut prepared = LinearSystem::new(a).prepare(&mut dev).unwrap();
    let here = prepared.solve(&mut dev, &b).unwrap().0;
    let there = std::thread::spawn(move || prepared.solve(&mut dev, &b).unwrap().0).join().unwrap();
    assert_eq!(here, there);
}

#[test]
fn a_pool_of_the_program_s_gives_the_same_bits_inside_and_outside_of_it() {
    use lacuna::cpu::{Cpu, CpuOptions};
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let a = Arc::new(Spec::parse("gen:convection:120x110").unwrap().build::<f64>().unwrap());
    let b = vec![1.0; a.rows()];
    let solved = |dev: &mut Cpu| {
        let mut prepared = LinearSystem::new(a.clone()).method("bicgstab").prepare(dev).unwrap();
        let (x, outcome) = prepared.solve(dev, &b).unwrap();
        assert!(outcome.converged());
        x
    };
    let expected = solved(&mut Cpu::new().unwrap());
    for threads in [1, 2, 3] {
        let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
        // All threads must be running, so that they really compute.
        for gather in [false, true] {
            let options = CpuOptions { gather, parallel_from: Some(1), ..CpuOptions::default() };
            let mut dev = Cpu::on_pool(pool.clone(), options).unwrap();
            assert_eq!(dev.threads(), threads);
            assert!(solved(&mut dev) == expected, "{threads} threads, from outside");
            assert!(pool.install(|| solved(&mut dev)) == expected, "{threads} threads, from inside");
        }
        let all = pool.broadcast(|_| solved(&mut Cpu::on_pool(pool.clone(), CpuOptions::default()).unwrap()));
        assert!(all.iter().all(|x| *x == expected), "{threads} solves beside each other");
        let wrong = CpuOptions { threads: Some(threads + 1), ..CpuOptions::default() };
        assert!(matches!(Cpu::on_pool(pool.clone(), wrong), Err(Error::Argument { .. })));
    }
}

/// Resident pages of this process, if the system reports them.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn ten_thousand_systems_leave_nothing_behind() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let dev = &mut default_backend().unwrap();
    let a = Arc::new(Spec::parse("gen:convection:20x20").unwrap().build::<f64>().unwrap());
    let b = vec![1.0; a.rows()];
    let (mark, mut at_first, mut first) = (dev.mark(), None, None);
    for k in 0..10_000 {
        let method = ["bicgstab", "gmres", "idr"][k % 3];
        let system = LinearSystem::new(a.clone()).method(method).preconditioner("jacobi");
        let mark = dev.mark();
        let (x, outcome) = system.prepare(dev).unwrap().solve(dev, &b).unwrap();
        dev.release(mark);
        assert!(outcome.converged());
        if k % 3 == 0 {
            assert!(*first.get_or_insert_with(|| x.clone()) == x, "{k}");
        }
        if k == 1000 {
            at_first = resident();
        }
    }
    assert_eq!(dev.mark(), mark);
    if let Some((first, last)) = at_first.zip(resident()) {
        assert!(last < first + 1000, "{last} pages, {first} after a thousand systems");
    }
}
