//! Memory: freed in any order and allocated again, and plans that outlive what they use.
#[allow(unused_macros, reason = "tests of one number type")]
mod common;
use common::{Random, alone, bits, device, devices, grid, held};
use lacuna_engine::{
    Device, Error, Finish, History, HostOperator, LinOp, Owned, Pass, Plan, Recorder, Reference, Run, Vector,
};
use lacuna_opencl::{Mode, OpenCl};
use std::sync::Arc;

fn run(plan: &mut Plan, limit: u64) -> Result<Finish, Error> {
    plan.execute(Run { limit, history: &mut History::default(), watch: None })
}

fn values(dev: &Device, v: Vector<f64>) -> Vec<f64> {
    let mut values = vec![0.0; v.len];
    dev.download(v, &mut values).unwrap();
    values
}

/// A plan of a power iteration with an operator, and its vector.
fn power(dev: &Device, a: &dyn LinOp<f64>) -> (Plan, Vector<f64>) {
    let mut k = Recorder::new(dev, "power iteration");
    let n = a.shape().0;
    let x = k.vector_of(&vec![1.0; n]);
    let [y] = k.vectors(n);
    let [xx, yy, scale] = k.cells();
    k.each(|k| {
        k.spmv_dot(a, x, y, Pass::new("along").dot(yy, y, y).eval(scale, 1.0 / yy.sqrt()));
        k.multi_axpy_dot(Pass::new("step").set(x, scale * y).dot(xx, x, x).count(xx));
    });
    (dev.plan(k.finish().unwrap()).unwrap(), x)
}

#[test]
fn what_was_freed_in_any_order_is_allocated_again_in_any_size() {
    let _alone = alone();
    let Some(dev) = device(Mode::Auto) else { return };
    let mut random = Random(23);
    let mut live: Vec<(Owned<Vector<f64>>, Vec<f64>)> = Vec::new();
    let (mut size, mut most) = (0, 0);
    for round in 0..400 {
        if live.len() < 12 && random.below(5) < 3 {
            let v = dev.vector::<f64>(random.below(30_000)).unwrap();
            assert!(values(&dev, *v).iter().all(|x| *x == 0.0));
            let content = random.vector(v.len);
            dev.upload(&content, *v).unwrap();
            size += v.len;
            live.push((v, content));
        } else if !live.is_empty() {
            let (v, content) = live.swap_remove(random.below(live.len()));
            assert_eq!(values(&dev, *v), content, "round {round}");
            size -= v.len;
        }
        most = most.max(8 * size);
    }
    assert!(live.iter().all(|(v, content)| values(&dev, **v) == *content));
    // The arena grows by doubling, and gaps are at most as large as what is live.
    assert!(held(&dev) <= (1 << 20) + 4 * most as u64, "{} for {most}", held(&dev));
}

#[test]
fn a_freed_plan_gives_back_its_memory() {
    let _alone = alone();
    for (mode, dev) in devices() {
        let a = dev.matrix(Arc::new(grid::<f64>(12, 0.0, 0.1))).unwrap();
        drop(power(&dev, &a));
        let before = held(&dev);
        let plans: Vec<_> = (0..5).map(|_| power(&dev, &a)).collect();
        assert!(held(&dev) > before, "{mode:?}");
        drop(plans);
        // Frees what was dropped.
        dev.clear(*dev.vector::<f64>(1).unwrap()).unwrap();
        assert_eq!(held(&dev), before, "{mode:?}");
    }
}

#[test]
fn a_plan_whose_matrix_or_vector_is_gone_does_not_run() {
    let _alone = alone();
    for (mode, dev) in devices() {
        let a = dev.matrix(Arc::new(grid::<f64>(12, 0.0, 0.1))).unwrap();
        let (mut plan, _) = power(&dev, &a);
        assert_eq!(run(&mut plan, 3).unwrap().iterations, 3, "{mode:?}");
        let other = dev.vector::<f64>(10).unwrap();
        drop(other);
        assert!(run(&mut plan, 3).is_ok(), "{mode:?}: something else is gone");
        drop(a);
        // Takes the place of the matrix.
        let _b = dev.matrix(Arc::new(grid::<f64>(12, 0.0, 0.1))).unwrap();
        let error = run(&mut plan, 3).unwrap_err().to_string();
        assert!(error.contains("along") && error.contains("matrix"), "{mode:?}: {error}");
    }
}

