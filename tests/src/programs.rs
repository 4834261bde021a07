//! Programs: sections, tests, counts, confirmations.
use crate::bits::{Trace, cells_of, upload};
use crate::numbers::{Rng, generated};
use crate::on_both;
use lacuna_engine::{
    Cell, Confirm, Device, Finish, Formula, History, Pass, Plan, Reason, Recorder, Run, Scalar, Scope,
};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Records, plans and runs a program.
///
/// # Panics
/// If it cannot be recorded, planned or run.
pub fn run<T: Scalar>(dev: &Scope, limit: u64, body: impl FnOnce(&mut Recorder<'_, T>)) -> (Finish, History) {
    let mut k = Recorder::new(dev, "program");
    body(&mut k);
    let mut plan = k.finish().and_then(|program| dev.plan(program)).unwrap();
    run_again(dev, &mut plan, limit)
}

fn run_again(dev: &Device, plan: &mut Plan, limit: u64) -> (Finish, History) {
    let mut history = History::default();
    let finish = dev.execute(plan, Run { limit, history: &mut history, watch: None }).unwrap();
    (finish, history)
}

fn infinity<T: Scalar>() -> Formula<T> {
    Formula::value(T::from_real(f64::INFINITY))
}

/// Setup runs once; restart runs at the start and whenever the iteration was left; every run starts from the
/// beginning.
pub fn flow<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "flow", |dev| {
        let mut trace = Trace::<T>::new();
        let c = cells_of(dev, &[0.0, 0.0, 0.0, 0.0, 3.0, 7.0].map(T::from_real));
        let (setups, restarts, rounds, in_cycle, cycle, enough) = (c[0], c[1], c[2], c[3], c[4], c[5]);
        let x = upload(dev, &[T::zero(); 300]);
        let one = upload(dev, &[T::one(); 300]);
        let mut k = Recorder::new(dev, "flow");
        k.multi_axpy_dot(Pass::new("setup").eval(setups, setups + 1.0).eval(rounds, 0.0));
        k.restart(|k| {
            k.multi_axpy_dot(Pass::new("restart").eval(restarts, restarts + 1.0).eval(in_cycle, 0.0));
            let pass = Pass::new("enough").stop_if(rounds.gt(enough), Reason::Custom("enough"));
            k.multi_axpy_dot(pass);
        });
        k.each(|k| {
            k.multi_axpy_dot(Pass::new("grow").set(x, x + one).eval(rounds, rounds + 1.0));
            let count = Pass::new("count").eval(in_cycle, in_cycle + 1.0).count(rounds);
            k.multi_axpy_dot(count.leave_if(cycle.le(in_cycle)));
        });
        let mut plan = k.finish().and_then(|program| dev.plan(program)).unwrap();
        for run in 1..=2 {
            let (finish, history) = run_again(dev, &mut plan, 100);
            // Cycles of three: left at 3, 6 and 9, and 9 exceeds `enough`.
            assert_eq!((finish.reason, finish.iterations), (Reason::Custom("enough"), 9));
            let expected = [run as f64, 4.0 * run as f64, 9.0, 0.0].map(T::from_real);
            assert_eq!(dev.read(&c[..4]).unwrap(), expected, "setups, restarts, rounds, in cycle");
            trace.finish("run", &finish, &history);
            trace.vector(dev, "x", x);
            trace.cells(dev, "cells", &c);
        }
        trace
    });
}

/// Conditions within conditions: an operation runs if all tests around it hold; sums, products and cells alike.
pub fn nested_conditions<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "nested conditions", |dev| {
        let mut trace = Trace::<T>::new();
        let c = cells_of(dev, &[0.0, 1.0, 0.0, 0.0, 5.0].map(T::from_real));
        let (zero, one, ran, sum, rounds) = (c[0], c[1], c[2], c[3], c[4]);
        let a = dev.matrix(Arc::new(generated::<T>("gen:poisson2d:20x20"))).unwrap();
        let [x, y] = [3, 4].map(|seed| upload(dev, &Rng::new(seed).vector::<T>(400)));
        let (finish, history) = run(dev, 10, |k| {
            k.each(|k| {
                let tests = [one.gt(zero), zero.gt(one)];
                for (i, outer) in tests.into_iter().enumerate() {
                    for (j, inner) in tests.into_iter().enumerate() {
                        k.when(outer, |k| {
                            k.when(inner, |k| {
                                k.multi_axpy_dot(
                                    Pass::new("cell").eval(ran, ran + (1.0 + 10.0 * (2 * i + j) as f64)),
                                );
                                k.multi_axpy_dot(Pass::new("pass").set(x, x + one * y).dot(sum, x, x));
                                k.spmv_dot(&a, x, y, Pass::nothing());
                            });
                            k.multi_axpy_dot(Pass::new("outer").eval(ran, ran + 1000.0));
                        });
                    }
                }
                let stop = Pass::new("once").count(rounds).stop_if(ran.gt(zero), Reason::Custom("done"));
                k.multi_axpy_dot(stop);
            });
        });
        assert_eq!(dev.read(&[ran]).unwrap(), [T::from_real(2001.0)]);
        trace.finish("run", &finish, &history);
        trace.vector(dev, "x", x);
        trace.vector(dev, "y", y);
        trace.cells(dev, "cells", &c);
        trace
    });
}

