//! The target `factors` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lacuna_fuzz::factors(data));
