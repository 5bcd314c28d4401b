//! Attention over keys whose score is −∞, which count nothing, wherever they lie, and over keys with no
//! score that is much more.

use super::case::{Case, Expected, Value};
use relampago_ptx::PtxType::{self, BF16, F16, F32};
use relampago_ptx::half::{bf16_to_f32, f32_to_bf16};
use relampago_ptx::interp::{Argument, Memory, Program};
use relampago_ptx::kernels::{DecodeAttentionKernel, DecodeSumKernel};
use relampago_ptx::{AttentionKernel, Kernel, Target};

const DIM: usize = 64;

fn values(ty: PtxType, values: Vec<f32>) -> Value {
    match ty {
        F16 => Value::F16s(values),
        BF16 => Value::Bf16s(values),
        _ => Value::F32s(values),
    }
}

/// One query, and as many keys, of which the last is seen if any is.
fn case(ty: PtxType, keys: usize, seen: bool, scale: f32) -> Case {
    let mut query = vec![0.0; DIM];
    query[0] = 1.0;
    let mut all = vec![0.0; keys * DIM];
    let hidden = if seen { keys - 1 } else { keys };
    for key in all.chunks_exact_mut(DIM).take(hidden) {
        key[0] = f32::NEG_INFINITY;
    }
    let expected = Expected {
        value: if seen { 2.0 } else { f64::NAN },
        bound: 1e-6,
    };
    let matrices = [query, all, vec![2.0; keys * DIM], vec![9.0; DIM]];
    let sizes = [1, 1, 1, 1, keys as u32].map(Value::U32);
    let arguments = matrices.into_iter().map(|x| values(ty, x)).chain(sizes);
    Case {
        label: format!("{keys} keys"),
        arguments: arguments.chain([Value::F32(scale)]).collect(),
        output: 3,
        expected: vec![expected; DIM],
    }
}

#[test]
fn keys_with_infinite_distance_have_no_weight() {
    for (kernel, ty) in [
        (AttentionKernel::simple(64), F32),
        (AttentionKernel::flash_tiled(64), F32),
        (AttentionKernel::flash_mma(F16, 64), F16),
        (AttentionKernel::flash_mma(BF16, 64), BF16),
        (AttentionKernel::flash(BF16, 64), BF16),
    ] {
        let program = Program::parse(&kernel.emit_ptx().unwrap()).unwrap();
        let built = kernel.build(kernel.first_target()).unwrap();
        for keys in [1, 2, 65, 130, 300] {
            for (seen, scale) in [(true, 0.125), (true, 1.5), (false, 0.125)] {
                let judged = case(ty, keys, seen, scale).run(&program, &built);
                let place = format!("{} {keys} {seen} {scale}", kernel.name());
                judged.unwrap_or_else(|error| panic!("{place}: {error}"));
            }
        }
    }
}

fn launch(kernel: &dyn Kernel, arguments: &[Argument], memory: &mut Memory) {
    let program = Program::parse(&kernel.emit_ptx_for_target(Target::Sm80).unwrap()).unwrap();
    let kernel = kernel.build(Target::Sm80).unwrap();
    program.launch(&kernel, arguments, memory).unwrap();
}

/// The result of one query over as many keys, in two parts, where the first values of all of them are
/// these.
fn decoded(query: f32, keys: &[f32]) -> f32 {
    let matrix = |firsts: &[f32], rest: f32| {
        let row = |&first: &f32| {
            let values = (0..DIM).map(move |i| if i == 0 { first } else { rest });
            values.flat_map(|x| f32_to_bf16(x).to_le_bytes())
        };
        firsts.iter().flat_map(row).collect::<Vec<u8>>()
    };
    let mut memory = Memory::new();
    let q = memory.upload(&matrix(&[query], 0.0));
    let k = memory.upload(&matrix(keys, 0.0));
    let v = memory.upload(&matrix(&vec![2.0; keys.len()], 2.0));
    let (sums, stats) = (vec![0.0; 2 * DIM], vec![0.0; 4]);
    let (sums, stats) = (memory.upload_f32(&sums), memory.upload_f32(&stats));
    let length = keys.len() as u32;
    let lengths = memory.upload(&length.to_le_bytes());
    let o = memory.upload(&[0; 2 * DIM]);
    let first = [q, k, v, sums, stats, lengths].map(Argument::Pointer);
    let sizes = [1, 1, 1, length, 2].map(Argument::U32);
    let arguments = [&first[..], &sizes, &[Argument::F32(1.0)]].concat();
    let decode = DecodeAttentionKernel::new(BF16, DIM as u32, 1);
    launch(&decode, &arguments, &mut memory);
    let second = [sums, stats, o].map(Argument::Pointer);
    let arguments = [&second[..], &[1, 2].map(Argument::U32)].concat();
    launch(
        &DecodeSumKernel::new(BF16, DIM as u32),
        &arguments,
        &mut memory,
    );
    let bits = memory.read(o);
    bf16_to_f32(u16::from_le_bytes([bits[0], bits[1]]))
}

#[test]
fn single_queries_ignore_infinitely_far_keys() {
    for keys in [1, 2, 40] {
        let mut far = vec![f32::NEG_INFINITY; keys];
        assert!(decoded(1.0, &far).is_nan());
        far[keys - 1] = 0.0;
        assert_eq!(decoded(1.0, &far), 2.0);
        // Scores of −1e34.
        assert_eq!(decoded(1e17, &vec![-1e17; keys]), 2.0);
    }
}