/// What stops a program without a restart section: a test in each section, the limit, an infinite residual.
pub fn stops<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "stops", |dev| {
        let mut trace = Trace::<T>::new();
        let c = cells_of(dev, &[0.0, 5.0, 1.0].map(T::from_real));
        let (round, five, one) = (c[0], c[1], c[2]);
        let mut check =
            |dev: &Scope, what: &str, limit, expected: (Reason, u64), body: &dyn Fn(&mut Recorder<'_, T>)| {
                let (finish, history) = run(dev, limit, |k| {
                    k.multi_axpy_dot(Pass::new("begin").eval(round, 0.0));
                    body(k);
                });
                assert_eq!((finish.reason, finish.iterations), expected, "{what}");
                trace.finish(what, &finish, &history);
                trace.cells(dev, what, &c);
            };
        let next = || Pass::new("next").eval(round, round + 1.0).count(round);
        let custom = Reason::Custom("test");
        check(dev, "limit", 17, (Reason::Limit, 17), &|k| k.each(|k| k.multi_axpy_dot(next())));
        check(dev, "stop in setup", 17, (custom, 0), &|k| {
            k.multi_axpy_dot(Pass::new("stop").stop_if(one.gt(round), custom));
            k.each(|k| k.multi_axpy_dot(next()));
        });
        check(dev, "stop in restart", 17, (custom, 0), &|k| {
            k.restart(|k| k.multi_axpy_dot(Pass::new("stop").stop_if(round.is_zero(), custom)));
            k.each(|k| k.multi_axpy_dot(next()));
        });
        check(dev, "stop in each", 17, (custom, 6), &|k| {
            k.each(|k| k.multi_axpy_dot(next().stop_if(round.gt(five), custom)));
        });
        check(dev, "the first of two tests", 17, (Reason::Breakdown("first"), 5), &|k| {
            k.each(|k| {
                let pass = next().stop_if(five.le(round), Reason::Breakdown("first"));
                k.multi_axpy_dot(pass.stop_if(five.le(round), custom));
            });
        });
        check(dev, "the first of two operations", 17, (custom, 1), &|k| {
            k.each(|k| {
                k.multi_axpy_dot(next().stop_if(one.le(round), custom));
                k.multi_axpy_dot(Pass::new("late").stop_if(one.le(round), Reason::Diverged));
            });
        });
        check(dev, "leaving is stopping without a restart section", 17, (Reason::Limit, 5), &|k| {
            k.each(|k| k.multi_axpy_dot(next().leave_if(five.le(round))));
        });
        check(dev, "not finite", 17, (Reason::NotFinite("the residual"), 2), &|k| {
            k.each(|k| {
                k.multi_axpy_dot(Pass::new("next").eval(round, (round + 1.0) / (one - round)).count(round));
            });
        });
        check(dev, "two counts a round", 5, (Reason::Limit, 5), &|k| {
            k.each(|k| {
                k.multi_axpy_dot(next());
                k.multi_axpy_dot(next());
            });
        });
        trace
    });
}

