//! Random cases of each rule: shapes, axes, strides, odd sizes and views.

use crate::error::Result;
use crate::lazy::{Axes, Border, ConvOptions, Interpolation, PoolOptions, Slice, Tensor, Tensors};
use crate::random::Philox;

/// Makes random tensors and choices.
pub(super) struct Cases {
    pub(super) tensors: Tensors,
    random: Philox,
    next: u64,
}

/// A result, and the leaves that it comes from.
pub(super) type Case = (Tensor, Vec<Tensor>);

type Rule = fn(&mut Cases) -> Result<Case>;

impl Cases {
    pub(super) fn new(tensors: &Tensors, seed: u64) -> Self {
        Self {
            tensors: tensors.clone(),
            random: Philox::new(seed),
            next: 0,
        }
    }

    fn uniform(&mut self, count: usize) -> Vec<f32> {
        let mut values = vec![0.0; count];
        self.random.uniform(self.next, &mut values);
        self.next += count as u64;
        values
    }

    pub(super) fn below(&mut self, count: usize) -> usize {
        (self.uniform(1)[0] * count as f32) as usize
    }

    fn from(&mut self, least: usize, count: usize) -> usize {
        least + self.below(count)
    }

    fn shape(&mut self, rank: usize) -> Vec<usize> {
        (0..rank).map(|_| self.from(1, 3)).collect()
    }

    fn axis(&mut self, x: &Tensor) -> isize {
        self.below(x.rank()) as isize
    }

    /// Returns a leaf of numbers from −2 to 2, no two of which are close to each other or to a whole number.
    pub(super) fn leaf(&mut self, shape: &[usize]) -> Result<Tensor> {
        let count = shape.iter().product();
        let values = self.uniform(count);
        let numbers = values.into_iter().enumerate();
        let apart = numbers.map(|(at, value)| {
            let step = (value * 64.0).floor() / 16.0 - 2.0;
            step + 0.01 + (at % 8) as f32 * 0.004
        });
        self.tensors.tensor(&apart.collect::<Vec<_>>(), shape)
    }

    /// Returns a leaf of numbers from 0.5 to 2.5.
    pub(super) fn positive(&mut self, shape: &[usize]) -> Result<Tensor> {
        let values: Vec<f32> = self.uniform(shape.iter().product());
        let values: Vec<f32> = values.iter().map(|value| 0.5 + 2.0 * value).collect();
        self.tensors.tensor(&values, shape)
    }

    /// Returns a loss that has another derivative by each element of a result.
    pub(super) fn loss(&mut self, y: &Tensor) -> Result<Tensor> {
        let weights = self.leaf(y.shape())?;
        y.mul(&weights)?.sum(..)
    }
}

/// The rules by name.
pub(super) const RULES: &[(&str, Rule)] = &[
    ("broadcast", broadcast),
    ("permute", permute),
    ("slice", slice),
    ("at", at),
    ("reshape", reshape),
    ("join", join),
    ("reduce", reduce),
    ("extreme", extreme),
    ("rows", rows),
    ("scans", scans),
    ("orders", orders),
    ("fourier", fourier),
    ("composed", composed),
    ("images", images),
    ("norms", norms),
    ("matmul", matmul),
    ("gather", gather),
    ("top_k", top_k),
    ("conv2d", conv2d),
    ("select", select),
    ("cross_entropy", cross_entropy),
    ("chain", chain),
];

fn broadcast(cases: &mut Cases) -> Result<Case> {
    let rank = cases.from(1, 4);
    let full = cases.shape(rank);
    let missing = cases.below(rank + 1);
    let mut other = full[missing..].to_vec();
    for len in &mut other {
        if cases.below(2) == 0 {
            *len = 1;
        }
    }
    let (a, b) = (cases.leaf(&full)?, cases.positive(&other)?);
    let y = match cases.below(4) {
        0 => a.add(&b)?.mul(&b)?,
        1 => b.sub(&a)?,
        2 => a.div(&b)?,
        _ => b.broadcast_to(&full)?.mul(&a)?,
    };
    Ok((y, vec![a, b]))
}

fn permute(cases: &mut Cases) -> Result<Case> {
    let rank = cases.from(2, 4);
    let shape = cases.shape(rank);
    let x = cases.leaf(&shape)?;
    let (first, second) = (cases.axis(&x), cases.axis(&x));
    let y = x.swap_axes(first, second)?;
    let (first, second) = (cases.axis(&x), cases.axis(&x));
    Ok((y.swap_axes(first, second)?, vec![x]))
}

