//! Cases of every operation and their judgement, for all back-ends and both environments.

// Each test program includes this file and uses some of it.
#![allow(dead_code, unreachable_pub)]

pub mod graphs;

use relampago::reference::{self, Expected};
#[cfg(all(not(target_arch = "wasm32"), feature = "gpu"))]
use relampago::{Backend, GpuDevice, runtime, wgpu};
use relampago::{Conv2d, CustomOp, Matmul, Op};
use std::sync::LazyLock;

/// A device of the caller's own, with limits as small as wanted.
#[cfg(all(not(target_arch = "wasm32"), feature = "gpu"))]
pub fn adopted(change: impl FnOnce(&mut wgpu::Limits)) -> (GpuDevice, wgpu::Device) {
    runtime::block_on(async {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let options = wgpu::RequestAdapterOptions::default();
        let adapter = instance
            .request_adapter(&options)
            .await
            .expect("a GPU adapter, if in software");
        let mut required_limits = adapter.limits();
        change(&mut required_limits);
        let descriptor = wgpu::DeviceDescriptor {
            required_limits,
            ..Default::default()
        };
        let (device, queue) = adapter.request_device(&descriptor).await.expect("a device");
        let builder = GpuDevice::builder().backend(Backend::Gpu);
        (builder.adopt(device.clone(), queue), device)
    })
}

/// An operation with inputs.
#[derive(Debug)]
pub struct Case {
    pub op: Op,
    pub inputs: Vec<Vec<f32>>,
}

impl Case {
    fn new(op: Op, inputs: Vec<Vec<f32>>) -> Self {
        Self { op, inputs }
    }

    pub fn inputs(&self) -> Vec<&[f32]> {
        self.inputs.iter().map(Vec::as_slice).collect()
    }

    /// The largest error of `actual` in the op table's units, or what is wrong with it.
    ///
    /// GPUs may read denormal inputs as zero, so for them either reading is right.
    pub fn judge(&self, actual: &[f32], on_gpu: bool) -> Result<f64, String> {
        let expected = reference::evaluate(&self.op, &self.inputs());
        let flushed = on_gpu.then(|| self.flushed()).flatten();
        if expected.len() != actual.len() {
            return Err(format!("{:?}: {} values", self.op, actual.len()));
        }
        let mut largest = 0.0f64;
        for (i, (&value, want)) in actual.iter().zip(&expected).enumerate() {
            let also = flushed.as_ref().map(|flushed| &flushed[i]);
            let error =
                error(want, value).min(also.map_or(f64::INFINITY, |want| error(want, value)));
            largest = largest.max(error);
            if error > self.op.ulp() {
                return Err(self.complaint(i, value, want, error));
            }
        }
        Ok(largest)
    }

    fn flushed(&self) -> Option<Vec<Expected>> {
        let denormal = |x: &f32| x.is_subnormal();
        if !self.inputs.iter().flatten().any(denormal) {
            return None;
        }
        let flush = |&x: &f32| {
            if x.is_subnormal() {
                0f32.copysign(x)
            } else {
                x
            }
        };
        let inputs: Vec<Vec<f32>> = self
            .inputs
            .iter()
            .map(|v| v.iter().map(flush).collect())
            .collect();
        let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
        Some(reference::evaluate(&self.op, &inputs))
    }

    fn complaint(&self, i: usize, value: f32, want: &Expected, error: f64) -> String {
        let at: Vec<Option<&f32>> = self.inputs.iter().map(|input| input.get(i)).collect();
        let lens: Vec<usize> = self.inputs.iter().map(Vec::len).collect();
        format!(
            "{:?} of lengths {lens:?}: value {i} is {value:e}, not {:e}: {error:.2} ULP where {} are stated; inputs there {at:?}",
            self.op,
            want.value,
            self.op.ulp()
        )
    }
}

fn error(want: &Expected, value: f32) -> f64 {
    if want.value.is_nan() {
        return if value.is_nan() { 0.0 } else { f64::INFINITY };
    }
    want.error(value)
}

pub const SIZES: [usize; 9] = [0, 1, 3, 63, 64, 65, 1_000, 65_537, 1_000_003];

