//! k-means of blocks of points.

use anyhow::Result;
use relampago::{Tensor, Tensors};

/// The number of points in a block.
pub(crate) const POINTS: usize = 100_000;
/// The number of coordinates of a point.
pub(crate) const COLUMNS: usize = 16;
/// The number of clusters.
const CENTRES: usize = 10;

/// A block of points, on the device.
pub(crate) struct Block {
    pub(crate) number: u64,
    points: Tensor,
}

impl Block {
    /// Draws a block's points. A program for data of its own would read them.
    pub(crate) fn draw(tensors: &Tensors, number: u64) -> Result<Self> {
        let points = draw(tensors, POINTS, number)?.run()?;
        Ok(Self { number, points })
    }

    /// Returns for each centre the sum of the points that are nearest to it, and their number:
    /// `CENTRES` × `COLUMNS + 1` values.
    pub(crate) fn sums(&self, centres: &Tensor) -> Result<Vec<f32>> {
        let half_norms = centres.square()?.sum(1)?.mul(0.5)?;
        let nearness = self
            .points
            .matmul(&centres.transpose()?)?
            .sub(&half_norms)?;
        let members = nearness.argmax(1)?.one_hot(CENTRES)?.transpose()?;
        let numbers = members.sum(1)?.unsqueeze(1)?;
        let sums = Tensor::concat(&[&members.matmul(&self.points)?, &numbers], 1)?;
        Ok(sums.read()?)
    }
}

/// Draws the centres of the first round, the same ones on every machine.
pub(crate) fn first_centres(tensors: &Tensors) -> Result<Vec<f32>> {
    Ok(draw(tensors, CENTRES, u64::from(u32::MAX))?.read()?)
}

/// Draws points of `CENTRES` clusters: cubes with a side of 1, along the diagonal. They depend on the seed alone.
fn draw(tensors: &Tensors, number: usize, seed: u64) -> Result<Tensor> {
    let noise = tensors.random_uniform(&[number, COLUMNS], 2 * seed)?;
    let cluster = tensors.random_uniform(&[number, 1], 2 * seed + 1)?;
    Ok(noise.add(&cluster.mul(CENTRES as f32)?.floor()?)?)
}

/// Moves centres to the mean of their points, given the sums of all blocks in the order of their numbers. Centres
/// without points stay.
pub(crate) fn next_centres<'a>(centres: &mut [f32], blocks: impl Iterator<Item = &'a Vec<f32>>) {
    let mut totals = [0.0; CENTRES * (COLUMNS + 1)];
    for sums in blocks {
        for (total, &sum) in totals.iter_mut().zip(sums) {
            *total += f64::from(sum);
        }
    }
    let totals = totals.chunks(COLUMNS + 1);
    for (centre, total) in centres.chunks_mut(COLUMNS).zip(totals) {
        let (sums, number) = (&total[..COLUMNS], total[COLUMNS]);
        if number > 0.0 {
            for (coordinate, sum) in centre.iter_mut().zip(sums) {
                *coordinate = (sum / number) as f32;
            }
        }
    }
}
