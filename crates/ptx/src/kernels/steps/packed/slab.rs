//! Copies slabs of columns of `x` and of weights from memory to shared memory.

use super::{Loaded, Params, Row};
use crate::build::Builder;
use crate::inst::{Op, Reg};
use crate::types::PtxType::{F32, U32};

/// A block's tile of `y`, and the slabs from which groups of threads compute it.
pub(super) struct Shape {
    /// The number of groups of threads, which take turns with slabs.
    pub(super) groups: u32,
    /// The number of threads of a group.
    pub(super) threads: u32,
    /// Rows of `x` and of weights in the tile.
    pub(super) lines: [u32; 2],
    /// The number of columns of a slab.
    pub(super) depth: u32,
    /// The number of bytes of a number in a slab.
    pub(super) bytes: u32,
    /// The number of bytes from a row of a slab to the next.
    pub(super) pitch: u32,
    /// Returns the place in a slab of a byte of a row.
    pub(super) place: fn(&mut Builder, row: Reg, byte: Reg) -> Reg,
}

/// The copies that a thread makes of each slab of its group. It copies four elements of several rows of `x` and one unit of
/// several rows of weights, always in the same columns.
pub(super) struct Loads {
    group: Reg,
    /// The number of columns of a slab.
    depth: u32,
    /// The number of columns of all groups' slabs together.
    step: u32,
    /// The thread's columns of `x` and of weights in a slab, and the positions of the first columns in it.
    col: Reg,
    weight_col: Reg,
    places: [Reg; 2],
    elements: Vec<ElementLoad>,
    weights: Vec<WeightLoad>,
}

struct ElementLoad {
    /// The address of the row of `x`.
    from: Reg,
    /// The distance in bytes from the position of the first element.
    further: u32,
    elements: Vec<Reg>,
}

struct WeightLoad {
    from: Row,
    further: u32,
    loaded: Loaded,
}

impl Loads {
    /// Prepares the copies of a thread of a group, for the tile that begins with a row of `x` and a row of weights. Of
    /// rows beyond the last one the last one is copied; their products are not to be stored.
    pub(super) fn new(
        k: &mut Builder,
        params: &Params,
        shape: &Shape,
        [group, thread]: [Reg; 2],
        [first_token, first_row]: [Reg; 2],
    ) -> Self {
        let zero = k.value(U32, 0);
        let unit = params.weights.format.unit();
        let tokens = shape.share(k, thread, 4, [first_token, params.tokens], 0);
        let rows = shape.share(k, thread, unit, [first_row, params.rows], 1);
        let elements = tokens
            .lines
            .into_iter()
            .map(|(token, further)| ElementLoad {
                from: k.at_2d(params.x, token, params.k, zero, 4),
                further,
                elements: k.filled(F32, 4, 0.0f32),
            });
        let elements = elements.collect();
        let weights = rows.lines.into_iter().map(|(row, further)| WeightLoad {
            from: params.weights.row(k, row),
            further,
            loaded: params.weights.zeros(k),
        });
        Self {
            group,
            depth: shape.depth,
            step: shape.groups * shape.depth,
            col: tokens.col,
            weight_col: rows.col,
            places: [tokens.place, rows.place],
            elements,
            weights: weights.collect(),
        }
    }

    /// Calls `store` for all that the thread copies of a group's slab, with 0 and elements of `x` or 1 and weights,
    /// their place in the slab and bytes to add to it, then `multiply`, for one slab after the other. Meanwhile the
    /// next slab is loaded into registers.
    pub(super) fn sweep(
        &self,
        k: &mut Builder,
        params: &Params,
        store: impl Fn(&mut Builder, usize, (Reg, u32), &[Reg]),
        multiply: impl Fn(&mut Builder),
    ) {
        k.wait_for_grid();
        let own = k.mul(self.group, self.depth);
        self.fetch(k, params, own);
        k.for_range(0, params.k, self.step, |k, slab| {
            for load in &self.elements {
                store(k, 0, (self.places[0], load.further), &load.elements);
            }
            for load in &self.weights {
                let weights = params.weights.values(k, &load.loaded);
                store(k, 1, (self.places[1], load.further), &weights);
            }
            k.barrier();
            let next = k.add(slab, self.step);
            let next = k.add(next, own);
            self.fetch(k, params, next);
            multiply(k);
            k.barrier();
        });
    }

    /// Loads the slab that begins with column `slab`. Beyond the end of a row elements of `x` are 0, so that the weights
    /// do not count.
    fn fetch(&self, k: &mut Builder, params: &Params, slab: Reg) {
        let col = k.add(slab, self.col);
        let exists = k.lt(col, params.k);
        k.when_else(
            exists,
            |k| {
                for load in &self.elements {
                    let at = k.at(load.from, col, 4);
                    let elements = k.ld_vector(Op::LdGlobal, F32, 4, at, 0);
                    for (&to, value) in load.elements.iter().zip(elements) {
                        k.assign(to, value);
                    }
                }
            },
            |k| {
                for &to in self.elements.iter().flat_map(|load| &load.elements) {
                    k.assign(to, 0.0f32);
                }
            },
        );
        let weights = &params.weights;
        let col = k.add(slab, self.weight_col);
        let exists = k.lt(col, params.k);
        k.when(exists, |k| {
            let unit = k.shr(col, weights.format.unit().trailing_zeros());
            for load in &self.weights {
                let loaded = weights.load(k, &load.from, unit);
                load.loaded.assign(k, &loaded);
            }
        });
    }
}

/// The places in a slab of `x` or of weights that a thread copies.
struct Share {
    /// The thread's column in the slab.
    col: Reg,
    /// The place of the first line in the slab.
    place: Reg,
    /// The rows of the matrix, each with its distance in bytes from the position of the first row.
    lines: Vec<(Reg, u32)>,
}

impl Shape {
    /// Divides a slab of a side among a group's threads, `len` columns of a row to each, for a tile that begins with row
    /// `first` of `count`.
    fn share(
        &self,
        k: &mut Builder,
        thread: Reg,
        len: u32,
        [first, count]: [Reg; 2],
        side: usize,
    ) -> Share {
        let across = self.depth / len;
        let (line, part) = (k.div(thread, across), k.rem(thread, across));
        let byte = k.mul(part, self.bytes * len);
        let row = k.add(first, line);
        let last = k.sub(count, 1);
        let copy = |i: u32| {
            let further = i * self.threads / across;
            let row = k.offset(row, further);
            (k.min(row, last), further * self.pitch)
        };
        let lines = (0..self.lines[side] * across / self.threads).map(copy);
        let lines = lines.collect();
        Share {
            col: k.mul(part, len),
            place: (self.place)(k, line, byte),
            lines,
        }
    }
}
