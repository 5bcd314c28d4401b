//! Random graphs, run as recorded and as optimised.

use relampago::reference;
use relampago::{
    AxisFold, BufferId, Conv2d, ConvLayer, GpuCommandBatch, GpuDevice, Op, Padding, Rearrange,
    ReduceAxis, Result,
};

use super::{Random, binary_ops, custom_ops, reductions, unary_ops};

/// Operations of a graph at most.
const LONGEST: usize = 12;
/// Roundings tried to find out how much of a result they are.
const DRAWS: u64 = 8;

/// A row-major matrix and where it comes from.
struct Node {
    rows: usize,
    cols: usize,
    source: Source,
}

enum Source {
    Values(Vec<f32>),
    Op(Op, Vec<usize>),
}

/// A graph of up to twelve operations.
pub struct Graph {
    nodes: Vec<Node>,
    /// The nodes that are read, and those of them declared as outputs.
    reads: Vec<usize>,
    told: Vec<usize>,
}

impl Graph {
    pub fn random(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut graph = Self {
            nodes: Vec::new(),
            reads: Vec::new(),
            told: Vec::new(),
        };
        let (rows, cols) = (1 + random.below(9), 1 + random.below(40));
        for _ in 0..=random.below(3) {
            graph.values(&mut random, rows, cols);
        }
        for _ in 0..=random.below(LONGEST) {
            graph.operation(&mut random);
        }
        graph.choose_reads(&mut random);
        graph
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        let operation = |node: &&Node| matches!(node.source, Source::Op(..));
        self.nodes.iter().filter(operation).count()
    }

    fn values(&mut self, random: &mut Random, rows: usize, cols: usize) -> usize {
        let source = Source::Values(random.values(rows * cols));
        self.push(rows, cols, source)
    }

    fn push(&mut self, rows: usize, cols: usize, source: Source) -> usize {
        self.nodes.push(Node { rows, cols, source });
        self.nodes.len() - 1
    }

    /// Mostly one of the last nodes, so that there are chains.
    fn any(&self, random: &mut Random) -> usize {
        let recent = self.nodes.len().min(3);
        if random.below(3) > 0 {
            return self.nodes.len() - 1 - random.below(recent);
        }
        random.below(self.nodes.len())
    }

    /// A node of this shape, or new values.
    fn of_shape(&mut self, random: &mut Random, rows: usize, cols: usize) -> usize {
        let fits = |node: &usize| (self.nodes[*node].rows, self.nodes[*node].cols) == (rows, cols);
        let fitting: Vec<usize> = (0..self.nodes.len()).filter(fits).collect();
        if fitting.is_empty() || random.below(4) == 0 {
            return self.values(random, rows, cols);
        }
        fitting[random.below(fitting.len())]
    }

    fn operation(&mut self, random: &mut Random) {
        let x = self.any(random);
        let (rows, cols) = (self.nodes[x].rows, self.nodes[x].cols);
        let (op, inputs, shape) = match random.below(30) {
            0..=6 => (random.one_of(unary_ops()), vec![x], (rows, cols)),
            7..=10 => {
                let y = self.of_shape(random, rows, cols);
                (random.one_of(binary_ops()), vec![x, y], (rows, cols))
            }
            11 => {
                let bias = self.of_shape(random, 1, cols);
                (Op::BiasAdd { rows, cols }, vec![x, bias], (rows, cols))
            }
            12 | 13 => (softmax(random, rows, cols), vec![x], (rows, cols)),
            24 => {
                let len = 1 + random.below(12);
                if random.below(2) == 0 {
                    let indices = (0..len * rows).map(|_| random.below(cols) as f32).collect();
                    let indices = self.push(rows, len, Source::Values(indices));
                    let op = Op::TakeAlongRows { rows, cols, k: len };
                    return self.push_op(op, vec![x, indices], (rows, len));
                }
                let indices = (0..len).map(|_| random.below(rows) as f32).collect();
                let indices = self.push(1, len, Source::Values(indices));
                (Op::GatherRows { rows, cols }, vec![x, indices], (len, cols))
            }
            25 | 26 => {
                let repeated = self.repeated(random, rows, cols);
                let inputs = if random.below(2) == 0 {
                    vec![x, repeated]
                } else {
                    vec![repeated, x]
                };
                (random.one_of(binary_ops()), inputs, (rows, cols))
            }
            27 => axis_fold(random, rows, cols, x),
            28 => {
                let more = 1 + random.below(9);
                let more = self.of_shape(random, rows, more);
                let b_cols = self.nodes[more].cols;
                let op = Op::ConcatRows {
                    rows,
                    a_cols: cols,
                    b_cols,
                };
                (op, vec![x, more], (rows, cols + b_cols))
            }
            14 => (Op::Transpose { rows, cols }, vec![x], (cols, rows)),
            15 | 16 => {
                let n = 1 + random.below(12);
                let weights = self.of_shape(random, cols, n);
                let op = Op::Matmul {
                    m: rows,
                    k: cols,
                    n,
                };
                (op, vec![x, weights], (rows, n))
            }
            22 | 23 => self.norm(random, x),
            17 => self.convolution(random, x),
            18 => (random.one_of(reductions()), vec![x], (1, 1)),
            19 | 20 => self.custom(random, x),
            _ => {
                let y = self.of_shape(random, rows, cols);
                (Op::Dot, vec![x, y], (1, 1))
            }
        };
        self.push_op(op, inputs, shape);
    }

