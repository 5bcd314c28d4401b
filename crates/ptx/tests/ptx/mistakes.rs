//! Kernels with errors, and the messages of the verifier and the interpreter.

use relampago_ptx::PtxType::{B32, F32, Pred, U32, U64};
use relampago_ptx::interp::{Argument, Memory, Program};
use relampago_ptx::{
    Builder, Error, Extent, Launch, Op, Operand, PtxKernel, PtxModule, Result, Special, Target,
};

pub(crate) fn build(target: Target, body: impl FnOnce(&mut Builder)) -> Result<PtxKernel> {
    // Hopper's tensor cores take four warps together.
    let threads = if target == Target::Sm90a { 128 } else { 64 };
    let mut k = Builder::new(
        "kernel",
        target,
        Launch::new(threads, [Extent::Fixed(1); 3]),
    );
    body(&mut k);
    k.finish()
}

/// Runs a kernel with one buffer of `values` numbers.
pub(crate) fn run(values: usize, body: impl FnOnce(&mut Builder)) -> Result<Vec<f32>> {
    let kernel = build(Target::Sm80, body)?;
    let text = PtxModule::new(Target::Sm80).with(kernel.clone())?.emit();
    let mut memory = Memory::new();
    let buffer = memory.upload_f32(&vec![0.0; values]);
    let arguments = [Argument::Pointer(buffer)];
    Program::parse(&text)?.launch(&kernel, &arguments, &mut memory)?;
    Ok(memory.read_f32(buffer))
}

fn fault(values: usize, body: impl FnOnce(&mut Builder)) -> String {
    match run(values, body) {
        Err(Error::Fault { message, .. }) => message,
        other => panic!("no fault, but {other:?}"),
    }
}

#[test]
fn operands_of_the_wrong_type_return_errors() {
    let error = build(Target::Sm80, |k| {
        let (a, b) = (k.value(F32, 1.0f32), k.value(U32, 1));
        let _ = k.add(a, b);
    });
    let Err(Error::Operand {
        position,
        instruction,
        at,
        ..
    }) = error
    else {
        panic!("{error:?}");
    };
    assert_eq!((position, &*instruction), (3, "add.rn.f32"));
    assert!(at.to_string().contains("mistakes.rs"), "{at}");
}

/// No message has a placeholder of the table or a type of Rust.
#[test]
fn messages_name_types_as_ptx_does() {
    let message = |body: fn(&mut Builder)| {
        let error = build(Target::Sm80, body).expect_err("a mistake");
        let message = error.to_string();
        let (_, message) = message.split_once(": ").expect("a position");
        message.to_owned()
    };
    for (expected, body) in MESSAGES {
        assert_eq!(message(*body), *expected);
    }
}

