//! Graphs in `f64`, node by node: an oracle of losses, whose differences gradients must have.

use std::f64::consts::TAU;

use crate::lazy::node::{Kind, Rows};
use crate::lazy::shape::size_of;
use crate::lazy::structure::Described;
use crate::lazy::view::Walk;
use crate::ops::{AxisFold, ConvLayer};
use crate::reference::of_numbers;

/// Values with a shape.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<f64>,
}

impl Array {
    fn from_fn(shape: &[usize], f: impl Fn(&[usize]) -> f64) -> Self {
        let values = (0..size_of(shape)).map(|at| f(&index_of(at, shape)));
        Self {
            shape: shape.to_vec(),
            values: values.collect(),
        }
    }

    /// Returns an element by an index of a shape that this one broadcasts to.
    fn at(&self, index: &[usize]) -> f64 {
        let own = &index[index.len() - self.shape.len()..];
        let axes = self.shape.iter().zip(own);
        let place = axes.fold(0, |place, (&len, &at)| {
            place * len + if len == 1 { 0 } else { at }
        });
        self.values[place]
    }

    /// Returns the elements along an axis at an index.
    fn along(&self, axis: usize, index: &[usize]) -> Vec<f64> {
        let mut index = index.to_vec();
        let each = (0..self.shape[axis]).map(|at| {
            index[axis] = at;
            self.at(&index)
        });
        each.collect()
    }
}

fn index_of(mut place: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (at, &len) in index.iter_mut().zip(shape).rev() {
        *at = place % len;
        place /= len;
    }
    index
}

/// Evaluates all nodes of a graph; `leaf` returns the values of a leaf.
pub(super) fn evaluate(nodes: &[Described], leaf: impl Fn(usize) -> Vec<f64>) -> Vec<Array> {
    let mut arrays: Vec<Array> = Vec::new();
    for (at, Described { shape, operation }) in nodes.iter().enumerate() {
        let array = match operation {
            None => Array {
                shape: shape.clone(),
                values: leaf(at),
            },
            Some((kind, inputs)) => {
                let inputs: Vec<&Array> = inputs.iter().map(|&input| &arrays[input]).collect();
                operate(kind, &inputs, shape)
            }
        };
        assert_eq!(array.values.len(), size_of(shape), "{operation:?}");
        arrays.push(array);
    }
    arrays
}

fn operate(kind: &Kind, inputs: &[&Array], shape: &[usize]) -> Array {
    let of = |f: &dyn Fn(&[usize]) -> f64| Array::from_fn(shape, f);
    match kind {
        Kind::Elementwise(op) => of(&|index| {
            let numbers: Vec<f64> = inputs.iter().map(|input| input.at(index)).collect();
            of_numbers(op, &numbers)
        }),
        Kind::Constant(value) => of(&|_| f64::from(*value)),
        Kind::Range => of(&|index| index[0] as f64),
        Kind::View(walk) => of(&|index| inputs[0].at(&walked(walk, index))),
        Kind::Reshape | Kind::StopGradient => Array {
            shape: shape.to_vec(),
            values: inputs[0].values.clone(),
        },
        Kind::Reduce { fold, axes, .. } => reduce(*fold, axes, inputs[0], shape),
        Kind::Rows { axis, rows } => of(&|index| row_element(*rows, *axis, inputs, index)),
        Kind::Matmul => of(&|index| product(inputs[0], inputs[1], index)),
        Kind::Convolve(layer) => of(&|index| window(layer, inputs, index)),
        Kind::Concat { axis } => of(&|index| {
            let mut index = index.to_vec();
            let mut parts = inputs.iter();
            loop {
                let part = parts.next().expect("an index within the parts");
                if index[*axis] < part.shape[*axis] {
                    return part.at(&index);
                }
                index[*axis] -= part.shape[*axis];
            }
        }),
        Kind::Gather { axis } => of(&|index| {
            let after = axis + inputs[1].shape.len();
            let chosen = inputs[1].at(&index[*axis..after]) as usize;
            inputs[0].at(&[&index[..*axis], &[chosen], &index[after..]].concat())
        }),
        Kind::Scatter => of(&|index| {
            let own =
                (0..inputs[1].values.len()).filter(|&row| inputs[1].values[row] == index[0] as f64);
            own.map(|row| inputs[0].at(&[row, index[1]])).sum()
        }),
        Kind::Take => of(&|index| {
            let (row, chosen) = (&index[..index.len() - 1], inputs[1].at(index) as usize);
            inputs[0].at(&[row, &[chosen]].concat())
        }),
        Kind::TopK { .. } => of(&|index| {
            let row = inputs[0].along(index.len() - 1, index);
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
            order[index[index.len() - 1]] as f64
        }),
        Kind::CustomReduce { .. } | Kind::UnpackBytes { .. } | Kind::PackBytes { .. } => {
            unreachable!("no case has {kind:?}")
        }
    }
}