fn slice(cases: &mut Cases) -> Result<Case> {
    let rank = cases.from(1, 3);
    let shape: Vec<usize> = (0..rank).map(|_| cases.from(1, 7)).collect();
    let x = cases.leaf(&shape)?;
    let mut y = x.clone();
    for axis in 0..rank as isize {
        let len = y.shape()[axis as usize];
        let start = cases.below(len);
        let end = start + cases.from(1, len - start);
        let part = Slice::from(start as isize..end as isize);
        let step = [1, 1, 2, 3, -1, -2][cases.below(6)];
        y = match step {
            1.. => y.slice(axis, part.step(step))?,
            _ => y.slice(axis, Slice::from(..).step(step))?,
        };
    }
    Ok((y, vec![x]))
}

fn at(cases: &mut Cases) -> Result<Case> {
    let rank = cases.from(1, 5);
    let shape = cases.shape(rank);
    let x = cases.leaf(&shape)?;
    let axis = cases.axis(&x);
    let index = cases.below(x.shape()[axis as usize]) as isize;
    Ok((x.at(axis, index)?, vec![x]))
}

fn reshape(cases: &mut Cases) -> Result<Case> {
    let shape = cases.shape(3);
    let x = cases.leaf(&shape)?;
    let y = x.permute(&[2, 0, 1])?.reshape(&[-1])?;
    let y = y.unsqueeze(0)?.broadcast_to(&[2, x.size()])?;
    Ok((y.mul(&x.flatten()?)?, vec![x]))
}

fn join(cases: &mut Cases) -> Result<Case> {
    let rank = cases.from(1, 3);
    let mut shape = cases.shape(rank);
    let axis = cases.below(rank);
    let mut parts = Vec::new();
    for _ in 0..cases.from(1, 4) {
        shape[axis] = cases.from(1, 3);
        parts.push(cases.leaf(&shape)?);
    }
    let mut all: Vec<&Tensor> = parts.iter().collect();
    all.push(&parts[0]);
    Ok((Tensor::concat(&all, axis as isize)?, parts))
}

fn axes_of(cases: &mut Cases, x: &Tensor) -> Axes {
    let list: Vec<isize> = (0..x.rank() as isize)
        .filter(|_| cases.below(2) == 0)
        .collect();
    let axes = Axes::from(&list[..]);
    if cases.below(2) == 0 {
        axes.keep_dims()
    } else {
        axes
    }
}

fn reduce(cases: &mut Cases) -> Result<Case> {
    let rank = cases.from(1, 4);
    let shape = cases.shape(rank);
    let x = cases.leaf(&shape)?;
    let axes = axes_of(cases, &x);
    let y = match cases.below(3) {
        0 => x.sum(axes)?,
        1 => x.mean(axes)?,
        _ => x.variance(axes)?,
    };
    Ok((y, vec![x]))
}

fn extreme(cases: &mut Cases) -> Result<Case> {
    let rank = cases.from(1, 3);
    let shape = cases.shape(rank);
    // All elements differ, so that there is a derivative.
    let count: usize = shape.iter().product();
    let offset = cases.below(97);
    let values = (0..count).map(|at| ((at * 31 + offset) % 97) as f32 * 0.05 - 2.0);
    let x = cases.tensors.tensor(&values.collect::<Vec<_>>(), &shape)?;
    let axes = axes_of(cases, &x);
    let y = if cases.below(2) == 0 {
        x.max(axes)?
    } else {
        x.min(axes)?
    };
    Ok((y, vec![x]))
}

fn rows(cases: &mut Cases) -> Result<Case> {
    let rank = cases.from(1, 4);
    let shape = cases.shape(rank);
    let x = cases.leaf(&shape)?;
    let axis = cases.axis(&x);
    let y = if cases.below(2) == 0 {
        x.softmax(axis)?
    } else {
        x.log_softmax(axis)?
    };
    Ok((y, vec![x]))
}

fn norms(cases: &mut Cases) -> Result<Case> {
    let rank = cases.from(1, 3);
    let shape = cases.shape(rank);
    let x = cases.leaf(&shape)?;
    let axis = cases.axis(&x);
    let len = [x.shape()[axis as usize]];
    let (gain, bias) = (cases.leaf(&len)?, cases.leaf(&len)?);
    if cases.below(2) == 0 {
        let y = x.rms_norm(&gain, axis, 0.5)?;
        return Ok((y, vec![x, gain]));
    }
    let y = x.layer_norm(&gain, &bias, axis, 0.5)?;
    Ok((y, vec![x, gain, bias]))
}