/// One path through the confirmation of a true residual: its name; `rr` of the first confirmation, and its
/// factor for each later one; what the iteration does; the limit; expected reason, iterations and restarts.
type Way = (&'static str, f64, f64, Turn, u64, (Reason, u64, u64));

#[derive(Clone, Copy)]
enum Turn {
    Leave,
    Stop(Reason),
    Go,
}

/// Every branch of `confirm`, with the target at 1 and progress defined as a quarter.
pub fn confirmations<T: Scalar>(make: fn() -> Device) {
    let hard = Reason::Custom("hard");
    let soft = Reason::Breakdown("soft");
    let not_finite = Reason::NotFinite("the residual");
    let (nan, infinite) = (f64::NAN, f64::INFINITY);
    let ways: [Way; 14] = [
        ("converged at once", 1.0, 1.0, Turn::Leave, 9, (Reason::Converged, 0, 0)),
        ("converged later", 64.0, 0.125, Turn::Leave, 9, (Reason::Converged, 2, 2)),
        ("hard reason", 64.0, 0.125, Turn::Stop(hard), 9, (hard, 1, 1)),
        ("hard reason, yet converged", 8.0, 0.125, Turn::Stop(hard), 9, (Reason::Converged, 1, 1)),
        ("soft reason without progress", 64.0, 0.5, Turn::Stop(soft), 9, (soft, 1, 1)),
        ("soft reason with progress", 64.0, 0.125, Turn::Stop(soft), 9, (Reason::Converged, 2, 2)),
        ("stagnated", 64.0, 0.25, Turn::Leave, 9, (Reason::Stagnated, 1, 1)),
        ("limit", 1e6, 0.125, Turn::Go, 4, (Reason::Limit, 4, 1)),
        ("limit, yet converged", 8.0, 0.125, Turn::Go, 4, (Reason::Converged, 4, 1)),
        ("limit while leaving", 4096.0, 0.125, Turn::Leave, 2, (Reason::Limit, 2, 2)),
        ("limit of zero", 64.0, 0.125, Turn::Go, 0, (Reason::Limit, 0, 0)),
        ("not finite at once", nan, 1.0, Turn::Go, 4, (not_finite, 0, 0)),
        ("not finite later", 64.0, infinite, Turn::Leave, 9, (not_finite, 1, 1)),
        ("not finite, with a hard reason", 64.0, nan, Turn::Stop(hard), 9, (not_finite, 1, 1)),
    ];
    on_both!(make, "confirmations", |dev| {
        let mut trace = Trace::<T>::new();
        for (what, start, factor, turn, limit, expected) in ways {
            let c = cells_of(dev, &[0.0, 1.0, 0.0, 0.25, factor, start, 5.0].map(T::from_real));
            let [rr, target, last, shrink, factor, start, recurrence]: [Cell<T>; 7] =
                c[..].try_into().unwrap();
            let (finish, history) = run(dev, limit, |k| {
                k.multi_axpy_dot(Pass::new("begin").eval(last, infinity()).eval(rr, start));
                k.restart(|k| {
                    let confirm = Pass::new("confirm").confirm(Confirm { rr, target, last, shrink });
                    k.multi_axpy_dot(confirm.eval(rr, rr * factor));
                });
                k.each(|k| {
                    let count = Pass::new("count").count(recurrence);
                    k.multi_axpy_dot(match turn {
                        Turn::Leave => count.leave(),
                        Turn::Stop(reason) => count.stop_if(target.gt(shrink), reason),
                        Turn::Go => count,
                    });
                });
            });
            assert_eq!((finish.reason, finish.iterations, finish.restarts), expected, "{what}");
            trace.finish(what, &finish, &history);
            trace.cells(dev, what, &c);
        }
        trace
    });
}

/// A history longer than its capacity is thinned evenly, and a second run starts a new one.
pub fn histories<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "histories", |dev| {
        let mut trace = Trace::<T>::new();
        let c = cells_of(dev, &[0.0, 1000.0].map(T::from_real));
        let mut k = Recorder::new(dev, "history");
        k.multi_axpy_dot(Pass::new("begin").eval(c[0], 0.0));
        k.each(|k| {
            let next = Pass::new("next").eval(c[0], c[0] + 1.0).count(c[0]);
            k.multi_axpy_dot(next.stop_if(c[1].le(c[0]), Reason::Custom("done")));
        });
        let mut plan = k.finish().and_then(|program| dev.plan(program)).unwrap();
        for limit in [10, History::CAPACITY - 1, History::CAPACITY, 100 * History::CAPACITY, u64::MAX - 1] {
            let (finish, history) = run_again(dev, &mut plan, limit);
            assert_eq!(finish.iterations, limit.min(1000));
            assert_eq!(history.stride, (limit + 1).div_ceil(History::CAPACITY), "limit {limit}");
            assert!(history.values.len() as u64 <= History::CAPACITY);
            trace.finish(&format!("limit {limit}"), &finish, &history);
        }
        trace
    });
}

