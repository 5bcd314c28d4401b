//! Invalid kernels, for which no text is written: structure, constants, names and sizes.

use super::mistakes::{build, run};
use relampago_ptx::PtxType::{self, B32, F16x2, F32, Pred, S32, U32, U64};
use relampago_ptx::interp::{Argument, Memory, Program};
use relampago_ptx::{Builder, Error, Extent, Launch, Op, Operand, PtxModule, Reg, Special, Target};

/// Returns the error message of `finish` for a kernel's body.
fn said(body: impl FnOnce(&mut Builder)) -> String {
    match build(Target::Sm90a, body) {
        Err(error) => error.to_string(),
        Ok(_) => "nothing".to_owned(),
    }
}

/// Asserts that a message contains each of the words.
fn says(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

/// Two predicates of a thread, and the address of a number of its own.
fn two_conditions(k: &mut Builder) -> (Reg, Reg, Reg) {
    let buffer = k.pointer("buffer", F32);
    let thread = k.special(Special::TidX);
    let at = k.at(buffer, thread, 4);
    (k.lt(thread, 40), k.gt(thread, 20), at)
}

#[test]
fn guards_around_structure_return_errors() {
    let under_guard = |what, body: fn(&mut Builder, Reg)| {
        let error = build(Target::Sm80, |k| {
            let (below, above, _) = two_conditions(k);
            k.guarded(below, true, |k| body(k, above));
        });
        match error {
            Err(Error::UnderGuard { what: found, at }) => {
                assert_eq!(found, what);
                assert!(at.to_string().contains("refused.rs"), "{at}");
            }
            other => panic!("{what}: {other:?}"),
        }
    };
    under_guard("guarded", |k, cond| k.guarded(cond, true, |_| ()));
    under_guard("when", |k, cond| k.when(cond, |_| ()));
    under_guard("when", |k, cond| k.when_else(cond, |_| (), |_| ()));
    under_guard("repeat_while", |k, cond| k.repeat_while(|_| cond));
    under_guard("when", |k, _| k.for_range(0, 4, 1, |_, _| ()));
}

/// A guard of two conditions combines them instead of nesting guards.
#[test]
fn guards_of_two_conditions_are_combined() {
    let values = run(64, |k| {
        let (below, above, at) = two_conditions(k);
        let both = k.and(below, above);
        k.guarded(both, true, |k| k.st_global(F32, at, 0, 1.0f32));
        k.guarded(below, false, |k| k.st_global(F32, at, 0, 2.0f32));
    });
    let expected = |i| match i {
        0..=20 => 0.0,
        21..40 => 1.0,
        _ => 2.0,
    };
    assert_eq!(values.unwrap(), (0..64).map(expected).collect::<Vec<f32>>());
}

#[test]
fn conditions_that_are_not_predicates_return_errors() {
    let refused = |method, body: fn(&mut Builder, Reg)| {
        let said = said(|k| {
            let number = k.special(Special::TidX);
            body(k, number);
        });
        let method = format!("`{method}` takes");
        says(
            &said,
            &[
                "refused.rs",
                &method,
                "type pred",
                "not a register of type u32",
            ],
        );
    };
    refused("guarded", |k, cond| k.guarded(cond, true, |_| ()));
    refused("when", |k, cond| k.when(cond, |_| ()));
    refused("when", |k, cond| k.when_else(cond, |_| (), |_| ()));
    refused("repeat_while", |k, cond| k.repeat_while(|_| cond));
}

/// Checks constants at the limits of their range and beyond.
#[test]
fn constants_out_of_range_return_errors() {
    let says_of = |op: Op, constants: &[i64], allowed: &[&str]| {
        let said = said(|k| {
            let constants = constants.iter().map(|&n| n.into());
            let from: Vec<Operand> = before(k, op).into_iter().chain(constants).collect();
            k.act(op, &from);
        });
        match allowed {
            [] => assert_eq!(said, "nothing", "{op:?} {constants:?}"),
            words => says(&said, words),
        }
    };
    for (op, allowed, good, bad) in [
        (Op::BarSync, "0 to 15", &[0, 15][..], &[-1, 16][..]),
        (Op::CpAsyncWait, "0 to 2147483647", &[0, 7], &[-1]),
        (Op::WgmmaWait, "0 to 2147483647", &[0, 7], &[-1]),
        (Op::BulkWaitRead, "0 to 2147483647", &[0, 7], &[-1]),
        (
            Op::SetMaxRegDec,
            "a multiple of 8 from 24 to 256",
            &[24, 256],
            &[16, 28, 264],
        ),
        (Op::SetMaxRegInc, "of 8", &[24, 256], &[0, 255, 264]),
        (Op::BarWarpSync, "4294967295", &[0xffff_ffff], &[1 << 32]),
    ] {
        for &value in good {
            says_of(op, &[value], &[]);
        }
        for value in bad {
            says_of(op, &[*value], &[allowed, &format!("the constant {value}")]);
        }
    }
    for (op, constants, allowed) in [
        (Op::NamedBarrier, [15, 1024], ""),
        (Op::NamedBarrier, [16, 64], "0 to 15"),
        (Op::NamedBarrier, [1, 0], "a multiple of 32 from 32 to 1024"),
        (Op::NamedBarrier, [1, 48], "a multiple of 32"),
        (Op::CpAsync16, [16, 0], ""),
        (Op::CpAsync16, [8, 8], "a constant, 16,"),
        (Op::CpAsync16, [16, 17], "0 to 16"),
        (Op::CpAsync16Near, [4, 4], "a constant, 16,"),
        (Op::CpAsync4, [8, 8], ""),
        (Op::CpAsync4, [4, 4], ""),
        (Op::CpAsync4, [6, 4], "4 or 8"),
        (Op::CpAsync4, [4, 5], "0 to 4"),
        (Op::CpAsync4, [4, -1], "0 to 4"),
    ] {
        match allowed {
            "" => says_of(op, &constants, &[]),
            allowed => says_of(op, &constants, &[allowed]),
        }
    }
}

/// The operands of an instruction that come before its constants.
fn before(k: &mut Builder, op: Op) -> Vec<Operand<'static>> {
    if !matches!(op, Op::CpAsync16 | Op::CpAsync16Near | Op::CpAsync4) {
        return Vec::new();
    }
    let to = k.shared("to", U32, 4);
    vec![Operand::At(to, 0), Operand::At(k.value(U64, 0), 0)]
}

