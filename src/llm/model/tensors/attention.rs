//! Attention of rows of texts, with rotations and grouped heads.

use super::super::rotation::Pairs;
use super::super::steps::{Slot, VectorId};
use super::texts::{TextTensors, Turns};
use super::{Recording, soft_capped, unset};
use crate::error::Result;
use crate::lazy::Tensor;

impl Recording<'_> {
    fn texts(&self) -> Result<&TextTensors> {
        self.texts.ok_or_else(unset)
    }

    /// Normalises and rotates queries and keys.
    pub(super) fn place(
        &mut self,
        gains: Option<[VectorId; 2]>,
        rotation: Option<usize>,
    ) -> Result<()> {
        let config = &self.model.config;
        let slots = [
            (Slot::Queries, Slot::Rotated, config.heads),
            (Slot::Keys, Slot::Keys, config.kv_heads),
        ];
        for (at, (from, to, heads)) in slots.into_iter().enumerate() {
            let texts = self.texts()?;
            let shape = texts.heads(heads, config.head_len);
            let mut x = self.get(from)?.clone();
            if let Some(gains) = gains {
                x = self.head_normed(&x, gains[at], &shape)?;
            }
            x = x.reshape(&shape)?;
            if let Some(rotation) = rotation {
                x = rotated(
                    &x,
                    texts.turns(rotation, at)?,
                    config.rotations[rotation].pairs,
                )?;
            }
            self.set(to, x);
        }
        Ok(())
    }

    /// Normalises each head, or all of them where the gain has as many elements.
    fn head_normed(&self, x: &Tensor, gain: VectorId, heads: &[isize]) -> Result<Tensor> {
        let gain = self.vector(gain)?;
        let epsilon = self.model.config.epsilon;
        if x.shape().last() == gain.shape().last() {
            return x.rms_norm(gain, -1, epsilon);
        }
        x.reshape(heads)?.rms_norm(gain, -1, epsilon)
    }

    /// Attends to the keys and values of the same text, of a window of positions if `is_local` is set.
    pub(super) fn attend(&self, is_local: bool) -> Result<Tensor> {
        let config = &self.model.config;
        let texts = self.texts()?;
        let [rows, len] = texts.shape().map(|len| len as isize);
        let [kv, head] = [config.kv_heads, config.head_len].map(|len| len as isize);
        let group = (config.heads / config.kv_heads) as isize;
        let queries = self.get(Slot::Rotated)?.mul(config.multipliers.scores)?;
        let queries = queries.reshape(&[rows, len, kv, group, head])?;
        let queries = queries.permute(&[0, 2, 3, 1, 4])?;
        let queries = queries.reshape(&[rows * kv, group * len, head])?;
        let keys = self.get(Slot::Keys)?.permute(&[0, 2, 3, 1])?;
        let keys = keys.reshape(&[rows * kv, head, len])?;
        let values = self.get(Slot::Values)?.reshape(&[rows, len, kv, head])?;
        let values = values.permute(&[0, 2, 1, 3])?;
        let values = values.reshape(&[rows * kv, len, head])?;
        let mut scores = queries.matmul(&keys)?;
        if let Some(cap) = config.soft_caps.scores {
            scores = soft_capped(&scores, cap)?;
        }
        let scores = scores.reshape(&[rows, kv, group, len, len])?;
        let shares = scores.add(texts.mask(is_local)?)?.softmax(-1)?;
        let shares = shares.reshape(&[rows * kv, group * len, len])?;
        let mixed = shares.matmul(&values)?;
        let mixed = mixed.reshape(&[rows, kv, group, len, head])?;
        let mixed = mixed.permute(&[0, 3, 1, 2, 4])?;
        mixed.reshape(&[rows * len, kv * group * head])
    }
}

/// Rotates heads: each element times a cosine, plus the other one of its pair times a sine with a sign.
fn rotated(x: &Tensor, turns: &Turns, pairs: Pairs) -> Result<Tensor> {
    let len = turns.rotated() as isize;
    let part = x.slice(-1, ..len)?;
    let mut halves = part
        .shape()
        .iter()
        .map(|&len| len as isize)
        .collect::<Vec<_>>();
    let own = halves.clone();
    halves.pop();
    let axis = match pairs {
        Pairs::Neighbours => {
            halves.extend([len / 2, 2]);
            -1
        }
        Pairs::Halves => {
            halves.extend([2, len / 2]);
            -2
        }
    };
    let others = part.reshape(&halves)?.flip(axis)?.reshape(&own)?;
    let turned = part.mul(&turns.cosines)?.add(&others.mul(&turns.sines)?)?;
    if own.last() == x.shape().last().map(|&len| len as isize).as_ref() {
        return Ok(turned);
    }
    Tensor::concat(&[&turned, &x.slice(-1, len..)?], -1)
}