/// Once a test has halted a section, nothing later in it changes anything: cells, vectors, products, bases.
pub fn no_ops_after_stop<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "no-ops after a stop", |dev| {
        let mut trace = Trace::<T>::new();
        let n = 600;
        let c = cells_of(dev, &[0.0, 3.0, 0.0].map(T::from_real));
        let [early, late, y] = std::array::from_fn(|_| upload(dev, &vec![T::zero(); n]));
        let one = upload(dev, &vec![T::one(); n]);
        let a = lacuna_formats::Csr::<T>::identity(n).unwrap();
        let a = dev.matrix(Arc::new(a)).unwrap();
        let v = dev.basis::<T>(n, 2).unwrap();
        (0..2).for_each(|j| dev.clear(v.column(j)).unwrap());
        let h = dev.run_of_cells::<T>(2).unwrap();
        for leave in [false, true] {
            let (finish, history) = run(dev, 100, |k| {
                k.multi_axpy_dot(Pass::new("begin").eval(c[0], 0.0));
                k.each(|k| {
                    k.multi_axpy_dot(Pass::new("early").set(early, early + one));
                    let test = Pass::new("test").eval(c[0], c[0] + 1.0).count(c[0]);
                    let holds = c[1].le(c[0]);
                    k.multi_axpy_dot(match leave {
                        true => test.leave_if(holds).eval(c[2], c[2] + 1.0),
                        false => test.stop_if(holds, Reason::Custom("three")).eval(c[2], c[2] + 1.0),
                    });
                    k.multi_axpy_dot(Pass::new("late").set(late, late + one).eval(c[2], c[2] + 1.0));
                    k.spmv_dot(&a, late, y, Pass::new("along").set(v.column(0), v.column(0) + y));
                    k.basis_dot(v, y, h);
                    k.basis_add(v, h, early, Pass::nothing());
                });
            });
            assert_eq!(finish.iterations, 3);
            trace.finish("run", &finish, &history);
        }
        for (name, v) in [("late", late), ("y", y), ("column", v.column(0))] {
            trace.vector(dev, name, v);
        }
        assert_eq!(crate::bits::download(dev, late), vec![T::from_real(4.0); n], "two runs, two rounds each");
        trace.vector(dev, "early", early);
        trace.cells(dev, "cells", &c);
        trace
    });
}

/// A program that never ends by itself is ended by the caller's watch.
pub fn endless_is_cancelled<T: Scalar>(make: fn() -> Device) {
    let dev = &make().scope();
    let c = cells_of(dev, &[T::one()]);
    let x = upload(dev, &[T::one(); 50]);
    let mut k = Recorder::new(dev, "endless");
    k.each(|k| k.multi_axpy_dot(Pass::new("round").set(x, -x).dot(c[0], x, x).count(c[0])));
    let mut plan = k.finish().and_then(|program| dev.plan(program)).unwrap();
    for _ in 0..2 {
        let (mut calls, mut last) = (0, 0);
        let finish = dev
            .execute(
                &mut plan,
                Run {
                    limit: u64::MAX - 1,
                    history: &mut History::default(),
                    watch: Some(&mut |progress| {
                        assert!(progress.iterations >= last, "progress goes forward");
                        assert_eq!(progress.rr, 50.0);
                        (calls, last) = (calls + 1, progress.iterations);
                        if calls >= 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    }),
                },
            )
            .unwrap();
        assert_eq!(finish.reason, Reason::Cancelled);
        assert!(calls >= 3);
        assert!(finish.iterations >= last, "{} after {last}", finish.iterations);
    }
}

/// Limits, tests and cancelling end a program whose restart section confirms nothing.
pub fn restarts_without_confirmation<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "restarts without confirmation", |dev| {
        let mut trace = Trace::<T>::new();
        let c = cells_of(dev, &[0.0, 0.0, 3.0].map(T::from_real));
        let (restarts, rounds, enough) = (c[0], c[1], c[2]);
        let x = upload(dev, &[T::one(); 40]);
        let mut program = |test: bool, limit| {
            let (finish, history) = run(dev, limit, |k| {
                k.restart(|k| k.multi_axpy_dot(Pass::new("restart").eval(restarts, restarts + 1.0)));
                k.each(|k| {
                    let mut pass = Pass::new("round").set(x, -x).eval(rounds, rounds + 1.0).count(rounds);
                    if test {
                        pass = pass.stop_if(enough.le(rounds), Reason::Custom("enough"));
                    }
                    k.multi_axpy_dot(pass);
                });
            });
            trace.finish("run", &finish, &history);
            (finish.reason, finish.iterations)
        };
        assert_eq!(program(false, 5), (Reason::Limit, 5));
        assert_eq!(program(true, 100), (Reason::Custom("enough"), 1));
        trace.cells(dev, "cells", &c);
        trace.vector(dev, "x", x);
        trace
    });
}