/// Values at which implementations differ.
pub const SPECIAL: [f32; 29] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -1.0,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    1e-45,
    -1e-45,
    3e-39,
    -3e-39,
    f32::MAX,
    f32::MIN,
    1e30,
    -1e30,
    1e-30,
    -1e-30,
    f32::EPSILON,
    88.5,
    89.0,
    -87.5,
    -88.0,
    -103.5,
    -105.0,
    0.5,
    -13.0,
    16_777_216.0,
];

/// Reproducible values; splitmix64 (Steele, Lea and Flood, 2014).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform between −8 and 8.
    pub fn value(&mut self) -> f32 {
        ((self.next() >> 40) as f32 / (1 << 24) as f32 - 0.5) * 16.0
    }

    /// A whole number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn one_of<T>(&mut self, mut choices: Vec<T>) -> T {
        let choice = self.below(choices.len());
        choices.swap_remove(choice)
    }

    pub fn values(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.value()).collect()
    }
}

pub fn unary_ops() -> Vec<Op> {
    vec![
        Op::Relu {},
        Op::LeakyRelu {
            negative_slope: 0.01,
        },
        Op::LeakyRelu {
            negative_slope: -2.0,
        },
        Op::Elu { alpha: 1.0 },
        Op::Elu { alpha: 0.3 },
        Op::Sigmoid {},
        Op::Tanh {},
        Op::Swish {},
        Op::Gelu {},
        Op::GeluTanh {},
        Op::Clip {
            min: -1.5,
            max: 2.5,
        },
        Op::Clip {
            min: f32::NEG_INFINITY,
            max: 0.0,
        },
        Op::Exp {},
        Op::Log {},
        Op::Sqrt {},
        Op::Abs {},
        Op::Neg {},
        Op::Scale { factor: 2.5 },
    ]
}

pub fn binary_ops() -> Vec<Op> {
    vec![
        Op::VecAdd {},
        Op::Sub {},
        Op::Mul {},
        Op::Div {},
        Op::Minimum {},
        Op::Maximum {},
    ]
}

/// Operations of a user's own, continuous and with a rounding at most, of one to three inputs.
pub fn custom_ops() -> &'static [CustomOp; 3] {
    static OPS: LazyLock<[CustomOp; 3]> = LazyLock::new(|| {
        let steeper = CustomOp::new(
            "steeper",
            &["x"],
            &["factor"],
            "if x < 0.0 { return x * factor; } return x;",
            |[x], [factor]| if x < 0.0 { x * factor } else { x },
        );
        let raised = CustomOp::new(
            "raised",
            &["a", "b"],
            &["low", "factor"],
            "maximum(a * factor, maximum(b, low))",
            |[a, b], [low, factor]| largest(a * factor, largest(b, low)),
        );
        let between = CustomOp::new(
            "between",
            &["x", "low", "high"],
            &[],
            "minimum(maximum(x, low), high)",
            |[x, low, high], []| -largest(-largest(x, low), -high),
        );
        [steeper, raised, between].map(|op| op.expect("three functions"))
    });
    &OPS
}

/// The larger number, or NaN where either is.
fn largest(a: f32, b: f32) -> f32 {
    if a > b || a.is_nan() { a } else { b }
}

pub fn reductions() -> Vec<Op> {
    vec![
        Op::Sum {},
        Op::Max {},
        Op::Min {},
        Op::Mean {},
        Op::Argmax {},
    ]
}

fn has_identity(op: &Op) -> bool {
    matches!(op, Op::Sum {} | Op::Dot {})
}

/// Every operation on vectors of one length.
pub fn vector_cases(len: usize) -> Vec<Case> {
    let mut random = Random(len as u64);
    let mut cases = Vec::new();
    let softmaxes = [Op::Softmax {}, Op::LogSoftmax {}];
    for op in unary_ops().into_iter().chain(softmaxes) {
        cases.push(Case::new(op, vec![random.values(len)]));
    }
    for op in binary_ops().into_iter().chain([Op::Dot {}]) {
        cases.push(Case::new(op, vec![random.values(len), random.values(len)]));
    }
    for op in reductions() {
        if len > 0 || has_identity(&op) {
            cases.push(Case::new(op, vec![random.values(len)]));
        }
    }
    cases
}

