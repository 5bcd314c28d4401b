//! Positions of arrays and parameters, and checks of constant addresses.

use super::mistakes::{build, run};
use relampago_ptx::PtxType::{F32, U32};
use relampago_ptx::{
    Builder, Error, Extent, Launch, PtxKernel, PtxModule, Result, Special, Target, TensorBox,
};

#[test]
fn reassigned_addresses_are_not_checked_as_constants() {
    let values = run(1, |k| {
        let buffer = k.pointer("buffer", F32);
        let at = k.shared("numbers", F32, 16);
        let thread = k.special(Special::TidX);
        let first = k.eq(thread, 0);
        k.when(first, |k| {
            k.st_shared(F32, at, 0, 3.0f32);
            k.add_assign(at, 32);
            let value = k.ld_shared(F32, at, -32);
            k.st_global(F32, buffer, 0, value);
        });
    });
    assert_eq!(values.unwrap(), [3.0]);
}

/// Negative offsets are written as sums, since PTX addresses have no differences.
#[test]
fn negative_offsets_are_assembled_and_checked() {
    let kernel = build(Target::Sm80, |k| {
        let buffer = k.pointer("buffer", F32);
        let value = k.ld_global(F32, buffer, -4);
        k.st_global(F32, buffer, i32::MIN, value);
    });
    let text = PtxModule::new(Target::Sm80)
        .with(kernel.unwrap())
        .unwrap()
        .emit();
    for address in ["[%rd1+-4]", "[%rd1+-2147483648]"] {
        assert!(text.contains(address), "{text}");
    }
}

#[test]
fn alignment_counts_towards_shared_memory() {
    let limit = |built: Result<PtxKernel>, words: &str| match built {
        Err(Error::Limit { what, .. }) => assert!(what.contains(words), "{what}"),
        other => panic!("{:?}", other.map(|kernel| kernel.name().to_owned())),
    };
    // Each of these words takes 16 bytes.
    let words = |count: u32| {
        build(Target::Sm80, |k| {
            for i in 0..count {
                let word = k.shared(&format!("word{i}"), U32, 1);
                k.st_shared(U32, word, 0, 1);
            }
        })
    };
    limit(words(3073), "static shared memory");
    assert_eq!(words(3072).unwrap().shared_bytes(), 48 * 1024 - 12);
    let mut launch = Launch::new(1, [Extent::Fixed(1); 3]);
    launch.block = [1, 1, 65];
    limit(
        Builder::new("deep", Target::Sm80, launch).finish(),
        "along z",
    );
}

/// A tensor map lies at a multiple of 64 bytes, with 60 before it that nothing uses.
#[test]
fn parameters_beside_tensor_maps_are_aligned() {
    let launch = Launch::new(32, [Extent::Fixed(1); 3]);
    let mut k = Builder::new("maps", Target::Sm90, launch);
    for _ in 0..31 {
        k.scalar("word", U32);
        let shape = [Extent::Fixed(8), Extent::Fixed(32)];
        k.tensor_map("map", TensorBox::new(F32, [8, 32], shape));
    }
    match k.finish() {
        Err(Error::Limit { value: 5952, .. }) => {}
        other => panic!("{:?}", other.map(|kernel| kernel.name().to_owned())),
    }
}
