//! Concurrent solves and unusual contexts: inside rayon's workers, in many threads, after a fork; and what
//! solves leave untouched.
use lacuna::cpu::{Cpu, CpuOptions};
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
        let stop = Stop::default().max_iters(20);
        let mut system = LinearSystem::new(a.clone()).method(method).stop(stop).prepare().unwrap();
        let (x, outcome) = system.solve(b.view()).unwrap();
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
    let wide = Array2::from_shape_fn((n, 3), |(i, j)| ((i * 7 + j) % 13) as f64 - 6.0);
    let (b, kept) = (wide.column(1), wide.clone());
    for (method, precond) in [("bicgstab", "jacobi"), ("gmres", "jacobi"), ("classical-bicgstab", "none")] {
        let make = || LinearSystem::new(a.clone()).method(method).preconditioner(precond).restart(7);
        let [mut one, mut two] = [(); 2].map(|()| make().prepare().unwrap());
        let (x, outcome) = one.solve(b).unwrap();
        assert!(outcome.converged(), "{method} {precond}: {outcome:?}");
        // Errors between solves.
        assert!(two.solve(Array1::from_elem(n, f64::NAN).view()).is_err());
        assert!(one.solve(b.slice(s![..n - 1])).is_err());
        for system in [&mut two, &mut one] {
            let (y, other) = system.solve(b).unwrap();
            assert!(x == y && outcome.history == other.history, "{method} {precond}");
        }
        // Starting from the solution, no iterations are needed.
        let mut again = x.clone();
        let warm = one.solve_into(b, again.view_mut()).unwrap();
        assert!(warm.converged() && warm.iterations == 0 && again == x, "{method} {precond}");
        let reversed = Array1::from_iter(b.iter().rev().copied());
        let mut into = Array2::<f64>::zeros((n, 2));
        one.solve_into(reversed.slice(s![..;-1]), into.column_mut(1)).unwrap();
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
fn after_a_fork_devices_of_the_child_work_and_others_say_why_not() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let solved = |dev: &Device, spec: &str| -> Result<Array1<f64>> {
        let a = Spec::parse(spec)?.build::<f64>()?;
        let b = Array1::ones(a.rows());
        Ok(LinearSystem::new(a).on(dev).prepare()?.solve(b.view())?.0)
    };
    let dev = &default_device().unwrap();
    for spec in ["gen:poisson2d:30x30", "gen:poisson2d:300x300"] {
        let expected = solved(dev, spec).unwrap();
        let a = Spec::parse(spec).unwrap().build::<f64>().unwrap();
        let b = Array1::ones(a.rows());
        let mut prepared = LinearSystem::new(a).prepare().unwrap();
        for (what, end, expected) in [
            ("the parent's device", in_child(|| Ok(solved(dev, spec)? == expected)), 2),
            ("a device of its own", in_child(|| Ok(solved(&Device::new(Cpu::new()?), spec)? == expected)), 0),
            ("the default device", in_child(|| Ok(solved(&default_device()?, spec)? == expected)), 0),
            ("the parent's system", in_child(|| Ok(prepared.solve(b.view())?.0 == expected)), 2),
        ] {
            assert_eq!(end, expected, "{spec}, {what}");
        }
        assert!(prepared.solve(b.view()).unwrap().0 == expected && solved(dev, spec).unwrap() == expected);
    }
}

#[test]
fn a_prepared_system_and_its_device_go_to_another_thread() {
    fn assert_send<T: Send>() {}
    assert_send::<Prepared<f32>>();
    assert_send::<Prepared<Complex64>>();
    assert_send::<LinearSystem<f64>>();
    assert_send::<Cpu>();
    fn assert_shared<T: Send + Sync>() {}
    assert_shared::<Device>();
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let a = Spec::parse("gen:convection:40x40").unwrap().build::<f64>().unwrap();
    let b = vec![1.0; a.rows()];
    let mut prepared = LinearSystem::new(a).method("bicgstab").prepare().unwrap();
    let here = prepared.solve(&b).unwrap().0;
    let there = std::thread::spawn(move || prepared.solve(&b).unwrap().0).join().unwrap();
    assert_eq!(here, there);
}

#[test]
fn a_pool_of_the_program_s_gives_the_same_bits_inside_and_outside_of_it() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let a = Arc::new(Spec::parse("gen:convection:120x110").unwrap().build::<f64>().unwrap());
    let b = vec![1.0; a.rows()];
    let solved = |dev: &Device| {
        let mut prepared = LinearSystem::new(a.clone()).method("bicgstab").on(dev).prepare().unwrap();
        let (x, outcome) = prepared.solve(&b).unwrap();
        assert!(outcome.converged());
        x
    };
    let expected = solved(&Device::new(Cpu::new().unwrap()));
    for threads in [1, 2, 3] {
        let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
        // All threads must be running, so that they really compute.
        for gather in [false, true] {
            let options = CpuOptions::default().gather(gather).parallel_from(1);
            let cpu = Cpu::on_pool(pool.clone(), options).unwrap();
            assert_eq!(cpu.threads(), threads);
            let dev = Device::new(cpu);
            assert!(solved(&dev) == expected, "{threads} threads, from outside");
            assert!(pool.install(|| solved(&dev)) == expected, "{threads} threads, from inside");
        }
        let beside = || Device::new(Cpu::on_pool(pool.clone(), CpuOptions::default()).unwrap());
        let all = pool.broadcast(|_| solved(&beside()));
        assert!(all.iter().all(|x| *x == expected), "{threads} solves beside each other");
        let wrong = CpuOptions::default().threads(threads + 1);
        assert!(matches!(Cpu::on_pool(pool.clone(), wrong), Err(Error::Argument { .. })));
    }
}