#[test]
fn invalid_signs_and_parities_return_errors() {
    let product = |signs: [i64; 4]| {
        said(|k| {
            let sums = k.filled(F32, 4, 0.0f32);
            let (matrix, add) = (k.value(U64, 0), predicate(k));
            k.act(Op::WgmmaFence, &[]);
            let mut from: Vec<Operand> = vec![matrix.into(), matrix.into(), add.into()];
            from.extend(signs.map(Operand::from));
            k.emit(Op::WgmmaBf16, B32, &[sums.as_slice().into()], &from);
        })
    };
    assert_eq!(product([1, -1, 0, 1]), "nothing");
    says(
        &product([0, 1, 0, 0]),
        &["-1 or 1", "operand 5", "the constant 0"],
    );
    says(
        &product([1, 2, 0, 0]),
        &["-1 or 1", "operand 6", "the constant 2"],
    );
    says(
        &product([1, 1, 2, 0]),
        &["0 or 1", "operand 7", "the constant 2"],
    );
    says(
        &product([1, 1, 0, -1]),
        &["0 or 1", "operand 8", "the constant -1"],
    );
    let wait = |parity: i64| {
        said(|k| {
            let at = k.shared("ready", U64, 1);
            k.convert(
                Op::MbarrierTryWait,
                Pred,
                &[Operand::At(at, 0), parity.into()],
            );
        })
    };
    assert_eq!(wait(1), "nothing");
    says(&wait(2), &["0 or 1", "the constant 2"]);
}

fn predicate(k: &mut Builder) -> Reg {
    let number = k.value(U32, 1);
    k.eq(number, 1)
}

/// Registers and constants that the text's declarations do not allow.
#[test]
fn types_that_the_assembler_rejects_return_errors() {
    let of = |ty: PtxType, op: Op| {
        said(|k| {
            let x = k.scalar("x", ty);
            k.op(op, ty, ty, &[x.into()]);
        })
    };
    for op in [Op::Neg, Op::Abs] {
        assert_eq!(of(S32, op), "nothing");
        assert_eq!(of(F32, op), "nothing");
        says(&of(U32, op), &["does not exist for u32"]);
    }
    let rounded = |result: PtxType| {
        said(|k| {
            let x = k.value(F32, 1.0f32);
            k.convert(Op::CvtTf32F32, result, &[x.into()]);
        })
    };
    assert_eq!(rounded(B32), "nothing");
    says(&rounded(F32), &["type tf32", "a register of type f32"]);
    let product = |factors: PtxType| {
        said(|k| {
            let sums = k.filled(F32, 4, 0.0f32);
            let (a, b) = (k.regs(factors, 4), k.regs(factors, 2));
            for reg in a.iter().chain(&b) {
                let zero = k.value(B32, 0);
                k.emit(Op::Mov, B32, &[(*reg).into()], &[zero.into()]);
            }
            let [sums, a, b] = [&sums, &a, &b].map(|regs| regs.as_slice().into());
            k.emit(Op::MmaTf32, B32, &[sums], &[a, b, sums]);
        })
    };
    assert_eq!(product(B32), "nothing");
    says(&product(F32), &["4 registers of 32 bits that are not f32"]);
    let pair = said(|k| {
        let x = k.reg(F16x2);
        k.emit(Op::Mov, B32, &[x.into()], &[0.into()]);
        k.op(Op::FmaHalf, F16x2, F16x2, &[x.into(), 1.into(), x.into()]);
    });
    says(&pair, &["type f16x2", "the constant 1"]);
    let field = said(|k| {
        let x = k.value(U32, 1);
        k.op(Op::Bfe, U32, U32, &[x.into(), 256.into(), 8.into()]);
    });
    says(&field, &["0 to 255", "the constant 256"]);
}