#[test]
fn new_values_reach_the_plans_of_a_matrix() {
    let _alone = alone();
    let reference = Device::new(Reference::new());
    let [old, new] = [0.1, 0.7].map(|shift| Arc::new(grid::<f64>(12, 0.0, shift)));
    let solution = |dev: &Device| {
        let a = dev.matrix::<f64>(old.clone()).unwrap();
        let (mut plan, x) = power(dev, &a);
        run(&mut plan, 4).unwrap();
        dev.set_matrix(*a, new.clone()).unwrap();
        run(&mut plan, 4).unwrap();
        values(dev, x)
    };
    for (mode, dev) in devices() {
        assert_eq!(bits(&solution(&dev)), bits(&solution(&reference)), "{mode:?}");
    }
}

#[test]
fn cells_of_a_program_may_lie_far_apart() {
    let _alone = alone();
    let solution = |dev: &Device| {
        let early = dev.cells::<f64>(3).unwrap();
        let between = dev.cells::<f64>(20_000).unwrap();
        dev.write(between.at(17_000), 5.0).unwrap();
        dev.write(early.at(1), 0.25).unwrap();
        let mut k = Recorder::new(dev, "apart");
        let x = k.vector_of(&[1.0, 2.0, 3.0]);
        let [xx] = k.cells();
        let shrink = Pass::new("shrink").set(x, early.at(1) * x).dot(xx, x, x).eval(early.at(2), xx + xx);
        k.each(|k| k.multi_axpy_dot(shrink.count(xx)));
        let mut plan = dev.plan(k.finish().unwrap()).unwrap();
        run(&mut plan, 2).unwrap();
        let mut found = dev.read(&[early.at(2), between.at(17_000), xx, early.at(0)]).unwrap();
        found.extend(values(dev, x));
        // Gaps of this size are used again, and hold zeros then.
        drop(between);
        let again = dev.cells::<f64>(8000).unwrap();
        found.extend(dev.read(&[again.at(0), again.at(7999), early.at(1)]).unwrap());
        dev.write(again.at(5), 3.0).unwrap();
        run(&mut plan, 1).unwrap();
        found.extend(dev.read(&[again.at(5), again.at(6), early.at(2)]).unwrap());
        found
    };
    let expected = solution(&Device::new(Reference::new()));
    for (mode, dev) in devices() {
        assert_eq!(bits(&solution(&dev)), bits(&expected), "{mode:?}");
    }
}

#[test]
fn functions_of_the_host_run_step_by_step() {
    let _alone = alone();
    let twice = HostOperator::new(500, |x: &[f64], y: &mut [f64]| {
        (0..x.len()).for_each(|i| y[i] = 2.0 * x[i] + x[x.len() - 1 - i]);
    });
    let solution = |dev: &Device| {
        let (mut plan, x) = power(dev, &twice);
        let finish = run(&mut plan, 5).unwrap();
        assert_eq!(finish.iterations, 5);
        values(dev, x)
    };
    let expected = solution(&Device::new(Reference::new()));
    for (mode, dev) in devices() {
        assert_eq!(bits(&solution(&dev)), bits(&expected), "{mode:?}");
    }
}

#[test]
fn a_failing_function_leaves_the_device_usable() {
    let _alone = alone();
    let Some(dev) = device(Mode::Auto) else { return };
    let a = dev.matrix(Arc::new(grid::<f64>(40, 0.0, 0.1))).unwrap();
    let (mut plan, x) = power(&dev, &a);
    let mut watch = |_| panic!("the caller's fault");
    let failed = plan.execute(Run { limit: 1 << 40, history: &mut History::off(), watch: Some(&mut watch) });
    assert!(failed.unwrap_err().to_string().contains("the caller's fault"));
    assert!(run(&mut plan, 3).is_ok());
    assert!(values(&dev, x).iter().all(|x| x.is_finite()));
    assert!(dev.with(|dev: &mut OpenCl| dev.held_bytes()).is_ok());
}
