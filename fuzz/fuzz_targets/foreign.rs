#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| umbel_fuzz::foreign::run(bytes));
