//! Random cases of functions that are made of nodes: movement, products and norms, scans, orders, transforms, pools,
//! resizing, `einsum` and counts.

use std::f64::consts::TAU;

use relampago::{Border, Interpolation, PoolOptions, Result, Tensor};

use crate::cases::{Cases, Pair};
use crate::oracle::{Array, indices};

type Binary = (
    &'static str,
    fn(&Tensor, &Tensor) -> Result<Tensor>,
    fn(f64, f64) -> f64,
);

/// Elementwise functions of two inputs.
const BINARY: &[Binary] = &[
    ("modulo", |a, b| a.modulo(b), modulo),
    ("fmod", |a, b| a.fmod(b), |a, b| a % b),
    ("atan2", |a, b| a.atan2(b), f64::atan2),
    ("hypot", |a, b| a.hypot(b), f64::hypot),
    (
        "logaddexp",
        |a, b| a.logaddexp(b),
        |a, b| a.max(b) + (-(a - b).abs()).exp().ln_1p(),
    ),
];

fn modulo(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
        rest + b
    } else {
        rest
    }
}

type Lane = (
    &'static str,
    fn(&Tensor, isize) -> Result<Tensor>,
    fn(&[f64]) -> Vec<f64>,
);

/// Functions that replace the elements along an axis by as many others.
const LANES: &[Lane] = &[
    (
        "cumsum",
        |x, axis| x.cumsum(axis),
        |lane| scan(lane, 0.0, |a, b| a + b),
    ),
    (
        "cumprod",
        |x, axis| x.cumprod(axis),
        |lane| scan(lane, 1.0, |a, b| a * b),
    ),
    (
        "sort",
        |x, axis| x.sort(axis),
        |lane| order(lane).iter().map(|&at| lane[at]).collect(),
    ),
    (
        "argsort",
        |x, axis| x.argsort(axis),
        |lane| order(lane).iter().map(|&at| at as f64).collect(),
    ),
    (
        "flip",
        |x, axis| x.flip(axis),
        |lane| lane.iter().rev().copied().collect(),
    ),
    (
        "roll",
        |x, axis| x.roll(-3, axis),
        |lane| {
            (0..lane.len())
                .map(|at| lane[(at + 3) % lane.len()])
                .collect()
        },
    ),
];

fn scan(lane: &[f64], mut total: f64, f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let each = lane.iter().map(|&x| {
        total = f(total, x);
        total
    });
    each.collect()
}

fn order(lane: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lane.len()).collect();
    order.sort_by(|&a, &b| lane[a].partial_cmp(&lane[b]).expect("numbers"));
    order
}

type Fold = (
    &'static str,
    fn(&Tensor, isize) -> Result<Tensor>,
    fn(&[f64]) -> f64,
);

/// Functions that replace the elements along an axis by one.
const FOLDS: &[Fold] = &[
    ("prod", |x, axis| x.prod(axis), |lane| lane.iter().product()),
    (
        "norm 1",
        |x, axis| x.norm(1.0, axis),
        |lane| lane.iter().map(|x| x.abs()).sum(),
    ),
    (
        "norm 2",
        |x, axis| x.norm(2.0, axis),
        |lane| lane.iter().map(|x| x * x).sum::<f64>().sqrt(),
    ),
    (
        "norm 3",
        |x, axis| x.norm(3.0, axis),
        |lane| lane.iter().map(|x| x.abs().powi(3)).sum::<f64>().cbrt(),
    ),
    (
        "norm 0",
        |x, axis| x.norm(0.0, axis),
        |lane| lane.iter().filter(|&&x| x != 0.0).count() as f64,
    ),
];

