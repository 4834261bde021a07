//! Several backends at once, each in its own thread.
use crate::bits::Trace;
use crate::reference;
use crate::solves::{Solve, solve};
use lacuna_engine::{Device, Scalar};
use std::sync::mpsc;
use std::time::Duration;

/// Threads that solve at once.
const THREADS: usize = 8;

/// Eight threads, each with its own backend, solve at once: all finish, with the reference's bits.
pub fn several_backends_at_once<T: Scalar>(make: fn() -> Device) {
    let case = |name| Solve { matrix: "gen:poisson2d:70x71", method: name, precond: "jacobi", max_iters: 25 };
    let names = ["cg", "bicgstab", "gmres", "classical-cg"];
    let want: Vec<Trace<T>> = names.iter().map(|name| solve(&reference(), &case(name))).collect();
    let (sender, receiver) = mpsc::channel();
    for thread in 0..THREADS {
        let (sender, name) = (sender.clone(), names[thread % names.len()]);
        std::thread::spawn(move || {
            let dev = &make().scope();
            let case =
                Solve { matrix: "gen:poisson2d:70x71", method: name, precond: "jacobi", max_iters: 25 };
            let traces: Vec<Trace<T>> = (0..2).map(|_| solve(dev, &case)).collect();
            // The receiver is gone if another thread has already failed the test.
            let _ = sender.send((thread, traces));
        });
    }
    drop(sender);
    for _ in 0..THREADS {
        let (thread, traces) = receiver
            .recv_timeout(Duration::from_secs(120))
            .expect("every thread finishes; one of them is stuck or has panicked");
        for trace in traces {
            trace.agrees_with(&want[thread % names.len()], &format!("thread {thread}"));
        }
    }
}
