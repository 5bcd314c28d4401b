//! Messages of errors, word for word.

use relampago::{
    Argument, Backend, Conv2d, ConvLayer, CustomOp, GpuCommandBatch, GpuDevice, GpuDevicePool,
    GpuMatmulCache, MemoryLayout, Op, PartitionView, QuantizedWeights, Result, TensorView,
    WeightFormat,
};

use crate::devices;

fn message<T>(result: Result<T>) -> String {
    let error = result.err();
    error.map_or_else(|| "no error".to_owned(), |error| error.to_string())
}

/// Checks that each message contains the value, the limit and the remedy.
fn check(table: &[(String, &str)]) {
    for (message, expected) in table {
        assert_eq!(message, expected);
    }
}

#[test]
fn operation_messages_name_value_and_limit() {
    for device in devices() {
        let run = |op: Op, inputs: &[&[f32]]| message(device.run(&op, inputs));
        let (four, clip) = (&[0.0; 4][..], |min, max| Op::Clip { min, max });
        let plain = Conv2d::valid(2, 2, 2, 2);
        let convolve = |options| run(Op::Convolve2d { options }, &[four, four]);
        let layer = |layer: ConvLayer| run(Op::ConvolveLayer { options: layer }, &[four, four]);
        let three = Conv2d::valid(4, 4, 3, 3);
        let norm = Op::RmsNorm {
            rows: 2,
            cols: 2,
            epsilon: 0.0,
        };
        let (rows, cols) = (usize::MAX, 3);
        check(&[
            (
                run(Op::VecAdd, &[four, &[1.0]]),
                "`b` has 1 values, but must have 4 like `a`",
            ),
            (
                run(Op::Matmul { m: 2, k: 4, n: 1 }, &[&[0.0; 7], four]),
                "`a` has 7 values, but must have 8 (m × k)",
            ),
            (
                run(Op::BiasAdd { rows: 2, cols: 2 }, &[four, &[1.0; 3]]),
                "`bias` has 3 values, but must have 2 (cols)",
            ),
            (
                convolve(Conv2d::valid(2, 2, 1, 1)),
                "`kernel` has 4 values, but must have 1 (rows × columns of the kernel)",
            ),
            (
                run(Op::Max, &[&[]]),
                "`max` of an empty input is undefined: at least 1 value is needed",
            ),
            (
                run(clip(2.0, 1.0), &[four]),
                "`min` is 2, but must be at most `max` (1), and neither may be NaN",
            ),
            (
                run(clip(2.0, f32::NAN), &[four]),
                "`min` is 2, but must be at most `max` (NaN), and neither may be NaN",
            ),
            (
                run(norm, &[four, &[1.0; 2]]),
                "`epsilon` is 0, but must be a finite number of at least 1.2e-38",
            ),
            (
                run(Op::Transpose { rows, cols }, &[four]),
                "`x` of shape [18446744073709551615, 3] has more values than \
                 2305843009213693951, the most of an array",
            ),
            (
                convolve(Conv2d::valid(2, 2, 3, 2)),
                "`kernel_rows` is 3, but must be at most 2, the size of the input, unless the padding is `same`",
            ),
            (
                convolve(Conv2d::valid(2, 2, 2, 7)),
                "`kernel_cols` is 7, but must be at most 2, the size of the input, unless the padding is `same`",
            ),
            (
                convolve(plain.with_stride(1, 0)),
                "`stride_cols` is 0, but must be at least 1",
            ),
            (
                layer(ConvLayer::new(plain, 4, 6).with_groups(4)),
                "`filters` is 6, but must be a multiple of `groups` (4)",
            ),
            (
                layer(ConvLayer::new(three, 1, 1).with_dilation(2, 1)),
                "`kernel_rows` is 3, spread over 5 by its dilation, but must be at most 4, the \
                 size of the input, unless the padding is `same`",
            ),
            (
                layer(ConvLayer::new(three, 1, 1).with_dilation(1, 1 << 30)),
                "the columns of the dilated kernel is 2147483649, beyond the limit of 1073741824",
            ),
        ]);
    }
}

