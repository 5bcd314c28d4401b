//! Parses PTX for the interpreter.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relampago::ptx::interp::Program;

fuzz_target!(|text: &str| {
    let _ = Program::parse(text);
});
