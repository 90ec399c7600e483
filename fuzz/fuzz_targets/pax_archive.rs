//! An archive that somebody tampered with is read to its end or refused.
#![no_main]

use hutch_pax::Limits;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = hutch_pax::read(bytes, Limits::default());
});
