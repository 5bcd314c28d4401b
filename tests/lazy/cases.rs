//! Random expressions of tensors beside their oracles.

use relampago::{Axes, Border, ConvOptions, Result, Slice, Tensor, Tensors};

use crate::oracle::{Array, Beyond, Convolution, argmax, mean, softmax};
use crate::random::Random;

/// A tensor and what it must be.
#[derive(Clone)]
pub struct Pair {
    pub tensor: Tensor,
    pub array: Array,
}

impl Pair {
    fn new(tensor: Result<Tensor>, array: Array) -> Self {
        let tensor = tensor.unwrap_or_else(|error| panic!("{error}, for {:?}", array.shape));
        assert_eq!(tensor.shape(), array.shape);
        Self { tensor, array }
    }

    fn rank(&self) -> usize {
        self.array.shape.len()
    }

    fn is_empty(&self) -> bool {
        self.array.values.is_empty()
    }
}

/// Makes random expressions on one device.
pub struct Cases<'a> {
    pub tensors: &'a Tensors,
    pub random: Random,
    /// The names of what was recorded.
    pub trail: Vec<String>,
}

type Unary = (&'static str, fn(&Tensor) -> Result<Tensor>, fn(f64) -> f64);

const UNARY: &[Unary] = &[
    ("exp", Tensor::exp, f64::exp),
    ("log", Tensor::log, f64::ln),
    ("sqrt", Tensor::sqrt, f64::sqrt),
    ("tanh", Tensor::tanh, f64::tanh),
    ("square", Tensor::square, |x| x * x),
    ("sigmoid", Tensor::sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
    ("sin", Tensor::sin, f64::sin),
    ("floor", Tensor::floor, f64::floor),
    ("not", Tensor::not, |x| f64::from(x == 0.0)),
    ("clip", |x| x.clip(-1.5, 2.25), |x| x.clamp(-1.5, 2.25)),
    (
        "leaky_relu",
        |x| x.leaky_relu(0.25),
        |x| if x < 0.0 { x / 4.0 } else { x },
    ),
    ("scale", |x| x.scale(-3.0), |x| -3.0 * x),
];

type Binary = (
    &'static str,
    fn(&Tensor, &Tensor) -> Result<Tensor>,
    fn(f64, f64) -> f64,
);

/// Operations whose results are exact.
const EXACT: &[Binary] = &[
    ("add", |a, b| a.add(b), |a, b| a + b),
    ("sub", |a, b| a.sub(b), |a, b| a - b),
    ("maximum", |a, b| a.maximum(b), f64::max),
    ("minimum", |a, b| a.minimum(b), f64::min),
    ("equal", |a, b| a.equal(b), |a, b| f64::from(a == b)),
    ("not_equal", |a, b| a.not_equal(b), |a, b| f64::from(a != b)),
    ("less", |a, b| a.less(b), |a, b| f64::from(a < b)),
    (
        "less_equal",
        |a, b| a.less_equal(b),
        |a, b| f64::from(a <= b),
    ),
    ("greater", |a, b| a.greater(b), |a, b| f64::from(a > b)),
    (
        "greater_equal",
        |a, b| a.greater_equal(b),
        |a, b| f64::from(a >= b),
    ),
    (
        "and",
        |a, b| a.and(b),
        |a, b| f64::from(a != 0.0 && b != 0.0),
    ),
    ("or", |a, b| a.or(b), |a, b| f64::from(a != 0.0 || b != 0.0)),
];

impl Cases<'_> {
    /// Makes a random expression: leaves, views and exact operations, one other operation, and views of it.
    pub fn expression(&mut self) -> Vec<Pair> {
        self.trail.clear();
        let mut x = self.leaf();
        for _ in 0..self.random.below(4) {
            x = if self.random.below(2) == 0 {
                self.exact(&x)
            } else {
                self.moved(&x)
            };
        }
        let mut results = self.last(&x);
        for result in &mut results {
            for _ in 0..self.random.below(3) {
                *result = self.moved(result);
            }
        }
        results
    }

    fn note(&mut self, text: String) {
        self.trail.push(text);
    }

    fn shape(&mut self, rank: usize) -> Vec<usize> {
        let mut length = || match self.random.below(40) {
            0 => 0,
            k => 1 + k % 5,
        };
        (0..rank).map(|_| length()).collect()
    }

    fn leaf(&mut self) -> Pair {
        let rank = self.random.below(5);
        let shape = self.shape(rank);
        self.leaf_of(&shape)
    }

    /// A leaf of multiples of a quarter, whose sums and differences are exact.
    fn leaf_of(&mut self, shape: &[usize]) -> Pair {
        let array = Array::build(shape, |_| (self.random.below(33) as f64 - 16.0) / 4.0);
        self.note(format!("leaf {shape:?}"));
        self.given(array)
    }

    fn given(&mut self, array: Array) -> Pair {
        let values: Vec<f32> = array.values.iter().map(|&x| x as f32).collect();
        Pair::new(self.tensors.tensor(&values, &array.shape), array)
    }

    /// An axis of a rank, and the same as callers may name it.
    fn axis(&mut self, rank: usize) -> (usize, isize) {
        let axis = self.random.below(rank);
        let is_negative = self.random.below(2) == 0;
        (
            axis,
            axis as isize - if is_negative { rank as isize } else { 0 },
        )
    }

    fn order(&mut self, rank: usize) -> Vec<usize> {
        let mut left: Vec<usize> = (0..rank).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            order.push(left.swap_remove(self.random.below(left.len())));
        }
        order
    }

    fn moved(&mut self, x: &Pair) -> Pair {
        let (rank, shape) = (x.rank(), &x.array.shape);
        match self.random.below(9) {
            0 | 1 => {
                let order = self.order(rank);
                self.note(format!("permute {order:?}"));
                let axes: Vec<isize> = order.iter().map(|&axis| axis as isize).collect();
                Pair::new(x.tensor.permute(&axes), x.array.permute(&order))
            }
            2 | 3 if rank > 0 => self.sliced(x),
            4 if rank > 0 && !x.is_empty() => {
                let (axis, named) = self.axis(rank);
                let index = self.random.below(shape[axis]);
                self.note(format!("at {axis} {index}"));
                let mut left = shape.clone();
                left.remove(axis);
                let array = x.array.take(axis, &[index]).reshape(&left);
                Pair::new(x.tensor.at(named, index as isize), array)
            }
            5 if rank < 5 => {
                let (axis, named) = self.axis(rank + 1);
                self.note(format!("unsqueeze {axis}"));
                let mut longer = shape.clone();
                longer.insert(axis, 1);
                Pair::new(x.tensor.unsqueeze(named), x.array.reshape(&longer))
            }
            6 => {
                self.note("squeeze".to_owned());
                let left: Vec<usize> = shape.iter().copied().filter(|&n| n != 1).collect();
                Pair::new(x.tensor.squeeze(..), x.array.reshape(&left))
            }
            7 if rank < 5 => {
                let mut target = shape.clone();
                for length in &mut target {
                    if *length == 1 {
                        *length = 1 + self.random.below(3);
                    }
                }
                target.insert(0, 1 + self.random.below(3));
                self.note(format!("broadcast_to {target:?}"));
                Pair::new(
                    x.tensor.broadcast_to(&target),
                    x.array.broadcast_to(&target),
                )
            }
            _ => self.reshaped(x),
        }
    }

    fn sliced(&mut self, x: &Pair) -> Pair {
        let (axis, named) = self.axis(x.rank());
        let length = x.array.shape[axis];
        let step = 1 + self.random.below(2);
        let (a, b) = (self.random.below(length + 1), self.random.below(length + 1));
        let (start, end) = (a.min(b), a.max(b));
        self.note(format!("slice {axis} {start}..{end} by {step}"));
        if self.random.below(3) == 0 {
            let all: Vec<usize> = (0..length).rev().step_by(step).collect();
            let slice = Slice::from(..).step(-(step as isize));
            return Pair::new(x.tensor.slice(named, slice), x.array.take(axis, &all));
        }
        let chosen: Vec<usize> = (start..end).step_by(step).collect();
        // The same index from the end on, which an index at the end has not.
        let ends = |at: usize| at as isize - if at < length { length as isize } else { 0 };
        let slice = Slice::from(ends(start)..ends(end)).step(step as isize);
        Pair::new(x.tensor.slice(named, slice), x.array.take(axis, &chosen))
    }

    /// Joins neighbouring axes, or divides one.
    fn reshaped(&mut self, x: &Pair) -> Pair {
        let shape = &x.array.shape;
        if shape.len() >= 2 && !x.is_empty() && self.random.below(2) == 0 {
            let axis = self.random.below(shape.len() - 1);
            let joined = shape[axis] * shape[axis + 1];
            let target = [&shape[..axis], &[joined], &shape[axis + 2..]].concat();
            self.note(format!("reshape {target:?}"));
            let mut named: Vec<isize> = target.iter().map(|&n| n as isize).collect();
            named[axis] = -1;
            return Pair::new(x.tensor.reshape(&named), x.array.reshape(&target));
        }
        self.note("flatten".to_owned());
        let array = x.array.reshape(&[x.array.values.len()]);
        Pair::new(x.tensor.flatten(), array)
    }

    /// A leaf, or a view of one, whose shape broadcasts with another without changing it.
    fn beside(&mut self, shape: &[usize]) -> Pair {
        let from = self.random.below(shape.len() + 1);
        let mut own = shape[from..].to_vec();
        for length in &mut own {
            if self.random.below(3) == 0 {
                *length = 1;
            }
        }
        if self.random.below(2) == 0 {
            return self.leaf_of(&own);
        }
        // Stored in another order of axes.
        let order = self.order(own.len());
        let stored: Vec<usize> = order.iter().map(|&axis| own[axis]).collect();
        let mut back = vec![0; order.len()];
        order
            .iter()
            .enumerate()
            .for_each(|(at, &axis)| back[axis] = at);
        let leaf = self.leaf_of(&stored);
        let axes: Vec<isize> = back.iter().map(|&axis| axis as isize).collect();
        Pair::new(leaf.tensor.permute(&axes), leaf.array.permute(&back))
    }

    fn exact(&mut self, x: &Pair) -> Pair {
        match self.random.below(EXACT.len() + 4) {
            0 => {
                self.note("mul -0.5".to_owned());
                Pair::new(x.tensor.mul(-0.5), x.array.map(|x| x * -0.5))
            }
            1 => {
                self.note("add 1.5".to_owned());
                Pair::new(x.tensor.add(1.5), x.array.map(|x| x + 1.5))
            }
            2 => {
                self.note("abs".to_owned());
                Pair::new(x.tensor.abs(), x.array.map(f64::abs))
            }
            3 => {
                let (a, b) = (self.beside(&x.array.shape), self.beside(&x.array.shape));
                self.note("select".to_owned());
                let tensor = x.tensor.select(&a.tensor, &b.tensor);
                Pair::new(tensor, x.array.select(&a.array, &b.array))
            }
            k => {
                let (name, record, f) = EXACT[k - 4];
                let other = self.beside(&x.array.shape);
                self.note(name.to_owned());
                let (a, b) = if self.random.below(2) == 0 {
                    (x, &other)
                } else {
                    (&other, x)
                };
                Pair::new(record(&a.tensor, &b.tensor), a.array.with(&b.array, f))
            }
        }
    }

    fn last(&mut self, x: &Pair) -> Vec<Pair> {
        let has_axes = x.rank() > 0;
        match self.random.below(14) {
            0..=2 => vec![self.reduced(x)],
            3 if has_axes => vec![self.lanes(x)],
            4 | 5 => vec![self.product(x)],
            6 => vec![self.convolved()],
            7 if has_axes => vec![self.joined(x)],
            8 if has_axes && !x.is_empty() => vec![self.gathered(x)],
            9 if has_axes && x.array.shape.last() != Some(&0) => self.largest(x),
            10 if x.rank() < 5 => {
                self.note("one_hot".to_owned());
                let classes = 1 + self.random.below(4);
                vec![Pair::new(
                    x.tensor.one_hot(classes),
                    x.array.one_hot(classes),
                )]
            }
            11 => {
                let other = self.beside(&x.array.shape);
                self.note("div".to_owned());
                let tensor = x.tensor.div(&other.tensor);
                vec![Pair::new(tensor, x.array.with(&other.array, |a, b| a / b))]
            }
            k => {
                let (name, record, f) = UNARY[(k + self.random.below(UNARY.len())) % UNARY.len()];
                self.note(name.to_owned());
                vec![Pair::new(record(&x.tensor), x.array.map(f))]
            }
        }
    }

    fn reduced(&mut self, x: &Pair) -> Pair {
        let (rank, keep) = (x.rank(), self.random.below(2) == 0);
        let kind = self.random.below(8);
        let is_index = kind >= 6;
        let all: Vec<usize> = (0..rank).collect();
        let mut axes = match self.random.below(3) {
            0 if rank > 0 => vec![self.axis(rank).0],
            1 if !is_index => all
                .iter()
                .copied()
                .filter(|_| self.random.below(2) == 0)
                .collect(),
            _ => all.clone(),
        };
        let named: Vec<isize> = axes
            .iter()
            .rev()
            .map(|&axis| axis as isize - rank as isize)
            .collect();
        let given = match &named[..] {
            [one] => Axes::from(*one),
            _ if axes == all => Axes::from(..),
            several => Axes::from(several),
        };
        let given = if keep { given.keep_dims() } else { given };
        axes.sort_unstable();
        self.note(format!("reduction {kind} {axes:?} {keep}"));
        let is_empty = axes.iter().any(|&axis| x.array.shape[axis] == 0);
        let (tensor, f): (_, fn(&[f64]) -> f64) = match kind {
            0 => (x.tensor.sum(given), |lane| lane.iter().sum()),
            1 => (x.tensor.any(given), |lane| {
                f64::from(lane.iter().any(|&x| x != 0.0))
            }),
            2 => (x.tensor.all(given), |lane| {
                f64::from(lane.iter().all(|&x| x != 0.0))
            }),
            3 => (x.tensor.mean(given), mean),
            4 => (x.tensor.max(given), |lane| {
                lane.iter().copied().fold(f64::MIN, f64::max)
            }),
            5 => (x.tensor.min(given), |lane| {
                lane.iter().copied().fold(f64::MAX, f64::min)
            }),
            6 => (x.tensor.argmax(given), argmax),
            _ => (x.tensor.argmin(given), |lane| {
                argmax(&lane.iter().map(|x| -x).collect::<Vec<_>>())
            }),
        };
        if is_empty && kind > 2 {
            let error = tensor.expect_err("no elements have no such value");
            assert_eq!(error.code(), "EMPTY");
            return x.clone();
        }
        Pair::new(tensor, x.array.reduce(&axes, keep, f))
    }

    fn lanes(&mut self, x: &Pair) -> Pair {
        let (axis, named) = self.axis(x.rank());
        let length = x.array.shape[axis];
        let kind = self.random.below(4);
        self.note(format!("lanes {kind} {axis}"));
        if kind == 0 {
            return Pair::new(x.tensor.softmax(named), x.array.lanes(axis, softmax));
        }
        if kind == 1 {
            let log = |lane: &[f64]| softmax(lane).iter().map(|x| x.ln()).collect();
            return Pair::new(x.tensor.log_softmax(named), x.array.lanes(axis, log));
        }
        let (gain, bias) = (self.leaf_of(&[length]), self.leaf_of(&[length]));
        let epsilon = 0.125;
        let is_layer = kind == 2;
        let array = x.array.lanes(axis, |lane| {
            let centre = if is_layer { mean(lane) } else { 0.0 };
            let squares: Vec<f64> = lane.iter().map(|x| (x - centre).powi(2)).collect();
            let root = (mean(&squares) + epsilon).sqrt();
            let scaled = |(k, x): (usize, &f64)| {
                let offset = if is_layer { bias.array.values[k] } else { 0.0 };
                (x - centre) / root * gain.array.values[k] + offset
            };
            lane.iter().enumerate().map(scaled).collect()
        });
        let tensor = if is_layer {
            x.tensor
                .layer_norm(&gain.tensor, &bias.tensor, named, epsilon as f32)
        } else {
            x.tensor.rms_norm(&gain.tensor, named, epsilon as f32)
        };
        Pair::new(tensor, array)
    }

    fn product(&mut self, x: &Pair) -> Pair {
        if x.rank() == 0 {
            assert!(x.tensor.matmul(&x.tensor).is_err());
            return x.clone();
        }
        let n = 1 + self.random.below(4);
        let k = x.array.shape[x.rank() - 1];
        let lead = x.rank().saturating_sub(2);
        let vector = self.random.below(5) == 0;
        let mut shape = if self.random.below(2) == 0 {
            Vec::new()
        } else {
            x.array.shape[..lead].to_vec()
        };
        for length in &mut shape {
            if self.random.below(3) == 0 {
                *length = 1;
            }
        }
        self.note(format!("matmul {shape:?} {k} {n} {vector}"));
        if vector {
            let b = self.leaf_of(&[k]);
            let left = rows(&x.array);
            let product = left.matmul(&b.array.reshape(&[k, 1]));
            let array = product.reshape(&x.array.shape[..x.rank() - 1]);
            return Pair::new(x.tensor.matmul(&b.tensor), array);
        }
        let b = if self.random.below(2) == 0 {
            self.leaf_of(&[&shape[..], &[k, n]].concat())
        } else {
            let turned = self.leaf_of(&[&shape[..], &[n, k]].concat());
            let rank = shape.len() + 2;
            let mut order: Vec<usize> = (0..rank).collect();
            order.swap(rank - 2, rank - 1);
            Pair::new(turned.tensor.transpose(), turned.array.permute(&order))
        };
        let product = rows(&x.array).matmul(&b.array);
        let mut left = product.shape.clone();
        if x.rank() == 1 {
            left.remove(left.len() - 2);
        }
        Pair::new(x.tensor.matmul(&b.tensor), product.reshape(&left))
    }

    fn convolved(&mut self) -> Pair {
        let pick = |random: &mut Random, most: usize| 1 + random.below(most);
        let random = &mut self.random;
        let groups = pick(random, 2);
        let (images, depth, filters) = (pick(random, 2), pick(random, 2), groups * pick(random, 2));
        let size = [3 + random.below(4), 3 + random.below(4)];
        let kernel = [pick(random, 3), pick(random, 3)];
        let stride = [pick(random, 2), pick(random, 2)];
        let dilation = [pick(random, 2), pick(random, 2)];
        let window = [0, 1].map(|k| (kernel[k] - 1) * dilation[k] + 1);
        let padding = [random.below(3), random.below(3)];
        let fits = (0..2).all(|k| window[k] <= size[k] + 2 * padding[k]);
        let is_same = random.below(2) == 0 || !fits;
        // Reflections need more elements than padding.
        let (border, beyond) = random.one_of(vec![
            (Border::Zeros, Beyond::Zeros),
            (Border::Edge, Beyond::Edge),
            (Border::Reflect, Beyond::Reflect),
        ]);
        let sides = [0, 1].map(|k| {
            let total = ((size[k] - 1) / stride[k] * stride[k] + window[k]).saturating_sub(size[k]);
            if is_same {
                [total / 2, total - total / 2]
            } else {
                [padding[k]; 2]
            }
        });
        let most = |k: usize| sides[k][0].max(sides[k][1]);
        let is_refused = beyond == Beyond::Reflect && (0..2).any(|k| most(k) >= size[k]);
        let options = ConvOptions::new()
            .stride(stride[0], stride[1])
            .dilation(dilation[0], dilation[1])
            .groups(groups)
            .border(border);
        let options = if is_same {
            options.same()
        } else {
            options.padding(padding[0], padding[1])
        };
        self.note(format!("conv2d {options:?}"));
        let x = self.leaf_of(&[images, groups * depth, size[0], size[1]]);
        let weights = self.leaf_of(&[filters, depth, kernel[0], kernel[1]]);
        let tensor = x.tensor.conv2d(&weights.tensor, options);
        if is_refused {
            assert_eq!(tensor.expect_err("too much").code(), "SHAPE_MISMATCH");
            return x;
        }
        let oracle = Convolution {
            stride,
            dilation,
            groups,
            before: sides.map(|side| side[0]),
            after: sides.map(|side| side[1]),
            beyond,
        };
        Pair::new(tensor, oracle.of(&x.array, &weights.array))
    }

    fn joined(&mut self, x: &Pair) -> Pair {
        if self.random.below(3) == 0 {
            let (axis, named) = self.axis(x.rank() + 1);
            let other = self.leaf_of(&x.array.shape);
            self.note(format!("stack {axis}"));
            let mut shape = x.array.shape.clone();
            shape.insert(axis, 1);
            let parts = [x.array.reshape(&shape), other.array.reshape(&shape)];
            let tensor = Tensor::stack(&[&x.tensor, &other.tensor], named);
            return Pair::new(tensor, Array::concat(&parts, axis));
        }
        let (axis, named) = self.axis(x.rank());
        let mut parts = vec![x.clone()];
        for _ in 0..self.random.below(4) {
            let mut shape = x.array.shape.clone();
            shape[axis] = self.random.below(4);
            parts.push(self.leaf_of(&shape));
        }
        self.note(format!("concat {axis}"));
        let tensors: Vec<&Tensor> = parts.iter().map(|part| &part.tensor).collect();
        let arrays: Vec<Array> = parts.iter().map(|part| part.array.clone()).collect();
        Pair::new(
            Tensor::concat(&tensors, named),
            Array::concat(&arrays, axis),
        )
    }

    fn gathered(&mut self, x: &Pair) -> Pair {
        let (axis, named) = self.axis(x.rank());
        let rank = self.random.below(3).min(6 - x.rank());
        let shape = self.shape(rank);
        let chosen = Array::build(&shape, |_| self.random.below(x.array.shape[axis]) as f64);
        self.note(format!("gather {shape:?} {axis}"));
        let indices = self.given(chosen);
        let tensor = x.tensor.gather(&indices.tensor, named);
        Pair::new(tensor, x.array.gather(&indices.array, axis))
    }

    fn largest(&mut self, x: &Pair) -> Vec<Pair> {
        let last = x.rank() - 1;
        let k = 1 + self.random.below(x.array.shape[last]);
        self.note(format!("top_k {k}"));
        let order = |lane: &[f64]| {
            let mut order: Vec<usize> = (0..lane.len()).collect();
            order.sort_by(|&a, &b| lane[b].total_cmp(&lane[a]));
            order
        };
        let first: Vec<usize> = (0..k).collect();
        // A zero is no larger than another one of another sign.
        let plain = x.array.map(|x| x + 0.0);
        let sorted = plain.lanes(last, |lane| {
            order(lane).iter().map(|&at| lane[at]).collect()
        });
        let indices = plain.lanes(last, |lane| {
            order(lane).iter().map(|&at| at as f64).collect()
        });
        let (values, places) = x.tensor.top_k(k).expect("so many elements");
        vec![
            Pair::new(Ok(values), sorted.take(last, &first)),
            Pair::new(Ok(places), indices.take(last, &first)),
        ]
    }
}

/// The array as a matrix, or a stack of them: a vector is a row.
fn rows(x: &Array) -> Array {
    match x.shape[..] {
        [length] => x.reshape(&[1, length]),
        _ => x.clone(),
    }
}
