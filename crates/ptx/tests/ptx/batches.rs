//! Many products of one size by one launch.

use super::case::{Case, Value, random, rounded};
use super::oracle;
use super::variants::{EPILOGUES, Variant};
use relampago_ptx::kernels::{Epilogue, Tile};
use relampago_ptx::{Error, GemmKernel, Kernel, PtxType, Target};

pub(crate) fn variants() -> Vec<Variant> {
    let (any, aligned) = ([[17, 40, 5], [3, 7, 40]], [[67, 72, 24], [1, 8, 8]]);
    let tiled = GemmKernel::tiled_by(Tile::SMALL);
    let mut variants = Vec::new();
    for (kernel, shapes, [input, output], input_error) in [
        (GemmKernel::naive(), any, [PtxType::F32; 2], 0.0),
        (tiled, any, [PtxType::F32; 2], 0.0),
        (
            GemmKernel::wmma_fp16(),
            any,
            [PtxType::F16, PtxType::F32],
            0.0,
        ),
        (
            GemmKernel::mma(PtxType::BF16),
            aligned,
            [PtxType::BF16; 2],
            0.0,
        ),
        (
            GemmKernel::mma_tf32(),
            aligned,
            [PtxType::F32; 2],
            2.01 * 2f64.powi(-11),
        ),
    ] {
        let epilogue = EPILOGUES[1];
        // The same right matrix for all, then one for each with a gap between.
        let cases = shapes.into_iter().zip([None, Some(16)]);
        let cases =
            cases.map(|(shape, gap)| case(shape, gap, epilogue, [input, output], input_error));
        let kernel = kernel.with_epilogue(epilogue).batched();
        variants.push(Variant::new(kernel, cases.collect()));
    }
    variants
}

fn case(
    shape: [usize; 3],
    gap: Option<usize>,
    epilogue: Epilogue,
    [input, output]: [PtxType; 2],
    input_error: f64,
) -> Case {
    let ([m, n, k], batch) = (shape, 3);
    // Of aligned shapes these are multiples of 8 values.
    let stride_a = m * k + 16;
    let stride_b = gap.map_or(0, |gap| k * n + gap);
    let (stride_c, alpha, beta) = (m * n, 0.5, -2.0);
    let (a, b) = (
        random(batch * stride_a, 1),
        random(k * n + (batch - 1) * stride_b, 2),
    );
    let (mut a, mut b) = (rounded(&a, input), rounded(&b, input));
    // What lies between matrices, read by mistake, is NaN even times zero.
    a.chunks_mut(stride_a)
        .for_each(|a| a[m * k..].fill(f32::NAN));
    if gap.is_some() {
        b.chunks_mut(stride_b)
            .for_each(|b| b[k * n..].fill(f32::NAN));
    }
    let (c, bias) = (rounded(&random(batch * stride_c, 3), output), random(n, 4));
    let products = (0..batch).flat_map(|i| {
        let gemm = oracle::Gemm {
            a: &a[i * stride_a..][..m * k],
            b: &b[i * stride_b..][..k * n],
            c: &c[i * stride_c..][..m * n],
            bias: &bias,
            shape,
            alpha,
            beta,
            epilogue,
            output,
            input_error,
        };
        gemm.expected()
    });
    let expected = products.collect();
    let mut arguments = vec![matrix(a, input), matrix(b, input), matrix(c, output)];
    arguments.extend([m, n, k].map(|size| Value::U32(size as u32)));
    arguments.extend([Value::F32(alpha), Value::F32(beta), Value::F32s(bias)]);
    let strides = [batch, stride_a, stride_b, stride_c];
    arguments.extend(strides.map(|value| Value::U32(value as u32)));
    Case {
        label: format!("{batch} of {m}×{n}×{k}"),
        arguments,
        output: 2,
        expected,
    }
}

fn matrix(values: Vec<f32>, ty: PtxType) -> Value {
    match ty {
        PtxType::F16 => Value::F16s(values),
        PtxType::BF16 => Value::Bf16s(values),
        _ => Value::F32s(values),
    }
}

#[test]
fn batched_kernels_with_tensor_maps_return_errors() {
    for kernel in [GemmKernel::wgmma(PtxType::F16), GemmKernel::wgmma_tf32()] {
        let error = kernel.batched().build(Target::Sm90a);
        let batched = matches!(
            error,
            Err(Error::Invalid {
                what: "batched",
                ..
            })
        );
        assert!(batched, "{error:?}");
    }
}