    /// A row, a column or one element, repeated to a matrix.
    fn repeated(&mut self, random: &mut Random, rows: usize, cols: usize) -> usize {
        let (shape, strides) = random.one_of(vec![
            ((1, cols), [0, 1]),
            ((rows, 1), [1, 0]),
            ((1, 1), [0, 0]),
        ]);
        let of = self.of_shape(random, shape.0, shape.1);
        let options = Rearrange::new(&[rows, cols], &strides);
        self.push_op(Op::Rearrange { options }, vec![of], (rows, cols));
        self.nodes.len() - 1
    }

    fn push_op(&mut self, op: Op, inputs: Vec<usize>, (rows, cols): (usize, usize)) {
        self.push(rows, cols, Source::Op(op, inputs));
    }

    fn norm(&mut self, random: &mut Random, x: usize) -> (Op, Vec<usize>, (usize, usize)) {
        let (rows, cols) = (self.nodes[x].rows, self.nodes[x].cols);
        let (gain, bias) = (
            self.of_shape(random, 1, cols),
            self.of_shape(random, 1, cols),
        );
        let epsilon = 0.01;
        if random.below(2) == 0 {
            let op = Op::LayerNorm {
                rows,
                cols,
                epsilon,
            };
            return (op, vec![x, gain, bias], (rows, cols));
        }
        let op = Op::RmsNorm {
            rows,
            cols,
            epsilon,
        };
        (op, vec![x, gain], (rows, cols))
    }

    fn custom(&mut self, random: &mut Random, x: usize) -> (Op, Vec<usize>, (usize, usize)) {
        let (rows, cols) = (self.nodes[x].rows, self.nodes[x].cols);
        let arity = 1 + random.below(3);
        let parameters = [&[1.5][..], &[-0.5, 0.75], &[]][arity - 1];
        let mut inputs = vec![x];
        for _ in 1..arity {
            inputs.push(self.of_shape(random, rows, cols));
        }
        let op = custom_ops()[arity - 1].with(parameters);
        (op.expect("so many parameters"), inputs, (rows, cols))
    }

    fn convolution(&mut self, random: &mut Random, x: usize) -> (Op, Vec<usize>, (usize, usize)) {
        let (rows, cols) = (self.nodes[x].rows, self.nodes[x].cols);
        let (height, width) = (1 + random.below(rows.min(3)), 1 + random.below(cols.min(5)));
        if random.below(3) == 0 {
            // Each row as a channel of an image of one row.
            let filters = 1 + random.below(6);
            let weights = self.of_shape(random, filters, rows * width);
            let options = ConvLayer::new(Conv2d::valid(1, cols, 1, width), rows, filters);
            let shape = (filters, options.output_shape().1);
            return (Op::ConvolveLayer { options }, vec![x, weights], shape);
        }
        let kernel = self.of_shape(random, height, width);
        let mut options = Conv2d::valid(rows, cols, height, width);
        if random.below(2) == 0 {
            options.padding = Padding::Same;
        }
        (
            Op::Convolve2d { options },
            vec![x, kernel],
            options.output_shape(),
        )
    }

