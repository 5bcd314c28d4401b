//! Arrays of `f64`, whose operations are written element by element from their definitions.

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f64>,
}

/// Returns all indices of a shape in row-major order.
pub(crate) fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &length in shape {
        let longer = all.iter().flat_map(|index: &Vec<usize>| {
            let with = |k| [&index[..], &[k]].concat();
            (0..length).map(with).collect::<Vec<_>>()
        });
        all = longer.collect();
    }
    all
}

impl Array {
    pub(crate) fn new(shape: &[usize], values: Vec<f64>) -> Self {
        assert_eq!(values.len(), shape.iter().product::<usize>());
        let shape = shape.to_vec();
        Self { shape, values }
    }

    pub(crate) fn build(shape: &[usize], value: impl FnMut(&[usize]) -> f64) -> Self {
        let all = indices(shape);
        let values = all.iter().map(Vec::as_slice).map(value).collect();
        Self::new(shape, values)
    }

    pub(crate) fn at(&self, index: &[usize]) -> f64 {
        assert_eq!(index.len(), self.shape.len());
        let along = index.iter().zip(&self.shape);
        self.values[along.fold(0, |at, (&k, &length)| at * length + k)]
    }

    /// The element that broadcasting shows at an index of a shape with at least as many axes.
    fn broadcast_at(&self, index: &[usize]) -> f64 {
        let own = &index[index.len() - self.shape.len()..];
        let own = own.iter().zip(&self.shape);
        let own: Vec<usize> = own
            .map(|(&k, &length)| if length == 1 { 0 } else { k })
            .collect();
        self.at(&own)
    }

    pub(crate) fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        let values = self.values.iter().map(|&x| f(x)).collect();
        Self::new(&self.shape, values)
    }

    pub(crate) fn with(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let shape = broadcast(&self.shape, &other.shape);
        Self::build(&shape, |i| f(self.broadcast_at(i), other.broadcast_at(i)))
    }

    pub(crate) fn select(&self, a: &Self, b: &Self) -> Self {
        let shape = broadcast(&broadcast(&self.shape, &a.shape), &b.shape);
        Self::build(&shape, |i| {
            let chosen = if self.broadcast_at(i) == 0.0 { b } else { a };
            chosen.broadcast_at(i)
        })
    }

    pub(crate) fn broadcast_to(&self, shape: &[usize]) -> Self {
        Self::build(shape, |i| self.broadcast_at(i))
    }

    pub(crate) fn reshape(&self, shape: &[usize]) -> Self {
        Self::new(shape, self.values.clone())
    }

    pub(crate) fn permute(&self, order: &[usize]) -> Self {
        let shape: Vec<usize> = order.iter().map(|&axis| self.shape[axis]).collect();
        Self::build(&shape, |i| {
            let mut own = vec![0; i.len()];
            for (k, &axis) in order.iter().enumerate() {
                own[axis] = i[k];
            }
            self.at(&own)
        })
    }

    /// The elements of an axis at some indices.
    pub(crate) fn take(&self, axis: usize, chosen: &[usize]) -> Self {
        let mut shape = self.shape.clone();
        shape[axis] = chosen.len();
        Self::build(&shape, |i| {
            let mut own = i.to_vec();
            own[axis] = chosen[i[axis]];
            self.at(&own)
        })
    }

    /// The elements along some axes, in order, that a reduction brings to each element of its result.
    pub(crate) fn reduce(&self, axes: &[usize], keep: bool, f: impl Fn(&[f64]) -> f64) -> Self {
        let lengths: Vec<usize> = axes.iter().map(|&axis| self.shape[axis]).collect();
        let inner = indices(&lengths);
        let mut kept = self.shape.clone();
        for &axis in axes {
            kept[axis] = 1;
        }
        let result = Self::build(&kept, |i| {
            let mut own = i.to_vec();
            let lane = inner.iter().map(|along| {
                axes.iter().zip(along).for_each(|(&axis, &k)| own[axis] = k);
                self.at(&own)
            });
            f(&lane.collect::<Vec<f64>>())
        });
        if keep {
            return result;
        }
        let left = (0..self.shape.len()).filter(|axis| !axes.contains(axis));
        let left: Vec<usize> = left.map(|axis| self.shape[axis]).collect();
        result.reshape(&left)
    }

    /// Replaces the elements along an axis by as many others.
    pub(crate) fn lanes(&self, axis: usize, f: impl Fn(&[f64]) -> Vec<f64>) -> Self {
        let mut sizes = self.shape.clone();
        sizes[axis] = 1;
        let mut result = self.clone();
        for index in indices(&sizes) {
            let place = |k: usize| {
                let mut own = index.clone();
                own[axis] = k;
                own.iter()
                    .zip(&self.shape)
                    .fold(0, |at, (&k, &length)| at * length + k)
            };
            let places: Vec<usize> = (0..self.shape[axis]).map(place).collect();
            let lane: Vec<f64> = places.iter().map(|&at| self.values[at]).collect();
            for (at, value) in places.into_iter().zip(f(&lane)) {
                result.values[at] = value;
            }
        }
        result
    }

    pub(crate) fn concat(parts: &[Self], axis: usize) -> Self {
        let mut shape = parts[0].shape.clone();
        shape[axis] = parts.iter().map(|part| part.shape[axis]).sum();
        Self::build(&shape, |i| {
            let mut own = i.to_vec();
            for part in parts {
                if own[axis] < part.shape[axis] {
                    return part.at(&own);
                }
                own[axis] -= part.shape[axis];
            }
            unreachable!("an index beyond all parts")
        })
    }

    /// The elements of an axis at indices that are an array themselves.
    pub(crate) fn gather(&self, chosen: &Self, axis: usize) -> Self {
        let (before, after) = (&self.shape[..axis], &self.shape[axis + 1..]);
        let shape = [before, &chosen.shape, after].concat();
        let count = chosen.shape.len();
        Self::build(&shape, |i| {
            let row = chosen.at(&i[axis..axis + count]) as usize;
            self.at(&[&i[..axis], &[row], &i[axis + count..]].concat())
        })
    }

    /// One where an index is, and NaN beside what is no index.
    pub(crate) fn one_hot(&self, classes: usize) -> Self {
        let shape = [&self.shape[..], &[classes]].concat();
        Self::build(&shape, |i| {
            let (class, own) = i.split_last().expect("a new axis");
            let index = self.at(own);
            if !(0..classes).any(|class| index == class as f64) {
                return f64::NAN;
            }
            f64::from(index == *class as f64)
        })
    }

    /// Matmul of arrays with at least two axes.
    pub(crate) fn matmul(&self, other: &Self) -> Self {
        let (a, b) = (self.shape.len() - 2, other.shape.len() - 2);
        let lead = broadcast(&self.shape[..a], &other.shape[..b]);
        let (m, k, n) = (self.shape[a], self.shape[a + 1], other.shape[b + 1]);
        Self::build(&[&lead[..], &[m, n]].concat(), |i| {
            let (lead, last) = i.split_at(i.len() - 2);
            let of = |array: &Self, row: usize, col: usize| {
                let rank = array.shape.len() - 2;
                let own = lead[lead.len() - rank..].iter().zip(&array.shape);
                let own = own.map(|(&k, &length)| if length == 1 { 0 } else { k });
                let own: Vec<usize> = own.chain([row, col]).collect();
                array.at(&own)
            };
            (0..k)
                .map(|k| of(self, last[0], k) * of(other, k, last[1]))
                .sum()
        })
    }
}

