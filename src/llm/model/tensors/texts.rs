//! The positions of texts in rows, as tensors that the layers take.

use super::super::rotation::{Pairs, Rotation};
use super::super::{Config, Model};
use super::{TensorModel, unset};
use crate::alloc::try_zeros;
use crate::error::Result;
use crate::lazy::{Tensor, Tensors};

/// The score of a key that a token does not see. Its share is 0 beside the token's own.
const UNSEEN: f32 = -1e30;

/// Rows of tokens, each of several texts one after the other. A token sees its own text only.
#[derive(Clone, Debug)]
pub(in crate::llm) struct TextRows {
    /// The number of rows, and of tokens in each.
    pub(in crate::llm) shape: [usize; 2],
    /// The position of each token in its text.
    pub(in crate::llm) positions: Vec<usize>,
}

/// The masks and rotations of rows of texts.
pub(in crate::llm) struct TextTensors {
    shape: [usize; 2],
    /// Added to scores, of layers that see everything and of layers with a window.
    masks: [Option<Tensor>; 2],
    /// By rotation, that of queries and that of keys.
    turns: [Option<[Turns; 2]>; 2],
}

/// The cosines and sines of a rotation for each token and element.
#[derive(Clone)]
pub(super) struct Turns {
    pub(super) cosines: Tensor,
    /// With the signs of a rotation.
    pub(super) sines: Tensor,
}

impl Turns {
    /// Returns the number of elements of a head that are rotated.
    pub(super) fn rotated(&self) -> usize {
        self.cosines.shape().last().copied().unwrap_or_default()
    }

    fn new(
        tensors: &Tensors,
        angles: &[[f32; 2]],
        [rows, len]: [usize; 2],
        rotation: &Rotation,
    ) -> Result<Self> {
        let pairs = rotation.rotated / 2;
        let (mut cosines, mut sines) = (Vec::new(), Vec::new());
        for angles in angles.chunks_exact(pairs.max(1)) {
            match rotation.pairs {
                Pairs::Neighbours => {
                    cosines.extend(angles.iter().flat_map(|[cosine, _]| [*cosine; 2]));
                    sines.extend(angles.iter().flat_map(|[_, sine]| [-sine, *sine]));
                }
                Pairs::Halves => {
                    let both = angles.iter().chain(angles);
                    cosines.extend(both.map(|[cosine, _]| cosine));
                    sines.extend(angles.iter().map(|[_, sine]| -sine));
                    sines.extend(angles.iter().map(|[_, sine]| sine));
                }
            }
        }
        let shape = [rows, len, 1, rotation.rotated];
        Ok(Self {
            cosines: tensors.own(cosines, &shape)?,
            sines: tensors.own(sines, &shape)?,
        })
    }
}

impl TextRows {
    /// Returns what is added to the scores of each token's keys, of a window of positions if there is one.
    fn mask(&self, window: Option<usize>) -> Result<Vec<f32>> {
        let [rows, len] = self.shape;
        let mut mask = try_zeros(rows * len * len)?;
        let window = window.unwrap_or(usize::MAX);
        for (row, positions) in mask
            .chunks_exact_mut(len * len)
            .zip(self.positions.chunks_exact(len))
        {
            row.fill(UNSEEN);
            for (query, scores) in row.chunks_exact_mut(len).enumerate() {
                let seen = (positions[query] + 1).min(window);
                scores[query + 1 - seen..=query].fill(0.0);
            }
        }
        Ok(mask)
    }
}

impl TensorModel<'_> {
    /// Makes the masks and rotations of rows of texts.
    pub(in crate::llm) fn texts(&self, rows: &TextRows) -> Result<TextTensors> {
        let config = &self.model.config;
        let [count, len] = rows.shape;
        let mask = |window| {
            let mask = rows.mask(window)?;
            self.tensors.own(mask, &[count, 1, 1, len, len])
        };
        let local = config.window.map(|window| mask(Some(window)));
        Ok(TextTensors {
            shape: rows.shape,
            masks: [Some(mask(None)?), local.transpose()?],
            turns: [self.turns(rows, 0)?, self.turns(rows, 1)?],
        })
    }

    fn turns(&self, rows: &TextRows, index: usize) -> Result<Option<[Turns; 2]>> {
        let Model { config, .. } = self.model;
        if !uses(config, index) {
            return Ok(None);
        }
        let rotation = &config.rotations[index];
        let angles = rotation.angles(&rows.positions);
        let count = rows.positions.len();
        let (keys, queries) = (&angles, &angles[rotation.query_angles(count)..]);
        let keys = &keys[..count * rotation.rotated / 2];
        let turns = |angles| Turns::new(&self.tensors, angles, rows.shape, rotation);
        Ok(Some([turns(queries)?, turns(keys)?]))
    }
}

/// Returns whether a layer has this rotation.
fn uses(config: &Config, rotation: usize) -> bool {
    let is_local = rotation == 1;
    (0..config.layers).any(|layer| config.rotates(layer) && config.is_local(layer) == is_local)
}

impl TextTensors {
    /// Returns the number of rows, and of tokens in each.
    pub(super) fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// Returns the shape of heads.
    pub(super) fn heads(&self, heads: usize, head_len: usize) -> [isize; 4] {
        let [rows, len] = self.shape;
        [rows, len, heads, head_len].map(|len| len as isize)
    }

    pub(super) fn mask(&self, is_local: bool) -> Result<&Tensor> {
        self.masks[usize::from(is_local)].as_ref().ok_or_else(unset)
    }

    /// Returns a rotation of queries, or of keys if `part` is 1.
    pub(super) fn turns(&self, rotation: usize, part: usize) -> Result<&Turns> {
        let turns = self.turns[rotation].as_ref();
        turns.map(|turns| &turns[part]).ok_or_else(unset)
    }
}
