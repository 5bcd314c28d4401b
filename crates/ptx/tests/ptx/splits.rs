//! Matmuls whose `k` is split.

use super::case::{Case, Value, random, rounded};
use super::oracle;
use super::variants::{EPILOGUES, Variant};
use relampago_ptx::kernels::{Epilogue, SplitSumKernel};
use relampago_ptx::{GemmKernel, PtxType};

/// Sums of each part, and the kernel that adds these up.
pub(crate) fn variants() -> Vec<Variant> {
    let shapes = [[130, 136, 200], [1, 264, 456], [128, 128, 64], [3, 8, 0]];
    let mut variants = Vec::new();
    for (ty, cols) in [(PtxType::BF16, 128), (PtxType::F16, 256)] {
        let cases = shapes.iter().zip([3, 2, 2, 2]);
        let cases = cases.map(|(&shape, splits)| split_case(shape, splits, ty));
        let kernel = GemmKernel::wgmma_split(ty, cols);
        variants.push(Variant::new(kernel, cases.collect()));
    }
    for (output, epilogue) in [(PtxType::BF16, EPILOGUES[3]), (PtxType::F32, EPILOGUES[0])] {
        let cases = [[5, 8, 3], [2, 516, 1], [1, 4, 7]];
        let cases = cases.map(|shape| split_sum_case(shape, epilogue, output));
        let kernel = SplitSumKernel::new(output).with_epilogue(epilogue);
        variants.push(Variant::new(kernel, cases.to_vec()));
    }
    variants
}

/// Parts of whole steps of 64, as equal as that allows.
fn split_case([m, n, k]: [usize; 3], splits: usize, ty: PtxType) -> Case {
    let (a, b) = (
        rounded(&random(m * k, 1), ty),
        rounded(&random(k * n, 2), ty),
    );
    let part = k.div_ceil(64).div_ceil(splits) * 64;
    let mut expected = Vec::new();
    for i in 0..splits {
        let depth = (i * part).min(k)..((i + 1) * part).min(k);
        let rows = (0..m).flat_map(|row| &a[row * k + depth.start..row * k + depth.end]);
        let a: Vec<f32> = rows.copied().collect();
        let gemm = oracle::Gemm {
            a: &a,
            b: &b[depth.start * n..depth.end * n],
            c: &[],
            bias: &[],
            shape: [m, n, depth.len()],
            alpha: 1.0,
            beta: 0.0,
            epilogue: EPILOGUES[0],
            output: PtxType::F32,
            input_error: 0.0,
        };
        expected.extend(gemm.expected());
    }
    let matrix = |values| match ty {
        PtxType::F16 => Value::F16s(values),
        _ => Value::Bf16s(values),
    };
    let c = Value::F32s(vec![f32::NAN; splits * m * n]);
    let mut arguments = vec![matrix(a), matrix(b), c];
    arguments.extend([m, n, k, splits].map(|size| Value::U32(size as u32)));
    Case {
        label: format!("{m}×{n}×{k} in {splits}"),
        arguments,
        output: 2,
        expected,
    }
}

/// Returns a case equal to a matmul of ones with the parts.
fn split_sum_case([m, n, splits]: [usize; 3], epilogue: Epilogue, output: PtxType) -> Case {
    let sums = random(splits * m * n, 1);
    let (c, bias) = (rounded(&random(m * n, 3), output), random(n, 4));
    let (alpha, beta) = (0.5, -2.0);
    let mut expected = Vec::new();
    for row in 0..m {
        let parts = (0..splits).flat_map(|i| &sums[(i * m + row) * n..][..n]);
        let gemm = oracle::Gemm {
            a: &vec![1.0; splits],
            b: &parts.copied().collect::<Vec<f32>>(),
            c: &c[row * n..(row + 1) * n],
            bias: &bias,
            shape: [1, n, splits],
            alpha,
            beta,
            epilogue,
            output,
            input_error: 0.0,
        };
        expected.extend(gemm.expected());
    }
    let c = match output {
        PtxType::BF16 => Value::Bf16s(c),
        _ => Value::F32s(c),
    };
    let mut arguments = vec![Value::F32s(sums), c];
    arguments.extend([m, n, splits].map(|size| Value::U32(size as u32)));
    arguments.extend([Value::F32(alpha), Value::F32(beta)]);
    if epilogue.bias {
        arguments.push(Value::F32s(bias));
    }
    Case {
        label: format!("{m}×{n} of {splits}"),
        arguments,
        output: 1,
        expected,
    }
}
