//! Parsing of texts from other sources: invalid PTX is an error, and several kernels are kept
//! apart.

use super::mistakes::build;
use relampago_ptx::interp::{Memory, Program};
use relampago_ptx::{AttentionKernel, Error, Kernel, PtxModule, Target};

/// A kernel of this header and body.
fn text(header: &str, body: &str) -> String {
    format!(".visible .entry kernel(\n)\n{header}\n{{\n.reg .b32 %r<8>;\n{body}\nret;\n}}\n")
}

#[test]
fn short_opcodes_do_not_panic() {
    let whole = [
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
        "cp.async.cg.shared.global",
        "mbarrier.arrive.expect_tx.shared::cta.b64",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
        "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16",
        "barrier.cluster.arrive.release.aligned",
        "shfl.sync.bfly.b32",
        "vote.sync.any.pred",
        "setp.eq.f32",
        "cvt.rn.f32.u32",
        "ld.global.v4.u64",
        "fma.rn.f32",
        "fence.proxy.async.shared::cta",
        "u32",
    ];
    let operands = [
        "",
        "%r0",
        "%r0, %r1",
        "%r0, %r1, 31, 31, 0xffffffff",
        "{%r0, %r1, %r2, %r3}, [%r4]",
        "[%r0], [%r1], 18446744073709551615, %r2",
        "{%r0, %r1, %r2, %r3, %r4}, [%r5], %r6",
        "{%r0}, {%r1}, {%r2}, {%r3}",
    ];
    let kernel = build(Target::Sm80, |_| ()).unwrap();
    for opcode in whole {
        let words: Vec<&str> = opcode.split('.').collect();
        for count in 1..=words.len() {
            for operands in operands {
                let line = format!("{} {operands};", words[..count].join("."));
                // What it does matters less than that it says so.
                if let Ok(program) = Program::parse(&text(".reqntid 64, 1, 1", &line)) {
                    let _ = program.launch(&kernel, &[], &mut Memory::new());
                }
            }
        }
    }
}

#[test]
fn sizes_beyond_all_limits_are_parse_errors() {
    for (header, body) in [
        (".reqntid 0, 1, 1", ""),
        (".reqntid 4294967295, 4294967295, 2", ""),
        (".reqntid 1025", ""),
        (".reqnctapercluster 4294967295, 2, 2", ""),
        ("", ".shared .align 0 .b8 x[4];"),
        ("", ".shared .align 4294967295 .b8 x[4];"),
        ("", ".shared .align 4 .b8 x[4294967290];"),
        ("", ".reg .b32 %x<4294967295>;"),
        ("", ".param .u4 x"),
        ("", ".param .align 64 .b8 x[18446744073709551615]"),
    ] {
        let parsed = Program::parse(&text(header, body));
        assert!(matches!(parsed, Err(Error::Parse { .. })), "{header}{body}");
    }
}

/// The name of one kernel's dynamic array begins with that of the other kernel.
#[test]
fn dynamic_arrays_with_a_common_prefix_are_distinct() {
    let kernel = AttentionKernel::flash_tiled(64);
    let module = [kernel.causal(), kernel].map(|kernel| kernel.build(Target::Sm80).unwrap());
    let module = module
        .into_iter()
        .fold(PtxModule::new(Target::Sm80), |module, kernel| {
            module.with(kernel).unwrap()
        });
    let parsed = Program::parse(&module.emit());
    assert!(parsed.is_ok(), "{:?}", parsed.err());
}