/// Resident pages of this process, if the system reports them.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

/// Numbers below a bound, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// Bytes of device memory in use; 0 for a backend that works in the memory of the process.
fn held(dev: &Device) -> u64 {
    match dev.info().backend {
        #[cfg(feature = "opencl")]
        "opencl" => dev.with(|dev: &mut lacuna::opencl::OpenCl| dev.held_bytes()).unwrap(),
        #[cfg(feature = "cuda")]
        "cuda" => dev.with(|dev: &mut lacuna::cuda::Cuda| dev.in_use_bytes() as u64).unwrap(),
        _ => 0,
    }
}

/// A device that no other test uses, or a printed skip if there is none; fails if `LACUNA_REQUIRE` names its backend.
fn own_device(backend: &str) -> Option<Device> {
    match lacuna::open_with(backend, lacuna::DeviceOptions::default().threads(2)) {
        Ok(dev) => Some(dev),
        Err(error) => {
            let required = std::env::var("LACUNA_REQUIRE").unwrap_or_default();
            assert!(
                !required.split(',').any(|name| name.trim() == backend),
                "required but not there: {error}"
            );
            eprintln!("SKIPPED: many systems on `{backend}`: {error}");
            None
        }
    }
}

/// Ten thousand systems if `LACUNA_MANY` is set; otherwise some hundred on the CPU, and fewer where kernels are launched.
#[test]
fn many_systems_dropped_in_any_order_leave_nothing_behind() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for backend in lacuna::backends().into_iter().filter(|backend| backend.built_in) {
        let some = if backend.name == "cpu" { 600 } else { 120 };
        let many = if std::env::var_os("LACUNA_MANY").is_some() { 10_000 } else { some };
        if let Some(dev) = own_device(backend.name) {
            let start = std::time::Instant::now();
            many_systems(&dev, many);
            eprintln!("{}: {many} systems in {:.1?}", backend.name, start.elapsed());
        }
    }
}

fn many_systems(dev: &Device, many: usize) {
    let specs = ["gen:convection:20x20", "gen:convection:31x17:5", "gen:convection:9x8"];
    let matrices = specs.map(|spec| Arc::new(Spec::parse(spec).unwrap().build::<f64>().unwrap()));
    let methods = ["bicgstab", "gmres", "idr"].map(|method| ["none", "jacobi", "ilu0"].map(|p| (method, p)));
    let kinds: Vec<_> =
        matrices.iter().flat_map(|a| methods.as_flattened().iter().map(move |names| (a, *names))).collect();
    let nothing = dev.in_use();
    assert_eq!((nothing.vectors, nothing.cells, nothing.matrices, nothing.plans), (0, 0, 0, 0));
    let mut first: Vec<Option<Array1<f64>>> = vec![None; kinds.len()];
    let (mut alive, mut random, mut marks) = (Vec::new(), Random(1), Vec::new());
    for made in 0..many {
        let kind = random.below(kinds.len());
        let (a, (method, precond)) = &kinds[kind];
        let system = LinearSystem::new(Arc::clone(a)).method(method).preconditioner(precond);
        alive.push((kind, system.on(dev).prepare().unwrap()));
        // Whichever solves, it does so in memory that others had before, and with its own numbers.
        let which = random.below(alive.len());
        let (kind, prepared) = &mut alive[which];
        let (x, outcome) = prepared.solve(&vec![1.0; kinds[*kind].0.rows()]).unwrap();
        assert!(outcome.converged(), "{made}: {outcome:?}");
        assert!(
            *first[*kind].get_or_insert_with(|| x.clone()) == x,
            "{made}: other bits, {:?}",
            kinds[*kind].1
        );
        let keep = random.below(8);
        while alive.len() > keep {
            alive.swap_remove(random.below(alive.len()));
        }
        if made % (many / 8) == 0 {
            marks.push((held(dev), resident()));
            eprintln!("{made} systems: {} bytes on the device, {:?} pages", held(dev), resident());
        }
    }
    drop(alive);
    assert_eq!(dev.in_use(), nothing);
    let later = &marks[2..];
    let (last, (bytes, _)) = (held(dev), later[0]);
    assert!(last <= 2 * bytes, "{last} bytes on the device, {bytes} after a quarter of the systems");
    // Kernels are compiled beside the solves, until each kind has been solved some times, and a driver takes pages now and then;
    // what every system leaves behind would grow in each eighth.
    let settled = many / 4 >= 5 * kinds.len();
    let grown = later.windows(2).filter_map(|two| Some(two[1].1? as i64 - two[0].1? as i64));
    assert!(!settled || grown.min().is_none_or(|least| least < 64), "pages by eighths: {marks:?}");
}
