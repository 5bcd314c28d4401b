//! Operations of random expressions: reductions, softmaxes and norms, matmuls, convolutions, joins and indices.

use relampago::{Axes, Border, ConvOptions, Result, Tensor};

use crate::cases::{Cases, Pair};
use crate::oracle::{Array, Beyond, Convolution, argmax, mean, softmax, variance};
use crate::random::Random;

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
    ("is_nan", Tensor::is_nan, |x| f64::from(x.is_nan())),
    ("is_finite", Tensor::is_finite, |x| f64::from(x.is_finite())),
    ("clip", |x| x.clip(-1.5, 2.25), |x| x.clamp(-1.5, 2.25)),
    (
        "leaky_relu",
        |x| x.leaky_relu(0.25),
        |x| if x < 0.0 { x / 4.0 } else { x },
    ),
    ("scale", |x| x.scale(-3.0), |x| -3.0 * x),
];

impl Cases<'_> {
    /// Records one-hot rows, or the negative of given values that are no indices, which are refused.
    fn one_hot(&mut self, x: &Pair) -> Pair {
        self.note("one_hot".to_owned());
        let classes = 1 + self.random.below(4);
        let wanted = x.array.one_hot(classes);
        match x.tensor.one_hot(classes) {
            Err(error) if wanted.values.iter().any(|value| value.is_nan()) => {
                assert_eq!(error.code(), "INVALID_ARGUMENT");
                Pair::new(x.tensor.neg(), x.array.map(|value| -value))
            }
            result => Pair::new(result, wanted),
        }
    }

    /// Records an operation, which may have two results.
    pub(crate) fn last(&mut self, x: &Pair) -> Vec<Pair> {
        let has_axes = x.rank() > 0;
        match self.random.below(20) {
            14..=19 => vec![self.numeric(x)],
            0..=2 => vec![self.reduced(x)],
            3 if has_axes => vec![self.lanes(x)],
            4 | 5 => vec![self.product(x)],
            6 => vec![self.convolved()],
            7 if has_axes => vec![self.joined(x)],
            8 if has_axes && !x.is_empty() => vec![self.gathered(x)],
            9 if has_axes && x.array.shape.last() != Some(&0) => self.largest(x),
            10 if x.rank() < 5 => vec![self.one_hot(x)],
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
        let kind = self.random.below(10);
        let is_index = kind >= 8;
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
            4 => (x.tensor.variance(given), variance),
            5 => (x.tensor.std(given), |lane| variance(lane).sqrt()),
            6 => (x.tensor.max(given), |lane| {
                lane.iter().copied().fold(f64::MIN, f64::max)
            }),
            7 => (x.tensor.min(given), |lane| {
                lane.iter().copied().fold(f64::MAX, f64::min)
            }),
            8 => (x.tensor.argmax(given), argmax),
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
        let (values, places) = x
            .tensor
            .top_k(k)
            .expect("k is at most the length of the axis");
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