#[test]
fn registers_of_another_builder_return_errors() {
    let mut other = Builder::new("other", Target::Sm80, launch());
    let (number, condition) = (other.value(U32, 1), predicate(&mut other));
    for said in [
        said(|k| {
            k.add(number, 1);
        }),
        // As many registers are there, so that its number alone does not tell.
        said(|k| {
            let mine = k.value(U32, 1);
            let _ = k.add(mine, number);
        }),
        said(|k| {
            let array = k.shared("array", U32, 4);
            k.st_shared(U32, array, 0, [number, number].as_slice());
        }),
    ] {
        says(&said, &["refused.rs", "another builder", "type u32"]);
    }
    for (method, said) in [
        ("when", said(|k| k.when(condition, |_| ()))),
        ("guarded", said(|k| k.guarded(condition, true, |_| ()))),
        ("repeat_while", said(|k| k.repeat_while(|_| condition))),
    ] {
        says(
            &said,
            &["refused.rs", method, "another builder", "type pred"],
        );
    }
}

#[test]
fn undeclared_parameters_and_arrays_return_errors() {
    let param = said(|k| {
        let _ = k.scalar("x", F32);
        let _ = k.op(Op::LdParam, F32, F32, &[Operand::Param(7)]);
    });
    says(
        &param,
        &[
            "a parameter, by a number below 1,",
            "not the parameter number 7",
        ],
    );
    let shared = said(|k| {
        let _ = k.op(Op::MovShared, U32, U32, &[Operand::Shared(3)]);
    });
    says(
        &shared,
        &[
            "a shared array, of which there is none,",
            "not the shared array number 3",
        ],
    );
}

fn launch() -> Launch {
    Launch::new(64, [Extent::Fixed(1); 3])
}

/// Returns the error message of `finish` for a kernel without a body.
fn said_of(name: &str, launch: Launch) -> String {
    let kernel = Builder::new(name, Target::Sm90, launch).finish();
    kernel.map_or_else(|error| error.to_string(), |_| "nothing".to_owned())
}

#[test]
fn empty_launches_return_errors() {
    let tiles = |per| {
        let grid = [Extent::Tiles("n", per), Extent::Fixed(1), Extent::Fixed(1)];
        said_of("kernel", Launch::new(64, grid))
    };
    assert_eq!(tiles(1), "nothing");
    says(&tiles(0), &["grid", "`n` in tiles of 0", "at least 1"]);
    let block = |block| said_of("kernel", launch().with_block(block));
    says(&block([32, 0, 1]), &["`block`", "[32, 0, 1]", "at least"]);
    says(&block([u32::MAX; 3]), &["threads", "1024"]);
    let min_blocks = |min_blocks| said_of("kernel", launch().with_min_blocks(min_blocks));
    assert_eq!(min_blocks(1), "nothing");
    says(&min_blocks(0), &["`min_blocks`", "0", "at least 1"]);
    let clusters = said_of("kernel", launch().clustered([u32::MAX; 3]));
    says(&clusters, &["blocks of a cluster", "limit of 8"]);
}

#[test]
fn shared_array_sizes_are_checked() {
    let empty = said(|k| {
        let _ = k.shared("empty", F32, 0);
    });
    says(
        &empty,
        &["shared", "`empty` of 0 bytes", "at least one value"],
    );
    let huge = said(|k| {
        for name in ["a", "b"] {
            let _ = k.shared(name, PtxType::F64, u32::MAX);
        }
    });
    says(&huge, &["static shared memory is 8589934591", "49152"]);
    let two = said(|k| {
        for name in ["a", "b"] {
            let _ = k.dynamic_shared(name, 1024);
        }
    });
    says(
        &two,
        &["arrays of dynamic shared memory is 2", "limit of 1"],
    );
}

