//! The target `assembly` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lacuna_fuzz::assembly(data));