type Mistake = (&'static str, fn(&mut Builder));

const MESSAGES: &[Mistake] = &[
    (
        "`add.rn.f32` takes a value of type f32 as operand 3, not a register of type u32",
        |k| {
            let (a, b) = (k.value(F32, 1.0f32), k.value(U32, 1));
            let _ = k.add(a, b);
        },
    ),
    (
        "`rem` does not exist for f32, only for u16, s16, u32, s32, u64, s64",
        |k| {
            let a = k.value(F32, 1.0f32);
            let _ = k.rem(a, a);
        },
    ),
    (
        "`at` takes an address in global memory, of type u64, as operand 1, not a register of \
         type u32; for shared memory, whose addresses have type u32, use `fma(index, bytes, base)`",
        |k| {
            let (array, index) = (k.shared("array", F32, 4), k.special(Special::TidX));
            let _ = k.at(array, index, 4);
        },
    ),
    (
        "`at_2d` takes an address in global memory, of type u64, as operand 1, not a register of \
         type f32",
        |k| {
            let (base, index) = (k.value(F32, 1.0f32), k.special(Special::TidX));
            let _ = k.at_2d(base, index, index, index, 4);
        },
    ),
    (
        "`mad.wide.u32` takes a value of type u32 as operand 2, not a register of type u64",
        |k| {
            let (base, index) = (k.pointer("x", F32), k.value(U64, 1));
            let _ = k.at(base, index, 4);
        },
    ),
    (
        "`ld.shared.f32` takes an address in shared memory, of type u32, as operand 2, not an \
         address of type u64",
        |k| {
            let x = k.pointer("x", F32);
            let _ = k.ld_shared(F32, x, 0);
        },
    ),
    (
        "`ld.global.nc.f32` takes an address in global memory, of type u64, as operand 2, not an \
         address of type u32",
        |k| {
            let array = k.shared("array", F32, 4);
            let _ = k.ld_global(F32, array, 0);
        },
    ),
    (
        "`st.shared.f32` takes one, two or four registers of type f32 as operand 2, not 3 \
         registers: f32",
        |k| {
            let array = k.shared("array", F32, 4);
            let values = k.filled(F32, 3, 0.0f32);
            k.st_shared(F32, array, 0, values.as_slice());
        },
    ),
    ("`add.u32` takes 3 operands, not 2", |k| {
        let a = k.value(U32, 1);
        let _ = k.op(Op::Add, U32, U32, &[a.into()]);
    }),
    (
        "`setp.eq.u32` takes a value of type u32 as operand 3, not the constant 0.5 of type f32",
        |k| {
            let a = k.value(U32, 1);
            let _ = k.eq(a, 0.5f32);
        },
    ),
];

#[test]
fn constants_that_do_not_fit_return_errors() {
    let error = build(Target::Sm80, |k| {
        let a = k.value(U32, 1);
        let _ = k.add(a, 1i64 << 32);
    });
    assert!(
        matches!(error, Err(Error::Operand { position: 3, .. })),
        "{error:?}"
    );
}

#[test]
fn unsupported_instruction_types_return_errors() {
    let error = build(Target::Sm80, |k| {
        let a = k.value(F32, 1.0f32);
        let _ = k.op(Op::Rem, F32, F32, &[a.into(), a.into()]);
    });
    assert!(
        matches!(error, Err(Error::NoSuchType { ty: F32, .. })),
        "{error:?}"
    );
}

#[test]
fn targets_without_the_instruction_return_errors() {
    let message = |target, op| match build(target, |k| k.act(op, &[])) {
        Err(error @ Error::Target { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        message(Target::Sm75, Op::CpAsyncCommit),
        "kernel: `cp.async.commit_group` needs sm_80 or later, and the target is sm_75: ask for sm_80"
    );
    // What belongs to Hopper alone is not on what comes after it.
    assert_eq!(
        message(Target::Sm100, Op::WgmmaFence),
        "kernel: `wgmma.fence.sync.aligned` needs sm_90a itself, and the target is sm_100: ask for sm_90a"
    );
}

#[test]
fn reading_unwritten_registers_returns_errors() {
    let error = build(Target::Sm80, |k| {
        let thread = k.special(Special::TidX);
        let some = k.lt(thread, 3);
        let value = k.reg(U32);
        k.when(some, |k| k.assign(value, 1));
        let _ = k.add(value, 1);
    });
    assert!(
        matches!(error, Err(Error::Unwritten { ty: U32, .. })),
        "{error:?}"
    );
}

#[test]
fn divergent_barriers_return_errors() {
    let error = build(Target::Sm80, |k| {
        let thread = k.special(Special::TidX);
        let some = k.lt(thread, 3);
        k.when(some, Builder::barrier);
    });
    assert!(
        matches!(error, Err(Error::Divergent { group: "block", .. })),
        "{error:?}"
    );
    // A warp's own instructions may stand where whole warps go.
    let by_warp = build(Target::Sm80, |k| {
        let thread = k.special(Special::TidX);
        let warp = k.shr(thread, 5);
        let first = k.eq(warp, 0);
        k.when(first, |k| {
            let _ = k.shuffle_xor(thread, 1);
        });
    });
    assert!(by_warp.is_ok(), "{by_warp:?}");
}

#[test]
fn accumulators_in_flight_return_errors() {
    let error = build(Target::Sm90a, |k| {
        let sums = k.filled(F32, 4, 0.0f32);
        let (descriptor, yes) = (k.value(U64, 0), k.reg(Pred));
        k.emit(
            Op::SetEq,
            U64,
            &[yes.into()],
            &[descriptor.into(), descriptor.into()],
        );
        k.act(Op::WgmmaFence, &[]);
        let mut from: Vec<Operand> = vec![descriptor.into(), descriptor.into(), yes.into()];
        from.extend([1, 1, 0, 0].map(Operand::from));
        k.emit(Op::WgmmaBf16, B32, &[sums.as_slice().into()], &from);
        k.act(Op::WgmmaCommit, &[]);
        let _ = k.add(sums[0], 1.0f32);
    });
    assert!(matches!(error, Err(Error::InFlight { .. })), "{error:?}");
}

#[test]
fn accesses_beyond_a_shared_array_return_errors() {
    let error = build(Target::Sm80, |k| {
        let array = k.shared("array", F32, 4);
        k.st_shared(F32, array, 16, 1.0f32);
    });
    assert!(
        matches!(
            error,
            Err(Error::SharedBounds {
                from: 16,
                to: 20,
                bytes: 16,
                ..
            })
        ),
        "{error:?}"
    );
    let error = build(Target::Sm80, |k| {
        let _ = k.shared("array", F32, 12 * 1024 + 1);
    });
    assert!(matches!(error, Err(Error::Limit { .. })), "{error:?}");
}

#[test]
fn writes_beyond_a_buffer_are_reported() {
    let write = |k: &mut Builder| {
        let buffer = k.pointer("buffer", F32);
        let thread = k.special(Special::TidX);
        let at = k.at(buffer, thread, 4);
        k.st_global(F32, at, 0, 1.0f32);
    };
    assert_eq!(run(64, write).unwrap(), [1.0; 64]);
    assert!(fault(63, write).contains("252..256 of a buffer of 252"));
}

/// Each thread writes a word and reads that of another one.
fn exchange(k: &mut Builder, with_barrier: bool) {
    let _ = k.pointer("buffer", F32);
    let thread = k.special(Special::TidX);
    let array = k.shared("array", U32, 64);
    let mine = k.fma(thread, 4, array);
    k.st_shared(U32, mine, 0, thread);
    if with_barrier {
        k.barrier();
    }
    let other = k.xor(thread, 1);
    let theirs = k.fma(other, 4, array);
    let _ = k.ld_shared(U32, theirs, 0);
}

#[test]
fn races_in_shared_memory_are_reported() {
    assert!(run(1, |k| exchange(k, true)).is_ok());
    let message = fault(1, |k| exchange(k, false));
    assert!(
        message.contains("nothing wrote it") || message.contains("race"),
        "{message}"
    );
}

#[test]
fn write_conflicts_in_global_memory_are_reported() {
    let message = fault(1, |k| {
        let buffer = k.pointer("buffer", F32);
        k.st_global(F32, buffer, 0, 1.0f32);
    });
    assert!(message.contains("another thread"), "{message}");
}

#[test]
fn endless_waits_are_reported() {
    let message = fault(1, |k| {
        let _ = k.pointer("buffer", F32);
        k.act(Op::NamedBarrier, &[1.into(), 96.into()]);
    });
    assert!(message.contains("no thread can continue"), "{message}");
}

#[test]
fn invalid_text_returns_parse_errors() {
    for (text, line) in [
        (".visible .entry a(\n)\n{\nadd.u32 %r0, %r1, %r2;\n}", 4),
        (
            ".visible .entry a(\n)\n{\n.reg .b32 %r<1>;\nmov.u32 %r0, 1\n}",
            5,
        ),
        (
            ".visible .entry a(\n)\n{\n.reg .b32 %r<1>;\nfoo.u32 %r0, 1;\n}",
            5,
        ),
        ("hello", 1),
    ] {
        match Program::parse(text) {
            Err(Error::Parse { line: at, .. }) => assert_eq!(at, line, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn the_text_is_stable() {
    let kernel = build(Target::Sm80, |k| {
        let buffer = k.pointer("buffer", F32);
        let thread = k.special(Special::TidX);
        let first = k.eq(thread, 0);
        k.comment("one thread alone");
        k.when(first, |k| k.st_global(F32, buffer, 4, 0.5f32));
    });
    let module = PtxModule::new(Target::Sm80).with(kernel.unwrap()).unwrap();
    let golden = "\
.version 7.0
.target sm_80
.address_size 64

.visible .entry kernel(
    .param .u64 buffer // of f32
)
.reqntid 64, 1, 1
.minnctapersm 1
{
    .reg .pred %p<1>;
    .reg .b32 %r<1>;
    .reg .b64 %rd<2>;

    ld.param.u64 %rd0, [buffer];
    cvta.to.global.u64 %rd1, %rd0;
    mov.u32 %r0, %tid.x;
    setp.eq.u32 %p0, %r0, 0;
    // one thread alone
    @!%p0 bra END_0;
        st.global.f32 [%rd1+4], 0f3F000000;
END_0:
    ret;
}
";
    assert_eq!(module.emit(), golden);
}
