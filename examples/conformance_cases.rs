//! Prints cases of every operation as JSON, for the demo's conformance page: arguments as JavaScript has them, the
//! true results of the oracles in `f64`, and the largest distance from them that the op table allows.

#[cfg(not(target_arch = "wasm32"))]
#[path = "../tests/support/mod.rs"]
mod support;

#[cfg(not(target_arch = "wasm32"))]
fn main() {
    native::print();
}

#[cfg(target_arch = "wasm32")]
fn main() {}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use super::support::{Case, all_cases};
    use relampago::ops::{OPS, OpInfo};
    use relampago::reference::Expected;
    use relampago::{Attention, Conv2d, ConvLayer, Matmul, Op, Padding, Rope};
    use serde_json::{Value, json};

    /// The longest vectors.
    const LONGEST: usize = 65;
    /// The most elements of a case, inputs and result together: a page downloads them all.
    const LARGEST: usize = 6_000;
    /// The most cases of an operation.
    const MOST: usize = 8;

    pub(super) fn print() {
        let mut cases = all_cases(LONGEST);
        cases.retain(is_portable);
        let described = OPS.iter().flat_map(|row| {
            let of_row = |case: &&Case| case.op.name() == row.name;
            // Cases of one kind stand beside each other, so that equal distances find all kinds.
            let distance = cases.iter().filter(of_row).count().div_ceil(MOST).max(1);
            let chosen = cases.iter().filter(of_row).step_by(distance);
            chosen.map(|case| described(row, case))
        });
        println!("{}", described.collect::<Value>());
    }

    /// Returns whether the page can judge a case: it is short, its numbers are JavaScript's, and every GPU must have the
    /// same result, which is not so for squares that add up to more than any number.
    fn is_portable(case: &Case) -> bool {
        let inputs: usize = case.inputs.iter().map(Vec::len).sum();
        let is_short = || inputs + case.expected().0.len() <= LARGEST;
        let has_one_result = !case.rows_with_squares_beyond_numbers().contains(&true);
        inputs <= LARGEST && has_one_result && fits_32_bits(&case.op) && is_short()
    }

    /// Returns whether the shapes and strides of an operation fit WebAssembly's 32 bits.
    fn fits_32_bits(op: &Op) -> bool {
        let Op::Rearrange { options } = op else {
            return true;
        };
        let mut shape = options.shape.iter();
        let mut strides = options.strides.iter();
        shape.all(|&len| u32::try_from(len).is_ok())
            && strides.all(|&stride| i32::try_from(stride).is_ok())
    }

    fn described(row: &OpInfo, case: &Case) -> Value {
        let inputs = case.inputs.iter();
        let inputs = inputs.map(|input| input.iter().map(|&x| number(x.into())).collect());
        let (expected, flushed) = case.expected();
        let mut described = json!({
            "op": row.js_name,
            "inputs": inputs.collect::<Vec<Value>>(),
            "arguments": arguments(row, &case.op),
            "expected": values(&expected),
            "bounds": bounds(&case.op, &expected),
        });
        // GPUs may read denormal inputs as zeros.
        if let Some(flushed) = flushed {
            described["flushed"] = values(&flushed);
            described["flushedBounds"] = bounds(&case.op, &flushed);
        }
        described
    }

    fn values(expected: &[Expected]) -> Value {
        expected.iter().map(|want| number(want.value)).collect()
    }

    /// Returns the largest distances from the true results; a result may be flushed to zero below the smallest normal
    /// number.
    fn bounds(op: &Op, expected: &[Expected]) -> Value {
        let unit = op.ulp() * f64::from(f32::EPSILON);
        let bound = |want: &Expected| unit * want.magnitude + f64::from(f32::MIN_POSITIVE);
        expected.iter().map(|want| number(bound(want))).collect()
    }

    /// Returns a number, as its name in JavaScript where JSON has none for it.
    fn number(x: f64) -> Value {
        match x {
            _ if x.is_nan() => json!("NaN"),
            _ if x.is_infinite() => json!(if x > 0.0 { "Infinity" } else { "-Infinity" }),
            _ => json!(x),
        }
    }

    /// Returns the arguments after the inputs, in the order of the op table.
    fn arguments(row: &OpInfo, op: &Op) -> Value {
        match *op {
            Op::LeakyRelu { negative_slope } => json!([negative_slope]),
            Op::Elu { alpha } => json!([alpha]),
            Op::Clip { min, max } => json!([number(min.into()), max]),
            Op::Scale { factor } => json!([factor]),
            Op::BiasAdd { rows, cols }
            | Op::SoftmaxRows { rows, cols }
            | Op::LogSoftmaxRows { rows, cols }
            | Op::Transpose { rows, cols }
            | Op::GatherRows { rows, cols }
            | Op::ScatterRows { rows, cols }
            | Op::ArgmaxRows { rows, cols }
            | Op::CumsumRows { rows, cols }
            | Op::CumprodRows { rows, cols }
            | Op::SortRows { rows, cols }
            | Op::ArgsortRows { rows, cols } => json!([rows, cols]),
            Op::FftRows { rows, len } => json!([rows, len]),
            Op::LayerNorm {
                rows,
                cols,
                epsilon,
            }
            | Op::RmsNorm {
                rows,
                cols,
                epsilon,
            } => json!([rows, cols, epsilon]),
            Op::Matmul { m, k, n } => json!([m, k, n]),
            Op::UnpackBytes { stride } | Op::PackBytes { stride } => json!([stride]),
            Op::ConcatRows {
                rows,
                a_cols,
                b_cols,
            } => json!([rows, a_cols, b_cols]),
            Op::TakeAlongRows { rows, cols, k } | Op::TopKRows { rows, cols, k } => {
                json!([rows, cols, k])
            }
            Op::MatmulWith { options } => json!([matmul(options)]),
            Op::Convolve2d { options } => json!([image(&options)]),
            Op::ConvolveLayer { options } => json!([layer(&options)]),
            Op::Rearrange { ref options } => json!([{
                "shape": options.shape, "strides": options.strides, "offset": options.offset,
            }]),
            Op::ReduceAxis { options } => json!([{
                "fold": format!("{:?}", options.fold).to_lowercase(),
                "outer": options.outer, "len": options.len, "inner": options.inner,
            }]),
            Op::Rope { ref options } => json!([rope(options)]),
            Op::Attention { options } => json!([attention(&options)]),
            _ => {
                let has_none = row.parameters.is_empty();
                assert!(has_none, "{} has parameters: add them here", row.name);
                json!([])
            }
        }
    }

    fn matmul(options: Matmul) -> Value {
        json!({
            "m": options.m, "k": options.k, "n": options.n,
            "transposeA": options.transpose_a, "transposeB": options.transpose_b,
        })
    }

    fn image(options: &Conv2d) -> Value {
        json!({
            "inputRows": options.input_rows, "inputCols": options.input_cols,
            "kernelRows": options.kernel_rows, "kernelCols": options.kernel_cols,
            "strideRows": options.stride_rows, "strideCols": options.stride_cols,
            "padding": if options.padding == Padding::Same { "same" } else { "valid" },
        })
    }

    fn layer(options: &ConvLayer) -> Value {
        let mut layer = image(&options.image);
        let more = json!({
            "batch": options.batch, "channels": options.channels, "filters": options.filters,
            "groups": options.groups, "dilationRows": options.dilation_rows,
            "dilationCols": options.dilation_cols,
        });
        if let (Value::Object(layer), Value::Object(more)) = (&mut layer, more) {
            layer.extend(more);
        }
        layer
    }

    fn rope(options: &Rope) -> Value {
        let factors = options.factors.as_deref().map(|factors| json!(factors));
        let all = json!({
            "tokens": options.tokens, "heads": options.heads, "headLen": options.head_len,
            "rotated": options.rotated, "interleaved": options.interleaved, "base": options.base,
            "first": options.first, "factors": factors,
        });
        given(all)
    }

    fn attention(options: &Attention) -> Value {
        let all = json!({
            "tokens": options.tokens, "heads": options.heads, "headLen": options.head_len,
            "kvHeads": options.kv_heads, "positions": options.positions, "causal": options.causal,
            "window": options.window, "softCap": options.soft_cap, "scale": options.scale,
        });
        given(all)
    }

    /// Returns an object without the properties that are absent.
    fn given(options: Value) -> Value {
        match options {
            Value::Object(mut options) => {
                options.retain(|_, value| !value.is_null());
                Value::Object(options)
            }
            other => other,
        }
    }
}