#[test]
fn view_and_weight_messages_name_value_and_limit() {
    let view = TensorView::<f32>::new_2d(4, 6).unwrap();
    let layout = |tile_size| view.with_layout(MemoryLayout::Tiled { tile_size });
    let tiled = layout([2, 2]).unwrap();
    let device = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
    let (a, mut c) = (&[0.0; 24][..], [0.0; 4]);
    let (left, right) = (
        view.bind(a).unwrap(),
        view.slice(0..3).unwrap().bind(a).unwrap(),
    );
    let mut cache = GpuMatmulCache::new(device.clone());
    let weights = |weight, format| QuantizedWeights::new(&[weight], 1, 1, format).map(drop);
    let blocks = |k, format| QuantizedWeights::from_blocks(&[], k, 1, format).map(drop);
    let ends = (3, 1);
    check(&[
        (
            message(view.slice(0..5)),
            "the end of the range is 5, beyond the limit of 4",
        ),
        (
            message(view.slice(ends.0..ends.1)),
            "`range` is 3..1, but must be a range that does not end before it starts",
        ),
        (
            message(tiled.slice(1..4)),
            "`range` is 1..4, but must be one that starts at a multiple of 2, where a tile does",
        ),
        (
            message(view.transpose(0, 4)),
            "the dimension is 4, beyond the limit of 3",
        ),
        (
            message(tiled.transpose(0, 2)),
            "`dim` is 2, but must be 0 or 1 in a tiled layout",
        ),
        (
            message(view.transpose(0, 1).unwrap().reshape([24, 1, 1, 1])),
            "`view` is [6, 4, 1, 1] at strides [1, 6, 1, 1], but must be contiguous to be \
             reshaped: copy its elements first",
        ),
        (
            message(layout([0, 2])),
            "`tile_size` is 0×2, but must be at least 1×1",
        ),
        (
            message(PartitionView::new_2d(view, 0, 2)),
            "`tile_shape` is [0, 2, 1, 1], but must be at least 1 in each dimension",
        ),
        (
            message(device.matmul_view(&left, &right, &mut c)),
            "`b` is 3×6, but must be of 6 rows, as many as `a`, 4×6, has columns",
        ),
        (
            message(cache.matmul_cached("layer", a, &mut c, 1)),
            "`name` is layer, but must be the name of weights in the cache",
        ),
        (
            message(weights(1e6, WeightFormat::F16)),
            "`weights` is 1000000 at row 0, column 0, but must be from -65504 to 65504, which F16 \
             holds",
        ),
        (
            message(weights(1.0, WeightFormat::F32)),
            "`format` is F32, but must be F16, Q8_0 or Q4_0",
        ),
        (
            message(blocks(33, WeightFormat::Q8_0)),
            "`k` is 33, but must be a multiple of 32",
        ),
        (
            message(cache.insert_view("layer", &four_dimensions(a), WeightFormat::F32)),
            "`weights` is of shape [2, 3, 4, 1], but must be of one or two dimensions",
        ),
    ]);
}

fn four_dimensions(values: &[f32]) -> relampago::BoundView<'_> {
    TensorView::new_3d(2, 3, 4).unwrap().bind(values).unwrap()
}

#[test]
fn batch_messages_say_what_to_do() {
    let device = GpuDevice::builder().backend(Backend::Simd).build().unwrap();
    let mut batch = GpuCommandBatch::new(device.clone());
    let x = batch.placeholder(2);
    let y = batch.relu(x);
    let program = batch.compile(&[y]).unwrap();
    let values = [1.0, 2.0];
    let arguments = [Argument::from(&values[..])];
    let repeat =
        |times, feedback: &[(usize, usize)]| message(program.run_n(&arguments, times, feedback));
    let mut other = GpuCommandBatch::new(device.clone());
    let unread = other.upload(&values);
    let named = |name: &'static [&'static str; 1]| {
        message(CustomOp::new("f", name, &[], "1.0", |[x], []| x))
    };
    check(&[
        (repeat(0, &[]), "`times` is 0, but must be at least 1"),
        (
            repeat(2, &[(1, 0)]),
            "`feedback` is 1, but must be below 1, the number of results",
        ),
        (
            repeat(2, &[(0, 3)]),
            "`feedback` is 3, but must be below 1, the number of arguments",
        ),
        (
            message(batch.execute_sync()),
            "the batch has placeholders: compile it, and run the program with values for them",
        ),
        (
            message(other.read_sync(unread)),
            "the batch has not been executed yet: execute it before it is read",
        ),
        (
            message(other.read_sync(y)),
            "`id` belongs to another batch: copy its values to this one",
        ),
        (
            // The name in the message of a build with CUDA is one more.
            message("vulkan".parse::<Backend>()).replace(", cuda", ""),
            "`backend` is vulkan, but must be one of auto, gpu, simd: `gpu` is WebGPU, Vulkan, Metal \
             and DX12, `simd` is the CPU",
        ),
        (
            message(GpuDevicePool::from_devices([]).map(drop)),
            "`devices` is [], but must be at least one device",
        ),
        (
            named(&["1x"]),
            "`inputs` is 1x, but must be ASCII letters, digits and `_`, and no digit first",
        ),
    ]);
}