#[test]
fn invalid_names_return_errors() {
    for name in ["a", "_a", "$1", "a_$9", "END_", "END_0x", "add", "tid"] {
        assert_eq!(said_of(name, launch()), "nothing", "{name}");
    }
    for name in [
        "", "_", "$", "1a", "a b", "a.b", "a-b", "a\n", "%r1", "%p", "é",
    ] {
        says(
            &said_of(name, launch()),
            &["name", "letter", &format!("{name:?}")],
        );
    }
    for name in ["END_0", "ELSE_17", "LOOP_1", "WARP_SZ"] {
        says(&said_of(name, launch()), &["name", "`END_0`", name]);
    }
    let param = said(|k| {
        let _ = k.scalar("%r0", U32);
    });
    says(&param, &["name", "%r0", "letter"]);
    let array = said(|k| {
        let _ = k.shared("LOOP_0", U32, 1);
    });
    says(&array, &["name", "LOOP_0", "label"]);
}

#[test]
fn duplicate_names_in_a_kernel_return_errors() {
    let own = "unique among parameters and shared arrays";
    let params = said(|k| {
        let _ = (k.scalar("n", U32), k.scalar("n", U32));
    });
    says(&params, &["\"n\"", own]);
    let arrays = said(|k| {
        let _ = (k.shared("n", U32, 1), k.shared("n", U32, 1));
    });
    says(&arrays, &["\"n\"", own]);
    let both = said(|k| {
        let _ = (k.scalar("n", U32), k.shared("n", U32, 1));
    });
    says(&both, &["\"n\"", own]);
    // The kernel is called `kernel`.
    let dynamic = said(|k| {
        let _ = (k.scalar("kernel_n", U32), k.dynamic_shared("n", 4));
    });
    says(&dynamic, &["\"kernel_n\"", own]);
    let apart = said(|k| {
        let _ = (k.scalar("n", U32), k.dynamic_shared("n", 4));
    });
    assert_eq!(apart, "nothing");
}

#[test]
fn duplicate_names_in_a_module_return_errors() {
    let with = |name: &str, array: &str| {
        let mut k = Builder::new(name, Target::Sm80, launch());
        let _ = k.dynamic_shared(array, 4);
        k.finish().unwrap()
    };
    for (first, second) in [
        (with("a", "b"), with("a", "c")),
        (with("a", "b"), with("a_b", "c")),
        (with("a_b", "c"), with("a", "b")),
        (with("a", "b_c"), with("a_b", "c")),
    ] {
        let module = PtxModule::new(Target::Sm80).with(first).unwrap();
        let error = module.with(second).unwrap_err().to_string();
        says(&error, &["name", "unique in the module"]);
    }
    let module = PtxModule::new(Target::Sm80).with(with("a", "b")).unwrap();
    assert!(module.with(with("ab", "b")).is_ok());
}

#[test]
fn comments_stay_comments() {
    let kernel = build(Target::Sm80, |k| {
        k.comment("one\ntwo\r\nthree é\0");
        k.comment("");
    });
    let text = PtxModule::new(Target::Sm80)
        .with(kernel.unwrap())
        .unwrap()
        .emit();
    let comments: Vec<&str> = text.lines().filter(|line| line.contains("//")).collect();
    let expected = ["// one", "// two", r"// three \u{e9}\u{0}", "// "];
    assert_eq!(comments, expected.map(|line| format!("    {line}")));
}

#[test]
fn mismatched_arguments_return_errors() {
    let kernel = build(Target::Sm80, |k| {
        let (y, n) = (k.pointer("y", F32), k.scalar("n", U32));
        let thread = k.special(Special::TidX);
        let inside = k.lt(thread, n);
        let at = k.at(y, thread, 4);
        k.when(inside, |k| k.st_global(F32, at, 0, 1.0f32));
    });
    let kernel = kernel.unwrap();
    let text = PtxModule::new(Target::Sm80).with(kernel.clone()).unwrap();
    let program = Program::parse(&text.emit()).unwrap();
    let mut memory = Memory::new();
    let y = Argument::Pointer(memory.upload_f32(&[0.0; 64]));
    let (n, real) = (Argument::U32(64), Argument::F32(64.0));
    let mut launch = |arguments: &[Argument]| {
        let launched = program.launch(&kernel, arguments, &mut memory);
        launched.map_or_else(|error| error.to_string(), |_| "nothing".to_owned())
    };
    assert_eq!(launch(&[y, n]), "nothing");
    says(&launch(&[]), &["argument 1 must be `y`", "not left out"]);
    says(&launch(&[y]), &["argument 2 must be `n`", "not left out"]);
    says(
        &launch(&[y, n, real]),
        &["argument 3 must be left out", "not 64 of type f32"],
    );
    says(
        &launch(&[n, y]),
        &[
            "argument 1 must be `y`, a pointer to f32",
            "not 64 of type u32",
        ],
    );
}