impl Cases<'_> {
    /// Records a function that is made of nodes.
    pub(crate) fn numeric(&mut self, x: &Pair) -> Pair {
        let kind = self.random.below(11);
        match kind {
            0 => self.labelled(),
            1 => self.counted(),
            2 => {
                let (name, record, f) = BINARY[self.random.below(BINARY.len())];
                let other = self.beside(&x.array.shape);
                self.note(name.to_owned());
                // No divisor is 0.
                let other = Pair::new(other.tensor.add(0.125), other.array.map(|x| x + 0.125));
                let array = x.array.with(&other.array, f);
                Pair::new(record(&x.tensor, &other.tensor), array)
            }
            // Of long axes, products are beyond all numbers, and transforms have larger errors.
            _ if x.rank() == 0 || x.array.shape.iter().any(|&length| length > 16) => {
                self.note("tile".to_owned());
                let array = x.array.reshape(&[x.array.values.len()]);
                let chosen: Vec<usize> = (0..3 * array.values.len())
                    .map(|at| at % array.values.len())
                    .collect();
                Pair::new(
                    x.tensor.flatten().and_then(|x| x.tile(&[3])),
                    array.take(0, &chosen),
                )
            }
            3 => self.padded(x),
            4 => self.repeated(x),
            5 => self.divided(x),
            6 => {
                let (name, record, f) = FOLDS[self.random.below(FOLDS.len())];
                let (axis, named) = self.axis(x.rank());
                self.note(format!("{name} along {axis}"));
                Pair::new(record(&x.tensor, named), x.array.reduce(&[axis], false, f))
            }
            7 if x.rank() < 6 && !x.is_empty() => self.transformed(x),
            8 if !x.is_empty() => self.pooled(x),
            9 if !x.is_empty() => self.resized(x),
            _ => {
                let (name, record, f) = LANES[self.random.below(LANES.len())];
                let (axis, named) = self.axis(x.rank());
                self.note(format!("{name} along {axis}"));
                Pair::new(record(&x.tensor, named), x.array.lanes(axis, f))
            }
        }
    }

    fn padded(&mut self, x: &Pair) -> Pair {
        let kind = if x.is_empty() {
            0
        } else {
            self.random.below(3)
        };
        let mut array = x.array.clone();
        let mut sides = vec![[0; 2]; x.rank()];
        for (axis, sides) in sides.iter_mut().enumerate() {
            let length = x.array.shape[axis];
            let most = if kind == 2 { length } else { 4 };
            *sides = [self.random.below(most), self.random.below(most)];
            let last = length as isize - 1;
            let places = -(sides[0] as isize)..(length + sides[1]) as isize;
            let inside = |at: isize| match kind {
                2 if at < 0 => -at,
                2 if at > last => 2 * last - at,
                _ => at.clamp(0, last.max(0)),
            };
            let wide = if kind == 0 {
                // A border of 2.5, which is taken from an element after all others.
                let border = [&array.shape[..axis], &[1], &array.shape[axis + 1..]].concat();
                let border = Array::build(&border, |_| 2.5);
                let chosen = places.map(|at| {
                    if (0..=last).contains(&at) {
                        at as usize
                    } else {
                        length
                    }
                });
                let chosen: Vec<usize> = chosen.collect();
                Array::concat(&[array, border], axis).take(axis, &chosen)
            } else {
                let chosen: Vec<usize> = places.map(|at| inside(at) as usize).collect();
                array.take(axis, &chosen)
            };
            array = wide;
        }
        self.note(format!("pad {kind} {sides:?}"));
        let tensor = match kind {
            0 => x.tensor.pad_with(&sides, 2.5),
            1 => x.tensor.pad(&sides, Border::Edge),
            _ => x.tensor.pad(&sides, Border::Reflect),
        };
        Pair::new(tensor, array)
    }

    fn repeated(&mut self, x: &Pair) -> Pair {
        let (axis, named) = self.axis(x.rank());
        let (length, count) = (x.array.shape[axis], self.random.below(4));
        if self.random.below(2) == 0 {
            self.note(format!("repeat {count} along {axis}"));
            let chosen: Vec<usize> = (0..length * count).map(|at| at / count).collect();
            return Pair::new(x.tensor.repeat(count, named), x.array.take(axis, &chosen));
        }
        let mut counts = vec![1; x.rank()];
        counts[axis] = count;
        let last = 1 + self.random.below(2);
        counts[x.rank() - 1] *= last;
        self.note(format!("tile {counts:?}"));
        let mut array = x.array.clone();
        for (axis, &count) in counts.iter().enumerate() {
            let length = array.shape[axis];
            let chosen: Vec<usize> = (0..length * count).map(|at| at % length).collect();
            array = array.take(axis, &chosen);
        }
        Pair::new(x.tensor.tile(&counts), array)
    }

    fn divided(&mut self, x: &Pair) -> Pair {
        let (axis, named) = self.axis(x.rank());
        let length = x.array.shape[axis];
        let at = self.random.below(length + 1);
        self.note(format!("split_at {at} of axis {axis}"));
        let parts = x
            .tensor
            .split_at(&[at, at, length], named)
            .expect("indices of the axis");
        assert_eq!(
            parts.iter().map(|part| part.shape()[axis]).sum::<usize>(),
            length
        );
        let chosen: Vec<usize> = (at..length).collect();
        Pair::new(Ok(parts[2].clone()), x.array.take(axis, &chosen))
    }

    fn transformed(&mut self, x: &Pair) -> Pair {
        let (axis, named) = self.axis(x.rank());
        let length = x.array.shape[axis];
        self.note(format!("rfft along {axis}"));
        let mut shape = x.array.shape.clone();
        shape[axis] = length / 2 + 1;
        shape.push(2);
        let array = Array::build(&shape, |i| {
            let (own, part) = (&i[..i.len() - 1], i[i.len() - 1]);
            let term = |at: usize| {
                let mut index = own.to_vec();
                index[axis] = at;
                let angle = -TAU * (at * own[axis]) as f64 / length as f64;
                x.array.at(&index) * [angle.cos(), angle.sin()][part]
            };
            (0..length).map(term).sum()
        });
        let spectrum = x.tensor.rfft(named);
        if self.random.below(2) == 0 {
            return Pair::new(spectrum, array);
        }
        self.note("irfft".to_owned());
        let back = spectrum.and_then(|spectrum| spectrum.irfft(length, axis as isize));
        Pair::new(back, x.array.clone())
    }

    fn pooled(&mut self, x: &Pair) -> Pair {
        let axis = x.rank() - 1;
        let length = x.array.shape[axis];
        let size = 1 + self.random.below(length);
        let (step, before) = (1 + self.random.below(3), self.random.below(size / 2 + 1));
        let is_max = self.random.below(2) == 0;
        self.note(format!("pool {size} {step} {before} {is_max}"));
        let mut shape = x.array.shape.clone();
        shape[axis] = (length + 2 * before - size) / step + 1;
        let array = Array::build(&shape, |i| {
            let window = (0..size).filter_map(|at| (i[axis] * step + at).checked_sub(before));
            let elements = window.filter(|&at| at < length).map(|at| {
                let mut index = i.to_vec();
                index[axis] = at;
                x.array.at(&index)
            });
            if is_max {
                elements.fold(f64::MIN, f64::max)
            } else {
                elements.sum::<f64>() / size as f64
            }
        });
        let options = PoolOptions::new(&[size]).stride(&[step]).padding(&[before]);
        let tensor = if is_max {
            x.tensor.max_pool(&options)
        } else {
            x.tensor.avg_pool(&options)
        };
        Pair::new(tensor, array)
    }

    fn resized(&mut self, x: &Pair) -> Pair {
        let axis = x.rank() - 1;
        let (own, length) = (x.array.shape[axis], 1 + self.random.below(9));
        let is_nearest = self.random.below(2) == 0;
        self.note(format!("resize to {length} {is_nearest}"));
        let mut shape = x.array.shape.clone();
        shape[axis] = length;
        let array = Array::build(&shape, |i| {
            let at = |place: usize| {
                let mut index = i.to_vec();
                index[axis] = place.min(own - 1);
                x.array.at(&index)
            };
            if is_nearest {
                return at(i[axis] * own / length);
            }
            let place = (i[axis] as f64 + 0.5) * own as f64 / length as f64 - 0.5;
            let place = place.max(0.0);
            let share = place.fract();
            at(place as usize) * (1.0 - share) + at(place as usize + 1) * share
        });
        let interpolation = if is_nearest {
            Interpolation::Nearest
        } else {
            Interpolation::Bilinear
        };
        Pair::new(x.tensor.resize(&[length], interpolation), array)
    }

    /// Sums products of two tensors with random labels.
    fn labelled(&mut self) -> Pair {
        let lengths = [2, 3, 1, 4];
        let mut term = || {
            let count = self.random.below(4);
            (0..count)
                .map(|_| self.random.below(4))
                .collect::<Vec<usize>>()
        };
        let terms = [term(), term()];
        let mut output: Vec<usize> = (0..4)
            .filter(|label| terms.concat().contains(label) && self.random.below(2) == 0)
            .collect();
        if self.random.below(2) == 0 {
            output.reverse();
        }
        let letters =
            |labels: &[usize]| labels.iter().map(|&at| ['a', 'b', 'c', 'd'][at]).collect();
        let [a, b, c]: [String; 3] = [letters(&terms[0]), letters(&terms[1]), letters(&output)];
        let text = format!("{a},{b}->{c}");
        let of = |labels: &[usize]| labels.iter().map(|&at| lengths[at]).collect::<Vec<usize>>();
        let [a, b] = terms.clone().map(|labels| self.leaf_of(&of(&labels)));
        self.note(text.clone());
        let summed: Vec<usize> = (0..4)
            .filter(|label| terms.concat().contains(label) && !output.contains(label))
            .collect();
        let all = indices(&of(&summed));
        let array = Array::build(&of(&output), |i| {
            let term = |inner: &Vec<usize>| {
                let at = |label: usize| {
                    let place = |labels: &[usize]| labels.iter().position(|&own| own == label);
                    place(&output).map_or_else(|| inner[place(&summed).expect("summed")], |k| i[k])
                };
                let index = |labels: &[usize]| labels.iter().map(|&label| at(label)).collect();
                let [left, right]: [Vec<usize>; 2] = [index(&terms[0]), index(&terms[1])];
                a.array.at(&left) * b.array.at(&right)
            };
            all.iter().map(term).sum()
        });
        Pair::new(Tensor::einsum(&text, &[&a.tensor, &b.tensor]), array)
    }

    fn counted(&mut self) -> Pair {
        let (size, count) = (self.random.below(20), 1 + self.random.below(40));
        let array = Array::build(&[size], |_| self.random.below(count) as f64);
        let x = self.given(array);
        let weights = self.leaf_of(&[size]);
        let is_weighted = self.random.below(2) == 0;
        self.note(format!("bincount {count} {is_weighted}"));
        let array = Array::build(&[count], |i| {
            let each = x.array.values.iter().zip(&weights.array.values);
            let own = each.filter(|&(&x, _)| x == i[0] as f64);
            own.map(|(_, &weight)| if is_weighted { weight } else { 1.0 })
                .sum()
        });
        let weights = is_weighted.then_some(&weights.tensor);
        Pair::new(x.tensor.bincount(count, weights), array)
    }
}