/// Every operation on the special values: unary ones on all of them, binary ones on all pairs.
pub fn special_cases() -> Vec<Case> {
    let n = SPECIAL.len();
    let first: Vec<f32> = (0..n * n).map(|i| SPECIAL[i / n]).collect();
    let second: Vec<f32> = (0..n * n).map(|i| SPECIAL[i % n]).collect();
    let mut cases = Vec::new();
    for op in unary_ops() {
        cases.push(Case::new(op, vec![SPECIAL.to_vec()]));
    }
    for op in binary_ops() {
        cases.push(Case::new(op, vec![first.clone(), second.clone()]));
    }
    let row_ops = reductions()
        .into_iter()
        .chain([Op::Softmax {}, Op::LogSoftmax {}]);
    for op in row_ops {
        cases.extend(
            special_rows()
                .into_iter()
                .map(|row| Case::new(op.clone(), vec![row])),
        );
    }
    for row in special_rows() {
        let (gain, bias) = (vec![1.5; row.len()], vec![-0.5; row.len()]);
        cases.extend(norm_cases((1, row.len()), row, [&gain, &bias]));
    }
    cases
}

/// Rows with one special value among ordinary ones, at places that different lanes, blocks and
/// workgroups see, and rows of nothing else.
fn special_rows() -> Vec<Vec<f32>> {
    let mut rows = Vec::new();
    for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for (len, place) in [(1, 0), (5, 4), (1_000, 513), (70_001, 70_000), (70_001, 0)] {
            let mut row = Random(place as u64).values(len);
            row[place] = special;
            rows.push(row);
        }
        rows.push(vec![special; 100]);
        rows.push(vec![special; 70_001]);
    }
    rows.push([SPECIAL[1], SPECIAL[2]].repeat(40));
    // The first of two NaN, and the first of many equal values.
    rows.push(vec![1.0, f32::NAN, 2.0, f32::NAN, 3.0]);
    rows.push(vec![7.0; 70_001]);
    rows
}

const MATMUL_SHAPES: [(usize, usize, usize); 15] = [
    (1, 1, 1),
    (1, 65, 1),
    (1, 7, 65),
    (65, 7, 1),
    (1, 1_000, 33),
    (33, 1_000, 1),
    (3, 5, 7),
    (17, 33, 65),
    (64, 64, 64),
    (127, 129, 131),
    (5, 0, 4),
    (0, 3, 4),
    (4, 3, 0),
    (0, 0, 0),
    (2, 3_000, 2),
];

const ROW_SHAPES: [(usize, usize); 11] = [
    (0, 0),
    (0, 5),
    (5, 0),
    (1, 1),
    (1, 70_001),
    (3, 9_001),
    (7, 13),
    (129, 8_200),
    (300, 3),
    (64, 64),
    (4_099, 1),
];

/// Long sums of like terms, whose roundings all go one way.
fn like_terms() -> Vec<Case> {
    let mut cases = Vec::new();
    for value in [0.7, 1.1, 0.3333] {
        for (m, k, n) in [
            (80, 300, 70),
            (33, 4_100, 18),
            (1, 4_100, 70),
            (70, 4_100, 1),
        ] {
            let inputs = vec![vec![value; m * k], vec![0.37; k * n]];
            cases.push(Case::new(Op::Matmul { m, k, n }, inputs));
        }
        let options = Conv2d::valid(50, 70, 41, 43);
        let inputs = vec![vec![value; 50 * 70], vec![0.37; 41 * 43]];
        cases.push(Case::new(Op::Convolve2d { options }, inputs));
    }
    cases
}