    /// Chooses the ends of the graph and, now and then, intermediate nodes.
    fn choose_reads(&mut self, random: &mut Random) {
        let mut read: Vec<bool> = self.nodes.iter().map(|_| random.below(6) == 0).collect();
        self.told = (0..read.len())
            .filter(|&node| read[node] && random.below(2) == 0)
            .collect();
        let mut end = vec![true; self.nodes.len()];
        for node in &self.nodes {
            if let Source::Op(_, inputs) = &node.source {
                for &input in inputs {
                    end[input] = false;
                }
            }
        }
        read.iter_mut()
            .zip(end)
            .for_each(|(read, end)| *read |= end);
        self.reads = (0..read.len()).filter(|&node| read[node]).collect();
    }

    fn record(&self, device: &GpuDevice, optimised: bool) -> (GpuCommandBatch, Vec<BufferId>) {
        let mut batch = GpuCommandBatch::new(device.clone());
        batch.set_optimised(optimised);
        let mut ids: Vec<BufferId> = Vec::new();
        for node in &self.nodes {
            ids.push(match &node.source {
                Source::Values(values) => batch.upload(values),
                Source::Op(op, inputs) => {
                    let inputs: Vec<BufferId> = inputs.iter().map(|&input| ids[input]).collect();
                    batch.record(op.clone(), &inputs)
                }
            });
        }
        (batch, ids)
    }

    async fn run(&self, device: &GpuDevice, optimised: bool) -> Result<Vec<Vec<f32>>> {
        let (mut batch, ids) = self.record(device, optimised);
        for &told in &self.told {
            batch.output(ids[told])?;
        }
        batch.execute_async().await?;
        let mut results = Vec::new();
        for &read in &self.reads {
            results.push(batch.read_async(ids[read]).await?);
        }
        Ok(results)
    }

    /// Runs the graph as recorded and as optimised. Returns the number of kernels of each, or the
    /// difference.
    pub async fn compare(&self, device: &GpuDevice) -> std::result::Result<[usize; 2], String> {
        let describe = |error| format!("{error}\n{}", self.describe());
        let plain = self.run(device, false).await.map_err(describe)?;
        let optimised = self.run(device, true).await.map_err(describe)?;
        let same = |(a, b): (&Vec<f32>, &Vec<f32>)| a.iter().zip(b).all(|(a, b)| a == b);
        if !plain.iter().zip(&optimised).all(same) {
            let bounds = self.bounds();
            for (place, &read) in self.reads.iter().enumerate() {
                check(&plain[place], &optimised[place], &bounds[read])
                    .map_err(|error| format!("node {read}: {error}\n{}", self.describe()))?;
            }
        }
        let kernels = |optimised| self.record(device, optimised).0.explain().kernels.len();
        Ok([kernels(false), kernels(true)])
    }

    fn describe(&self) -> String {
        let lines = self.nodes.iter().enumerate().map(|(place, node)| {
            let Node { rows, cols, source } = node;
            match source {
                Source::Values(_) => format!("{place}: {rows} x {cols} values"),
                Source::Op(op, inputs) => format!("{place}: {rows} x {cols}, {op:?} of {inputs:?}"),
            }
        });
        let told = format!("read {:?}, told of {:?}", self.reads, self.told);
        lines.chain([told]).collect::<Vec<_>>().join("\n")
    }

    /// Returns for each node and element the least and the largest result over roundings within the
    /// op table's bounds.
    fn bounds(&self) -> Vec<Vec<[f64; 2]>> {
        let mut bounds: Vec<Vec<[f64; 2]>> = Vec::new();
        for draw in 0..DRAWS {
            for (place, values) in self.rounded(draw).into_iter().enumerate() {
                if bounds.len() <= place {
                    bounds.push(vec![[f64::INFINITY, f64::NEG_INFINITY]; values.len()]);
                }
                for (bound, value) in bounds[place].iter_mut().zip(values) {
                    let value = f64::from(value);
                    // Where one rounding gives NaN, anything may come of it.
                    *bound = if value.is_nan() {
                        [f64::NEG_INFINITY, f64::INFINITY]
                    } else {
                        [bound[0].min(value), bound[1].max(value)]
                    };
                }
            }
        }
        bounds
    }