/// Operations recorded under a test run only if it holds, with or without a pass.
pub fn guarded<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "guarded operations", |dev| {
        let mut trace = Trace::<T>::new();
        let n = 500;
        let c = cells_of(dev, &[0.0, 2.0, 0.0, 0.0].map(T::from_real));
        let [x, y, z] = std::array::from_fn(|i| upload(dev, &vec![T::from_real(i as f64); n]));
        let one = upload(dev, &vec![T::one(); n]);
        let a = dev.matrix(Arc::new(lacuna_formats::Csr::<T>::identity(n).unwrap())).unwrap();
        let (finish, history) = run(dev, 5, |k| {
            k.each(|k| {
                k.multi_axpy_dot(Pass::new("round").eval(c[0], c[0] + 1.0).set(x, x + one));
                k.when(c[0].gt(c[1]), |k| {
                    k.multi_axpy_dot(Pass::new("guarded").set(y, y + one).dot(c[2], y, y));
                    k.spmv_dot(&a, y, z, Pass::new("counts").eval(c[3], c[3] + 1.0));
                });
                k.multi_axpy_dot(Pass::new("count").set(x, x + one).count(c[0]));
            });
        });
        trace.finish("run", &finish, &history);
        let expected = [5.0, 2.0, 16.0 * n as f64, 3.0].map(T::from_real);
        assert_eq!(dev.read(&c).unwrap(), expected, "rounds, bound, <y,y>, guarded rounds");
        for (name, v, value) in [("x", x, 10.0), ("y", y, 4.0), ("z", z, 4.0)] {
            crate::bits::same(name, &crate::bits::download(dev, v), &vec![T::from_real(value); n]);
        }
        trace
    });
}

/// A product is complete before its pass begins, even if the pass leaves immediately; a basis operation uses
/// the coefficients from before a pass that sets them.
pub fn riding_passes_come_after<T: Scalar>(make: fn() -> Device) {
    on_both!(make, "riding passes come after", |dev| {
        let mut trace = Trace::<T>::new();
        let n = 70;
        let [x, y, w] = std::array::from_fn(|i| upload(dev, &vec![T::from_real(i as f64 + 1.0); n]));
        let a = dev.matrix(Arc::new(lacuna_formats::Csr::<T>::identity(n).unwrap())).unwrap();
        let c = cells_of(dev, &[T::one(); 2]);
        let v = dev.basis::<T>(n, 1).unwrap();
        let h = dev.run_of_cells::<T>(1).unwrap();
        dev.upload(&vec![T::one(); n], v.column(0)).unwrap();
        dev.write(h.at(0), T::one()).unwrap();
        let (finish, _) = run(dev, 3, |k| {
            k.each(|k| k.spmv_dot(&a, x, y, Pass::new("leave").count(c[0]).leave()));
        });
        assert_eq!(finish.iterations, 1);
        crate::bits::same("the product", &crate::bits::download(dev, y), &vec![T::one(); n]);
        run(dev, 3, |k| {
            k.basis_axpy(v, h, w, Pass::new("alone").eval(h.at(0), 5.0));
            k.basis_axpy(v, h, w, Pass::new("with a dot").eval(h.at(0), 7.0).dot(c[1], w, w));
            k.basis_add(v, h, w, Pass::nothing());
            k.multi_axpy_dot(Pass::new("joined").eval(h.at(0), 100.0).set(w, w + h.at(0) * x));
        });
        // 3 − 1 − 5 + 7 + 100
        crate::bits::same("w", &crate::bits::download(dev, w), &vec![T::from_real(104.0); n]);
        crate::bits::same("<w,w>", &dev.read(&c[1..]).unwrap(), &[T::from_real(9.0 * n as f64)]);
        trace.cells(dev, "cells", &c);
        trace
    });
}