/// Every operation on matrices.
pub fn matrix_cases() -> Vec<Case> {
    let mut random = Random(2);
    let mut cases = like_terms();
    for (m, k, n) in MATMUL_SHAPES {
        let inputs = vec![random.values(m * k), random.values(k * n)];
        let plain = Matmul::new(m, k, n);
        let stored = [
            plain.transpose_a(),
            plain.transpose_b(),
            plain.transpose_a().transpose_b(),
        ];
        for options in stored {
            cases.push(Case::new(Op::MatmulWith { options }, inputs.clone()));
        }
        cases.push(Case::new(Op::Matmul { m, k, n }, inputs));
    }
    for (rows, cols) in ROW_SHAPES {
        let x = random.values(rows * cols);
        let bias = random.values(cols);
        cases.push(Case::new(Op::BiasAdd { rows, cols }, vec![x.clone(), bias]));
        for op in [
            Op::SoftmaxRows { rows, cols },
            Op::LogSoftmaxRows { rows, cols },
            Op::Transpose { rows, cols },
        ] {
            cases.push(Case::new(op, vec![x.clone()]));
        }
        let (gain, bias) = (random.values(cols), random.values(cols));
        cases.extend(norm_cases((rows, cols), x, [&gain, &bias]));
    }
    for options in convolutions() {
        let inputs = vec![
            random.values(options.input_rows * options.input_cols),
            random.values(options.kernel_rows * options.kernel_cols),
        ];
        cases.push(Case::new(Op::Convolve2d { options }, inputs));
    }
    cases
}

/// Both norms of values as they are, and of such as lie far from 0, so that their mean counts.
fn norm_cases((rows, cols): (usize, usize), x: Vec<f32>, [gain, bias]: [&[f32]; 2]) -> Vec<Case> {
    let far = x.iter().map(|x| x + 100.0).collect();
    let mut cases = Vec::new();
    for (x, epsilon) in [(x, 1e-5), (far, 0.1)] {
        let of_all = Op::LayerNorm {
            rows,
            cols,
            epsilon,
        };
        let inputs = vec![x.clone(), gain.to_vec(), bias.to_vec()];
        cases.push(Case::new(of_all, inputs));
        let rms = Op::RmsNorm {
            rows,
            cols,
            epsilon,
        };
        cases.push(Case::new(rms, vec![x, gain.to_vec()]));
    }
    cases
}

fn convolutions() -> Vec<Conv2d> {
    let shapes = [
        (1, 1, 1, 1),
        (5, 5, 3, 3),
        (3, 3, 3, 3),
        (33, 65, 3, 3),
        (64, 64, 5, 5),
        (70, 41, 7, 7),
        (20, 31, 1, 9),
        (31, 20, 9, 1),
        (40, 40, 15, 15),
        (17, 130, 2, 4),
    ];
    let mut all = Vec::new();
    for (rows, cols, kernel_rows, kernel_cols) in shapes {
        for conv in [
            Conv2d::valid(rows, cols, kernel_rows, kernel_cols),
            Conv2d::same(rows, cols, kernel_rows, kernel_cols),
        ] {
            all.extend([
                conv,
                conv.with_stride(2, 2),
                conv.with_stride(3, 1),
                conv.with_stride(100, 7),
            ]);
        }
    }
    // A kernel larger than its input fits where there is padding.
    all.push(Conv2d::same(3, 4, 7, 5));
    all.push(Conv2d::same(0, 4, 3, 3));
    all.push(Conv2d::same(4, 0, 3, 3));
    all
}

/// All cases with vectors of at most `longest` values.
pub fn all_cases(longest: usize) -> Vec<Case> {
    let sizes = SIZES.into_iter().filter(|&len| len <= longest);
    let mut cases: Vec<Case> = sizes.flat_map(vector_cases).collect();
    cases.extend(special_cases());
    cases.extend(matrix_cases());
    cases
}

/// The largest error seen of each operation, in the table's units.
#[derive(Default)]
pub struct Summary {
    errors: std::collections::BTreeMap<&'static str, f64>,
    cases: usize,
}

impl Summary {
    pub fn note(&mut self, case: &Case, error: f64) {
        let largest = self.errors.entry(case.op.name()).or_default();
        *largest = largest.max(error);
        self.cases += 1;
    }

    pub fn line(&self, title: &str) -> String {
        let errors: Vec<String> = self
            .errors
            .iter()
            .map(|(name, error)| format!("{name} {error:.2}"))
            .collect();
        format!(
            "{title}: {} cases; largest errors in ULP: {}",
            self.cases,
            errors.join(", ")
        )
    }
}
