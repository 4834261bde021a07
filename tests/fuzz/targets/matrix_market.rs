//! The target `matrix_market` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lacuna_fuzz::matrix_market(data));
