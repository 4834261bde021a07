//! What is compared by bits differs where anything differs.
use lacuna_tests::bits::Trace;
use std::panic::catch_unwind;

/// One entry less of any sort, another name, and another bit are noticed.
#[test]
fn traces_of_different_lengths_differ() {
    let full = || {
        let mut trace = Trace::<f64>::new();
        trace.numbers("x", &[1.0, 2.0]);
        trace.reals("history", &[3.0]);
        trace.fact("iterations", 4);
        trace
    };
    full().agrees_with(&full(), "equal");
    let changes: [fn(&mut Trace<f64>); 6] = [
        |trace| drop(trace.numbers.pop()),
        |trace| drop(trace.reals.pop()),
        |trace| drop(trace.facts.pop()),
        |trace| trace.facts[0].0 = "restarts".into(),
        |trace| trace.numbers[0].1.truncate(1),
        |trace| trace.reals[0].1[0] = f64::from_bits(3f64.to_bits() + 1),
    ];
    for (i, change) in changes.into_iter().enumerate() {
        for other in [false, true] {
            let (mut changed, same) = (full(), full());
            change(&mut changed);
            let (got, want) = if other { (same, changed) } else { (changed, same) };
            let noticed = catch_unwind(|| got.agrees_with(&want, "changed")).is_err();
            assert!(noticed, "change {i}");
        }
    }
}