fn matmul(cases: &mut Cases) -> Result<Case> {
    let [m, k, n] = [(); 3].map(|()| cases.from(1, 3));
    let rank = cases.below(3);
    let lead = cases.shape(rank);
    let operand = |cases: &mut Cases, rows: usize, cols: usize| -> Result<Tensor> {
        let mut own = lead[cases.below(lead.len() + 1)..].to_vec();
        for len in &mut own {
            if cases.below(3) == 0 {
                *len = 1;
            }
        }
        if own.is_empty() && cols == k && cases.below(4) == 0 {
            return cases.leaf(&[k]);
        }
        own.extend([rows, cols]);
        cases.leaf(&own)
    };
    let (a, b) = (operand(cases, m, k)?, operand(cases, n, k)?);
    let right = if b.rank() > 1 {
        b.transpose()?
    } else {
        b.clone()
    };
    Ok((a.matmul(&right)?, vec![a, b]))
}

fn gather(cases: &mut Cases) -> Result<Case> {
    let rank = cases.from(1, 3);
    let shape = cases.shape(rank);
    let x = cases.leaf(&shape)?;
    let axis = cases.axis(&x);
    let len = x.shape()[axis as usize];
    let rank = cases.below(3);
    let shape = cases.shape(rank);
    let count: usize = shape.iter().product();
    let indices: Vec<f32> = (0..count).map(|_| cases.below(len) as f32).collect();
    let indices = cases.tensors.tensor(&indices, &shape)?;
    Ok((x.gather(&indices, axis)?, vec![x]))
}

fn top_k(cases: &mut Cases) -> Result<Case> {
    let rows = cases.from(1, 3);
    let cols = cases.from(1, 5);
    let values = (0..rows * cols).map(|at| ((at * 37) % 101) as f32 * 0.03);
    let x = cases
        .tensors
        .tensor(&values.collect::<Vec<_>>(), &[rows, cols])?;
    let k = cases.from(1, cols);
    Ok((x.top_k(k)?.0, vec![x]))
}

fn conv2d(cases: &mut Cases) -> Result<Case> {
    let groups = cases.from(1, 3);
    let (channels, filters) = (cases.from(1, 2), cases.from(1, 2));
    let kernel = [cases.from(1, 3), cases.from(1, 3)];
    let dilation = [cases.from(1, 2), cases.from(1, 2)];
    let least = [0, 1].map(|k| (kernel[k] - 1) * dilation[k] + 1);
    let sides = [least[0] + cases.below(4), least[1] + cases.below(4)];
    let images = cases.from(1, 2);
    let x = cases.leaf(&[images, groups * channels, sides[0], sides[1]])?;
    let weights = cases.leaf(&[groups * filters, channels, kernel[0], kernel[1]])?;
    let options = ConvOptions::new()
        .stride(cases.from(1, 3), cases.from(1, 3))
        .dilation(dilation[0], dilation[1])
        .groups(groups);
    let options = match cases.below(4) {
        0 => options,
        1 => options.same(),
        2 => options.padding(cases.below(3), cases.below(3)),
        _ => options.padding(1, 1).border(Border::Edge),
    };
    Ok((x.conv2d(&weights, options)?, vec![x, weights]))
}

fn select(cases: &mut Cases) -> Result<Case> {
    let rank = cases.from(1, 3);
    let shape = cases.shape(rank);
    let (a, b) = (cases.leaf(&shape)?, cases.leaf(&shape)?);
    let y = a
        .greater(0.0)?
        .and(&b.less(1.0)?)?
        .select(&a.square()?, &b.exp()?)?;
    Ok((y, vec![a, b]))
}

fn cross_entropy(cases: &mut Cases) -> Result<Case> {
    let (rows, classes) = (cases.from(1, 4), cases.from(1, 4));
    let x = cases.leaf(&[rows, classes])?;
    if cases.below(2) == 0 {
        let labels = cases.positive(&[rows, classes])?;
        return Ok((x.cross_entropy(&labels)?, vec![x, labels]));
    }
    let labels: Vec<f32> = (0..rows).map(|_| cases.below(classes) as f32).collect();
    let labels = cases.tensors.tensor(&labels, &[rows])?;
    Ok((x.cross_entropy(&labels)?, vec![x]))
}

