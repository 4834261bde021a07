//! Serialisation of settings and outcomes: `cargo test -p lacuna-solvers --features serde --test serde`.
#![cfg(feature = "serde")]
use lacuna_engine::Reason;
use lacuna_solvers::{Options, Orthogonalization, Outcome, Side, Stop};
use std::time::Duration;

#[test]
fn settings_come_back_and_what_is_left_out_is_the_default() {
    let stop = Stop::default().rtol(1e-9).max_iters(77);
    assert_eq!(serde_json::from_str::<Stop>(&serde_json::to_string(&stop).unwrap()).unwrap(), stop);
    let short: Stop = serde_json::from_str(r#"{"rtol": 1e-9, "max_iters": 77}"#).unwrap();
    assert_eq!(short, stop);
    let options: Options =
        serde_json::from_str(r#"{"restart": 50, "orthogonalization": "classical-twice", "side": "left"}"#)
            .unwrap();
    assert_eq!(options.restart, Some(50));
    assert_eq!((options.orthogonalization, options.side), (Orthogonalization::ClassicalTwice, Side::Left));
    assert!(serde_json::from_str::<Options>(r#"{"side": "above"}"#).is_err());
}

#[test]
fn an_outcome_tells_its_reason_by_the_stable_name() {
    let mut outcome = Outcome::default();
    (outcome.reason, outcome.iterations, outcome.residual) = (Reason::Breakdown("rho"), 12, 0.5);
    (outcome.history, outcome.time) = (vec![1.0, 0.5], Duration::from_millis(1500));
    outcome.notes.push("a note".into());
    let json = serde_json::to_value(&outcome).unwrap();
    assert_eq!(json["reason"], Reason::Breakdown("rho").name());
    assert_eq!((&json["iterations"], &json["history"][1]), (&12.into(), &0.5.into()));
    assert_eq!(json["time"]["secs"], 1);
    assert_eq!(json["notes"][0], "a note");
    assert!(json["true_residual"].is_null(), "what is not known is NaN, which JSON has not");
}