    /// Returns the largest magnitude of what a softmax takes differences of, if an operation computes it. A fused kernel
    /// computes the values at each reading, and compilers of GPUs contract the product of one reading with the
    /// difference: digits remain that the largest value, an `f32`, has lost.
    fn contracted(&self, op: &Op, input: usize, values: &[f32]) -> f64 {
        let takes_differences = matches!(
            op,
            Op::Softmax | Op::LogSoftmax | Op::SoftmaxRows { .. } | Op::LogSoftmaxRows { .. }
        );
        if !takes_differences || matches!(self.nodes[input].source, Source::Values(_)) {
            return 0.0;
        }
        let magnitudes = values.iter().map(|x| f64::from(x.abs()));
        magnitudes.filter(|x| x.is_finite()).fold(0.0, f64::max)
    }

    /// Every node's values, each rounded somewhere within its operation's bound.
    fn rounded(&self, draw: u64) -> Vec<Vec<f32>> {
        let mut random = Random(draw);
        let mut all: Vec<Vec<f32>> = Vec::new();
        for node in &self.nodes {
            let values = match &node.source {
                Source::Values(values) => values.clone(),
                Source::Op(op, inputs) => {
                    let contracted = self.contracted(op, inputs[0], &all[inputs[0]]);
                    let inputs: Vec<&[f32]> = inputs.iter().map(|&i| &all[i][..]).collect();
                    let expected = reference::evaluate(op, &inputs).into_iter();
                    // Rounding to `f32` undoes less than that. Of a user's nothing is stated.
                    let ulp = if op.ulp().is_finite() {
                        op.ulp().max(1.0)
                    } else {
                        1.0
                    };
                    let round = |want: reference::Expected| {
                        let error = f64::from(random.value() / 8.0) * ulp;
                        let unit = f64::from(f32::EPSILON) * (want.magnitude + contracted);
                        // An infinite magnitude leaves no digit certain.
                        let error = if unit.is_finite() { error * unit } else { 0.0 };
                        (want.value + error) as f32
                    };
                    expected.map(round).collect()
                }
            };
            all.push(values);
        }
        all
    }
}

/// A sum, mean or extreme of rows or columns.
fn axis_fold(
    random: &mut Random,
    rows: usize,
    cols: usize,
    x: usize,
) -> (Op, Vec<usize>, (usize, usize)) {
    let folds = [AxisFold::Sum, AxisFold::Mean, AxisFold::Max, AxisFold::Min];
    let fold = random.one_of(folds.to_vec());
    let (options, shape) = if random.below(2) == 0 {
        (ReduceAxis::new(fold, rows, cols, 1), (rows, 1))
    } else {
        (ReduceAxis::new(fold, 1, rows, cols), (1, cols))
    };
    (Op::ReduceAxis { options }, vec![x], shape)
}

fn softmax(random: &mut Random, rows: usize, cols: usize) -> Op {
    random.one_of(vec![
        Op::Softmax,
        Op::LogSoftmax,
        Op::SoftmaxRows { rows, cols },
        Op::LogSoftmaxRows { rows, cols },
    ])
}

/// Whether two results differ by no more than roundings make of them.
fn check(plain: &[f32], optimised: &[f32], bounds: &[[f64; 2]]) -> std::result::Result<(), String> {
    for (i, (&a, &b)) in plain.iter().zip(optimised).enumerate() {
        let (a, b, [low, high]) = (f64::from(a), f64::from(b), bounds[i]);
        if a == b || (a.is_nan() && b.is_nan()) || low.is_infinite() || high.is_infinite() {
            continue;
        }
        // A few draws do not find the extremes.
        let room = 4.0 * (high - low) + f64::from(f32::MIN_POSITIVE);
        // Not so for NaN, either.
        let close = (a - b).abs() <= room;
        if !close {
            return Err(format!(
                "value {i} is {a} as recorded and {b} optimised; {low} to {high}"
            ));
        }
    }
    Ok(())
}