fn walked(walk: &Walk, index: &[usize]) -> Vec<usize> {
    let mut below: Vec<isize> = walk.starts.iter().map(|&start| start as isize).collect();
    for ((axis, step), &at) in walk.axes.iter().zip(&walk.steps).zip(index) {
        if let Some(axis) = *axis {
            below[axis] += step * at as isize;
        }
    }
    below.into_iter().map(|at| at as usize).collect()
}

fn reduce(fold: AxisFold, axes: &[usize], x: &Array, shape: &[usize]) -> Array {
    let kept: Vec<usize> = (0..x.shape.len())
        .map(|axis| {
            if axes.contains(&axis) {
                1
            } else {
                x.shape[axis]
            }
        })
        .collect();
    let mut groups = vec![Vec::new(); size_of(&kept)];
    for (at, &value) in x.values.iter().enumerate() {
        let index = index_of(at, &x.shape);
        let places = index.iter().zip(&kept);
        let place = places.fold(0, |place, (&at, &len)| {
            place * len + if len == 1 { 0 } else { at }
        });
        groups[place].push(value);
    }
    let folded = groups.iter().map(|group| {
        let count = group.len() as f64;
        let most = group.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = group.iter().copied().fold(f64::INFINITY, f64::min);
        let place = |of: f64| group.iter().position(|&value| value == of).unwrap_or(0) as f64;
        match fold {
            AxisFold::Sum => group.iter().sum(),
            AxisFold::Mean => group.iter().sum::<f64>() / count,
            AxisFold::Max => most,
            AxisFold::Min => least,
            AxisFold::Argmax => place(most),
            AxisFold::Argmin => place(least),
        }
    });
    Array {
        shape: shape.to_vec(),
        values: folded.collect(),
    }
}

fn row_element(rows: Rows, axis: usize, inputs: &[&Array], index: &[usize]) -> f64 {
    let (row, x) = (inputs[0].along(axis, index), inputs[0].at(index));
    let count = row.len() as f64;
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = row.iter().map(|x| (x - most).exp()).sum();
    let vector = |at: usize| inputs[at].values[index[axis]];
    let place = index[axis];
    match rows {
        Rows::Cumsum => row[..=place].iter().sum(),
        Rows::Cumprod => row[..=place].iter().product(),
        Rows::Sort => {
            let mut sorted = row.clone();
            sorted.sort_by(f64::total_cmp);
            sorted[place]
        }
        Rows::Argsort => {
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|&a, &b| row[a].total_cmp(&row[b]));
            order[place] as f64
        }
        Rows::Fft => {
            let (k, len) = (place / 2, row.len() / 2);
            let terms = row.chunks_exact(2).enumerate().map(|(j, pair)| {
                let (sin, cos) = (-TAU * (j * k) as f64 / len as f64).sin_cos();
                [pair[0] * cos - pair[1] * sin, pair[0] * sin + pair[1] * cos][place % 2]
            });
            terms.sum()
        }
        Rows::Softmax => (x - most).exp() / total,
        Rows::LogSoftmax => x - most - total.ln(),
        Rows::LayerNorm { epsilon } => {
            let mean = row.iter().sum::<f64>() / count;
            let squares = row.iter().map(|x| (x - mean) * (x - mean));
            let variance = squares.sum::<f64>() / count;
            (x - mean) / (variance + f64::from(epsilon)).sqrt() * vector(1) + vector(2)
        }
        Rows::RmsNorm { epsilon } => {
            let squares = row.iter().map(|x| x * x).sum::<f64>() / count;
            x / (squares + f64::from(epsilon)).sqrt() * vector(1)
        }
    }
}

fn product(a: &Array, b: &Array, index: &[usize]) -> f64 {
    let (lead, last) = index.split_at(index.len() - 2);
    let depth = a.shape[a.shape.len() - 1];
    let term =
        |k: usize| a.at(&[lead, &[last[0], k]].concat()) * b.at(&[lead, &[k, last[1]]].concat());
    (0..depth).map(term).sum()
}

fn window(layer: &ConvLayer, inputs: &[&Array], index: &[usize]) -> f64 {
    let (images, weights) = (inputs[0], inputs[1]);
    let [channels, filters] = layer.of_group();
    let (top, left) = layer.padding_before();
    let &[image, filter, row, col] = index else {
        panic!("{index:?} is no index of an image");
    };
    let first = filter / filters * channels;
    let kernel = &weights.shape[1..];
    let term = |place: usize| {
        let tap = index_of(place, kernel);
        let row =
            (row * layer.image.stride_rows + tap[1] * layer.dilation_rows).checked_sub(top)?;
        let col =
            (col * layer.image.stride_cols + tap[2] * layer.dilation_cols).checked_sub(left)?;
        let is_inside = row < layer.image.input_rows && col < layer.image.input_cols;
        let weight = weights.at(&[&[filter], &tap[..]].concat());
        is_inside.then(|| images.at(&[image, first + tap[0], row, col]) * weight)
    };
    (0..size_of(kernel)).filter_map(term).sum()
}
