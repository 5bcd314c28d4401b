//! Random expressions of tensors beside their oracles.

use relampago::{Result, Slice, Tensor, Tensors};

use crate::oracle::Array;
use crate::random::Random;

/// A tensor and what it must be.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) tensor: Tensor,
    pub(crate) array: Array,
}

impl Pair {
    pub(crate) fn new(tensor: Result<Tensor>, array: Array) -> Self {
        let tensor = tensor.unwrap_or_else(|error| panic!("{error}, for {:?}", array.shape));
        assert_eq!(tensor.shape(), array.shape);
        Self { tensor, array }
    }

    pub(crate) fn rank(&self) -> usize {
        self.array.shape.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.array.values.is_empty()
    }
}

/// Makes random expressions on one device.
pub(crate) struct Cases<'a> {
    pub(crate) tensors: &'a Tensors,
    pub(crate) random: Random,
    /// The names of what was recorded.
    pub(crate) trail: Vec<String>,
}

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
    pub(crate) fn expression(&mut self) -> Vec<Pair> {
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

    pub(crate) fn note(&mut self, text: String) {
        self.trail.push(text);
    }

    pub(crate) fn shape(&mut self, rank: usize) -> Vec<usize> {
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
    pub(crate) fn leaf_of(&mut self, shape: &[usize]) -> Pair {
        let array = Array::build(shape, |_| (self.random.below(33) as f64 - 16.0) / 4.0);
        self.note(format!("leaf {shape:?}"));
        self.given(array)
    }

    pub(crate) fn given(&mut self, array: Array) -> Pair {
        let values: Vec<f32> = array.values.iter().map(|&x| x as f32).collect();
        Pair::new(self.tensors.tensor(&values, &array.shape), array)
    }

    /// An axis of a rank, and the same as callers may name it.
    pub(crate) fn axis(&mut self, rank: usize) -> (usize, isize) {
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
    pub(crate) fn beside(&mut self, shape: &[usize]) -> Pair {
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
}
