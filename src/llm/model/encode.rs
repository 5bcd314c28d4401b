//! The pass of encoders: whole texts, several at a time.

use super::steps::VectorId;
use super::weights::EncoderInput;
use super::{BlockRequest, Input, Model, Output, SequenceRows};
use crate::alloc::try_zeros;
use crate::error::{Error, Result};
use crate::runtime::pause;
use std::ops::Range;

impl Model {
    /// Passes the values of each text's tokens after the last layer to a function, and returns its results. Texts go through
    /// the layers together, as many as there is room for.
    ///
    /// The texts must have passed [`Model::check`], and none may be empty.
    ///
    /// # Errors
    /// `OutOfMemory`; on a GPU also `LimitExceeded`, `DeviceLost` and `Gpu`.
    pub(crate) async fn encode<T>(
        &self,
        texts: &[Vec<u32>],
        of_text: impl Fn(&[f32]) -> T,
    ) -> Result<Vec<T>> {
        let state = self.state()?;
        let (mut results, mut rest) = (Vec::new(), texts);
        while !rest.is_empty() {
            let (now, after) = rest.split_at(texts_at_once(rest, self.block()));
            let (tokens, rows) = (now.concat(), rows_of(now));
            let sequence = SequenceRows {
                state: &state,
                first: 0,
                tokens: tokens.len(),
            };
            let request = BlockRequest {
                sequences: &[sequence],
                input: Input::Tokens(&tokens),
                layers: 0..self.config.layers,
                output: Output::Residual,
                adapters: &[],
                texts: &rows,
            };
            let all = self.read(&request).await?;
            let width = self.config.width;
            let values = rows.iter();
            let values = values.map(|rows| &all[rows.start * width..rows.end * width]);
            results.extend(values.map(&of_text));
            rest = after;
            pause().await;
        }
        Ok(results)
    }

    /// Adds the embeddings of positions and of the first type to those of tokens, and normalises the sums.
    pub(super) fn complete_input(
        &self,
        input: &EncoderInput,
        texts: &[Range<usize>],
        rows: &mut [f32],
    ) -> Result<()> {
        let width = self.config.width;
        let matrix = |index: usize| self.weights.matrices[index].matrix(&self.file);
        let positions = input.positions.map(matrix).transpose()?;
        let mut of_type = try_zeros(width)?;
        if let Some(types) = input.types {
            matrix(types)?.dequantize_row(0, &mut of_type);
        }
        let [gain, bias] = input.norm.map(|vector| &self.weights.vectors[vector.0]);
        let mut of_position = try_zeros(width)?;
        let numbers = texts.iter().flat_map(|text| 0..text.len());
        for (row, position) in rows.chunks_exact_mut(width).zip(numbers) {
            if let Some(positions) = &positions {
                positions.dequantize_row(position, &mut of_position);
            }
            for ((x, position), of_type) in row.iter_mut().zip(&of_position).zip(&of_type) {
                *x += position + of_type;
            }
            normalize(row, gain, bias, self.config.epsilon);
        }
        Ok(())
    }

    /// Checks whether the model ranks texts.
    ///
    /// # Errors
    /// `InvalidArgument` for another model.
    pub(crate) fn check_ranking(&self) -> Result<()> {
        if self.weights.ranking.is_some() {
            return Ok(());
        }
        let requirement = "one that ranks texts, whose `pooling_type` is 4";
        Err(Error::invalid(
            "model",
            self.config.architecture.name,
            requirement,
        ))
    }

    /// Returns the score of a pair of texts by the values of its tokens.
    ///
    /// # Errors
    /// `InvalidArgument` for a model that ranks no texts; `OutOfMemory`.
    pub(crate) fn score(&self, rows: &[f32]) -> Result<f32> {
        self.check_ranking()?;
        let mut values: Vec<f64> = rows.iter().copied().map(f64::from).collect();
        values.truncate(self.config.width);
        if let Some(head) = &self.weights.ranking {
            let hidden = self.linear_on_host(head.dense, &values)?;
            let hidden: Vec<f64> = hidden.into_iter().map(f64::tanh).collect();
            values = self.linear_on_host(head.output, &hidden)?;
        }
        Ok(values[0] as f32)
    }

    fn linear_on_host(&self, (matrix, bias): (usize, VectorId), x: &[f64]) -> Result<Vec<f64>> {
        let matrix = self.weights.matrices[matrix].matrix(&self.file)?;
        let mut row = try_zeros(x.len())?;
        let biases = self.weights.vectors[bias.0].iter().enumerate();
        let sums = biases.map(|(index, &bias)| {
            matrix.dequantize_row(index, &mut row);
            let products = row.iter().zip(x).map(|(&weight, x)| f64::from(weight) * x);
            f64::from(bias) + products.sum::<f64>()
        });
        Ok(sums.collect())
    }

    /// Checks whether the model continues texts.
    ///
    /// # Errors
    /// `InvalidArgument` for an encoder, which reads whole texts only.
    pub(crate) fn check_decoder(&self) -> Result<()> {
        if !self.config.is_encoder() {
            return Ok(());
        }
        let requirement = "one that continues texts: an encoder has only `embed` and `rank`";
        Err(Error::invalid(
            "model",
            self.config.architecture.name,
            requirement,
        ))
    }
}

/// Returns the number of texts at the beginning that go through the layers together, in at most `most` rows, at least one.
fn texts_at_once(texts: &[Vec<u32>], most: usize) -> usize {
    let mut rows = 0;
    let fits = |text: &&Vec<u32>| {
        rows += text.len();
        rows <= most
    };
    texts.iter().take_while(fits).count().max(1)
}

/// Returns the rows of texts that follow each other.
fn rows_of(texts: &[Vec<u32>]) -> Vec<Range<usize>> {
    let mut end = 0;
    let rows = texts.iter().map(|text| {
        let start = end;
        end += text.len();
        start..end
    });
    rows.collect()
}

/// Normalises a row by its deviations from the mean.
fn normalize(row: &mut [f32], gain: &[f32], bias: &[f32], epsilon: f32) {
    let len = row.len() as f64;
    let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / len;
    let squares = row.iter().map(|&x| (f64::from(x) - mean).powi(2));
    let factor = 1.0 / (squares.sum::<f64>() / len + f64::from(epsilon)).sqrt();
    for ((x, gain), bias) in row.iter_mut().zip(gain).zip(bias) {
        *x = ((f64::from(*x) - mean) * factor) as f32 * gain + bias;
    }
}
