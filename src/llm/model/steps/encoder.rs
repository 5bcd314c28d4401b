//! The steps of an encoder's layers, and the weights of their input.

use super::super::architecture::Encoder;
use super::super::weights::{EncoderInput, RankingHead, Weight};
use super::{Builder, Slot, Step, VectorId};
use crate::error::Result;
use crate::llm::Value;
use crate::llm::gguf::invalid;

/// The pooling that is a score.
const RANK: u64 = 4;

/// The matrix with a row for each type of token.
const TYPES: &str = "token_types.weight";

impl Builder<'_> {
    /// Finds the weights of the first layer's input.
    pub(super) fn input(&mut self, encoder: &Encoder) -> Result<()> {
        let positions = if encoder.embeds_positions {
            Some(self.host_matrix("position_embd.weight", self.config.context)?)
        } else {
            None
        };
        let types = self.file.tensor(TYPES);
        let types = match types.map(|tensor| tensor.shape().get(1).copied()) {
            Some(Some(rows)) if rows > 0 => Some(self.host_matrix(TYPES, rows)?),
            Some(_) => return Err(invalid("no matrix", format!("tensor `{TYPES}`"))),
            None => None,
        };
        self.weights.input = Some(EncoderInput {
            positions,
            types,
            norm: self.gain_and_bias("token_embd_norm")?,
        });
        let key = format!("{}.pooling_type", self.config.architecture.name);
        if self.file.get(&key).and_then(Value::as_u64) == Some(RANK) {
            self.weights.ranking = Some(self.ranking_head(types)?);
        }
        Ok(())
    }

    /// Finds the head of a file that ranks texts.
    ///
    /// # Errors
    /// `InvalidModel` for a head of other layers, and for several types of tokens: the texts of a pair would differ in
    /// them, and all tokens have the first one.
    fn ranking_head(&mut self, types: Option<usize>) -> Result<RankingHead> {
        if types.is_some_and(|types| self.weights.matrices[types].rows > 1) {
            let what = "several types of tokens: pairs of texts are supported with one type only";
            return Err(invalid(what, format!("tensor `{TYPES}`")));
        }
        let width = self.config.width;
        Ok(RankingHead {
            dense: (
                self.host_matrix("cls.weight", width)?,
                self.vector("cls.bias", width)?,
            ),
            output: (
                self.host_matrix("cls.output.weight", 1)?,
                self.vector("cls.output.bias", 1)?,
            ),
        })
    }

    /// Lists the steps of a layer. Its input and its result are in `Residual`.
    pub(super) fn encoder_layer(&mut self, encoder: &Encoder, layer: usize) -> Result<()> {
        let config = self.config;
        let name = |part: &str| format!("blk.{layer}.{part}");
        self.projections(Slot::Residual, layer)?;
        let cache = config.cached_layers().start;
        self.steps.push(Step::Place {
            gains: None,
            rotation: Some(0),
        });
        self.steps.push(Step::AttendWithin { layer: cache });
        let width = config.width;
        self.linear(
            Slot::Mixed,
            &name("attn_output"),
            width,
            Slot::Residual,
            true,
        )?;
        self.layer_norm(Slot::Residual, &name("attn_output_norm"), Slot::Normed)?;
        if encoder.gates {
            self.linear(
                Slot::Normed,
                &name("ffn_gate"),
                config.hidden,
                Slot::Gate,
                false,
            )?;
            self.linear(
                Slot::Normed,
                &name("ffn_up"),
                config.hidden,
                Slot::Up,
                false,
            )?;
            self.steps
                .push(Step::Activate(config.architecture.activation));
        } else {
            self.linear(
                Slot::Normed,
                &name("ffn_up"),
                config.hidden,
                Slot::Gate,
                false,
            )?;
            self.steps.push(Step::Gelu);
        }
        self.linear(Slot::Gated, &name("ffn_down"), width, Slot::Normed, true)?;
        self.layer_norm(Slot::Normed, &name("layer_output_norm"), Slot::Residual)
    }

    fn layer_norm(&mut self, from: Slot, name: &str, to: Slot) -> Result<()> {
        let [gain, bias] = self.gain_and_bias(name)?;
        self.steps.push(Step::Norm {
            from,
            gain,
            bias: Some(bias),
            to,
        });
        Ok(())
    }

    fn gain_and_bias(&mut self, name: &str) -> Result<[VectorId; 2]> {
        let width = self.config.width;
        let gain = self.vector(&format!("{name}.weight"), width)?;
        Ok([gain, self.vector(&format!("{name}.bias"), width)?])
    }

    /// A matrix whose rows the host reads.
    fn host_matrix(&mut self, name: &str, rows: usize) -> Result<usize> {
        let weight = Weight::new(self.file, name, rows, self.config.width)?;
        let matrix = self.weights.push_matrix(weight).0;
        self.weights.on_host.push(matrix);
        Ok(matrix)
    }
}