pub(crate) fn broadcast(a: &[usize], b: &[usize]) -> Vec<usize> {
    let rank = a.len().max(b.len());
    let of = |shape: &[usize], axis: usize| {
        let missing = rank - shape.len();
        if axis < missing {
            1
        } else {
            shape[axis - missing]
        }
    };
    let both = (0..rank).map(|axis| (of(a, axis), of(b, axis)));
    both.map(|(m, n)| if m == 1 { n } else { m }).collect()
}

pub(crate) fn softmax(lane: &[f64]) -> Vec<f64> {
    let most = lane.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = lane.iter().map(|x| (x - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|power| power / sum).collect()
}

/// The index of the first largest element.
pub(crate) fn argmax(lane: &[f64]) -> f64 {
    let first = (0..lane.len()).reduce(|best, at| if lane[at] > lane[best] { at } else { best });
    first.expect("an element") as f64
}

pub(crate) fn mean(lane: &[f64]) -> f64 {
    lane.iter().sum::<f64>() / lane.len() as f64
}

pub(crate) fn variance(lane: &[f64]) -> f64 {
    let centre = mean(lane);
    mean(
        &lane
            .iter()
            .map(|x| (x - centre).powi(2))
            .collect::<Vec<_>>(),
    )
}

/// How images are continued beyond their border.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Beyond {
    Zeros,
    Edge,
    Reflect,
}

pub(crate) struct Convolution {
    pub(crate) stride: [usize; 2],
    pub(crate) dilation: [usize; 2],
    pub(crate) groups: usize,
    /// The rows and columns before and after the image.
    pub(crate) before: [usize; 2],
    pub(crate) after: [usize; 2],
    pub(crate) beyond: Beyond,
}

impl Convolution {
    /// The index in the image of a position that counts from the padding on; `None` for a zero.
    fn place(&self, position: usize, before: usize, length: usize) -> Option<usize> {
        let at = position as isize - before as isize;
        let last = length as isize - 1;
        let inside = match self.beyond {
            Beyond::Edge => at.clamp(0, last),
            Beyond::Reflect if at < 0 => -at,
            Beyond::Reflect if at > last => 2 * last - at,
            Beyond::Zeros | Beyond::Reflect => at,
        };
        (0..=last).contains(&inside).then_some(inside as usize)
    }

    pub(crate) fn of(&self, x: &Array, weights: &Array) -> Array {
        let [filters, depth, kernel_rows, kernel_cols] = weights.shape[..] else {
            panic!("weights have four axes");
        };
        let kernel = [kernel_rows, kernel_cols];
        let size = |k: usize| {
            let padded = x.shape[k + 2] + self.before[k] + self.after[k];
            (padded - ((kernel[k] - 1) * self.dilation[k] + 1)) / self.stride[k] + 1
        };
        Array::build(&[x.shape[0], filters, size(0), size(1)], |i| {
            let group = i[1] / (filters / self.groups);
            let taps = indices(&[depth, kernel_rows, kernel_cols]);
            let tap = |tap: &Vec<usize>| {
                let place = |k: usize| {
                    let position = i[k + 2] * self.stride[k] + tap[k + 1] * self.dilation[k];
                    self.place(position, self.before[k], x.shape[k + 2])
                };
                let (Some(row), Some(col)) = (place(0), place(1)) else {
                    return 0.0;
                };
                let channel = group * depth + tap[0];
                x.at(&[i[0], channel, row, col]) * weights.at(&[i[1], tap[0], tap[1], tap[2]])
            };
            taps.iter().map(tap).sum()
        })
    }
}
