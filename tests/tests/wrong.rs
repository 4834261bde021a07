//! Backends that are wrong on purpose: each group of the suite notices.
lacuna_tests::noticed!();

#[test]
fn every_fault_is_one_that_a_group_notices() {
    lacuna_tests::wrong::every_fault_is_used(GROUPS);
}
