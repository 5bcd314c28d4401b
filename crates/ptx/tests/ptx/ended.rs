//! Instructions that some threads do not reach, and matmuls without a wait.

use super::mistakes::build;
use relampago_ptx::PtxType::{B32, F32};
use relampago_ptx::{
    Builder, Error, Extent, Launch, Op, Operand, PtxKernel, Reg, Result, Special, Target,
};

fn of_threads(threads: u32, body: impl FnOnce(&mut Builder)) -> Result<PtxKernel> {
    let launch = Launch::new(threads, [Extent::Fixed(1); 3]);
    let mut k = Builder::new("kernel", Target::Sm90a, launch);
    body(&mut k);
    k.finish()
}

/// Returns whether the thread's index is below `threads`.
fn below(k: &mut Builder, threads: u32) -> Reg {
    let thread = k.special(Special::TidX);
    k.lt(thread, threads)
}

fn shuffle(k: &mut Builder) {
    let one = k.value(F32, 1.0f32);
    k.shuffle_xor(one, 1);
}

#[track_caller]
fn is_divergent(built: Result<PtxKernel>, group: &str) {
    match built {
        Err(Error::Divergent { group: found, .. }) => assert_eq!(found, group),
        other => panic!("{:?}", other.map(|kernel| kernel.name().to_owned())),
    }
}

#[test]
fn barriers_after_some_threads_ended_return_errors() {
    let some_end = |k: &mut Builder| {
        let some = below(k, 5);
        k.when(some, |k| k.act(Op::Ret, &[]));
    };
    let built = build(Target::Sm80, |k| {
        some_end(k);
        shuffle(k);
    });
    is_divergent(built, "warp");
    let built = build(Target::Sm80, |k| {
        let some = below(k, 5);
        k.guarded(some, true, |k| k.act(Op::Ret, &[]));
        k.barrier();
    });
    is_divergent(built, "block");
    // Those that end in a loop are missing from it the next time.
    let built = build(Target::Sm80, |k| {
        k.for_range(0, 2, 1, |k, _| {
            shuffle(k);
            some_end(k);
        });
    });
    is_divergent(built, "warp");
}

#[test]
fn barriers_after_a_branch_with_an_end_return_errors() {
    let both = |end_before: bool| {
        build(Target::Sm80, |k| {
            let block = k.special(Special::CtaidX);
            let first = k.eq(block, 0);
            let ends = |k: &mut Builder| {
                let some = below(k, 5);
                k.when(some, |k| k.act(Op::Ret, &[]));
            };
            k.when_else(first, ends, |k| {
                if end_before {
                    ends(k);
                }
                k.barrier();
            });
        })
    };
    let built = both(false);
    assert!(built.is_ok(), "{:?}", built.err());
    is_divergent(both(true), "block");
}

#[test]
fn warp_instructions_are_valid_after_whole_warps_end() {
    let first_ends = |k: &mut Builder| {
        let thread = k.special(Special::TidX);
        let warp = k.shr(thread, 5);
        let first = k.eq(warp, 0);
        k.when(first, |k| k.act(Op::Ret, &[]));
    };
    let built = build(Target::Sm80, |k| {
        first_ends(k);
        shuffle(k);
    });
    assert!(built.is_ok(), "{:?}", built.err());
    let built = build(Target::Sm80, |k| {
        first_ends(k);
        k.barrier();
    });
    is_divergent(built, "block");
}

#[test]
fn partial_warps_return_errors() {
    let is_refused = |built: Result<PtxKernel>| {
        let error = built.err();
        let refused = matches!(error, Some(Error::Invalid { what: "block", .. }));
        assert!(refused, "{error:?}");
    };
    is_refused(of_threads(24, shuffle));
    is_refused(of_threads(40, shuffle));
    let with_mask = |mask: u32| {
        of_threads(24, |k| {
            let one = k.value(B32, 1);
            let from = [one.into(), 1.into(), 31.into(), mask.into()];
            k.op(Op::ShflBfly, B32, B32, &from);
        })
    };
    is_refused(with_mask(0xffff));
    assert!(with_mask(0x00ff_ffff).is_ok());
    assert!(of_threads(96, shuffle).is_ok());
    is_refused(of_threads(64, |k| k.act(Op::SetMaxRegDec, &[24.into()])));
    is_refused(of_threads(64, |k| k.act(Op::WgmmaFence, &[])));
}

#[test]
fn matmuls_without_a_wait_are_reported() {
    let built = of_threads(128, |k| {
        let buffer = k.pointer("buffer", F32);
        let shared = k.dynamic_shared("tiles", 16384);
        let descriptor = k.widen(shared);
        let adds = below(k, 0);
        let sums = k.filled(F32, 4, 0.0f32);
        k.act(Op::WgmmaFence, &[]);
        let signs = [1, 1, 0, 0].map(Operand::from);
        let factors = [descriptor.into(), descriptor.into(), adds.into()];
        let from = [factors.as_slice(), &signs].concat();
        k.emit(Op::WgmmaBf16, B32, &[sums.as_slice().into()], &from);
        k.st_global(F32, buffer, 0, sums[0]);
    });
    assert!(matches!(built, Err(Error::InFlight { .. })), "{built:?}");
}
