//! See `leaklab_fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    leaklab_fuzz::run("lock", bytes);
});