/// A layer with an activation and a norm, whose leaf is needed by several nodes.
fn chain(cases: &mut Cases) -> Result<Case> {
    let [rows, cols, hidden] = [(); 3].map(|()| cases.from(1, 4));
    let (x, weights) = (cases.leaf(&[rows, cols])?, cases.leaf(&[cols, hidden])?);
    let y = x.matmul(&weights)?.tanh()?;
    let scores = y.matmul(&y.transpose()?)?.softmax(-1)?;
    Ok((scores.matmul(&x)?, vec![x, weights]))
}

fn scans(cases: &mut Cases) -> Result<Case> {
    let rank = cases.from(1, 3);
    let shape = cases.shape(rank);
    let x = cases.leaf(&shape)?;
    let axis = cases.axis(&x);
    let y = match cases.below(3) {
        0 => x.cumsum(axis)?,
        1 => x.cumprod(axis)?,
        // Some elements are zeros, whose gradient is that of the other factors.
        _ => x.mul(&x.greater(-0.5)?)?.cumprod(axis)?,
    };
    Ok((y, vec![x]))
}

fn orders(cases: &mut Cases) -> Result<Case> {
    let rank = cases.from(1, 3);
    let shape = cases.shape(rank);
    let x = cases.leaf(&shape)?;
    let axis = cases.axis(&x);
    Ok((x.sort(axis)?, vec![x]))
}

fn fourier(cases: &mut Cases) -> Result<Case> {
    let (rows, len) = (cases.from(1, 2), cases.from(1, 6));
    let x = cases.leaf(&[rows, len, 2])?;
    let y = match cases.below(4) {
        0 => x.fft(1)?,
        1 => x.ifft(0)?,
        2 => x.rfft(1)?,
        _ => x.irfft(2 * len - 1, 1)?,
    };
    Ok((y, vec![x]))
}

fn composed(cases: &mut Cases) -> Result<Case> {
    let (rows, cols) = (cases.from(1, 3), cases.from(2, 3));
    let (a, b) = (cases.leaf(&[rows, cols])?, cases.leaf(&[rows, cols])?);
    // No element is that of the first one.
    let b = cases
        .tensors
        .tensor(&b.add(0.002)?.read()?, &[rows, cols])?;
    let y = match cases.below(13) {
        0 => a.pad(&[[1, 2], [0, 1]], Border::Edge)?,
        1 => a.tile(&[2, 2])?.mul(&b.repeat(2, 0)?.tile(&[1, 2])?)?,
        2 => a.roll(1, 1)?.mul(&b.flip(..)?)?,
        3 => a.prod(1)?.add(&b.prod(..)?)?,
        4 => a.norm(3.0, 1)?.add(&b.norm(2.0, ..)?)?,
        5 => a.logaddexp(&b)?,
        6 => a.hypot(&b)?,
        7 => a.atan2(&b)?,
        8 => a.modulo(1.5)?.add(&b.fmod(-0.75)?)?,
        9 => Tensor::einsum("ij,kj->ik", &[&a, &b])?,
        10 => Tensor::einsum("ij,ij->j", &[&a, &b])?,
        11 => {
            let indices = cases.tensors.tensor(&[1.0, 0.0, 1.0], &[3])?;
            let source = b.slice(1, ..2)?.sum(1)?.unsqueeze(1)?;
            a.square()?.scatter_add(&indices, &source, 1)?
        }
        _ => a.dropout(0.4, 5)?.mul(&b)?,
    };
    Ok((y, vec![a, b]))
}

fn images(cases: &mut Cases) -> Result<Case> {
    let (rows, cols) = (cases.from(3, 4), cases.from(3, 4));
    let x = cases.leaf(&[2, rows, cols])?;
    let pool = PoolOptions::new(&[2, 3]).stride(&[1, 2]).padding(&[1, 1]);
    let y = match cases.below(5) {
        0 => x.max_pool(&pool.ceil())?,
        1 => x.avg_pool(&pool.without_padding())?,
        2 => x.resize(&[2, 5], Interpolation::Bilinear)?,
        3 => x.resize(&[2, 2], Interpolation::BicubicAntialiased)?,
        _ => x.resize(&[5, 2], Interpolation::Nearest)?,
    };
    Ok((y, vec![x]))
}
