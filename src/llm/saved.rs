//! Sequences as bytes.

use super::gguf::invalid;
use super::model::KeptPositions;
use super::sequence::Sequence;
use super::{LanguageModel, ScaledLora, fingerprint};
use crate::alloc::try_zeros;
use crate::error::{Error, Result};

/// The first bytes of saved sequences: the format and its version.
const MAGIC: &[u8; 8] = b"RLPGSEQ4";

/// The lengths of six fields: the magic, the fingerprint, the bits of an element, the number of tokens, the first
/// position in layers with a window, and the checksum.
const HEADER: usize = 8 + 8 + 4 + 4 + 4 + 8;

/// The bytes of a tensor's beginning that the fingerprint includes.
pub(super) const SAMPLE: usize = 64;

impl Sequence {
    /// Writes the sequence: the header, the tokens, and then keys and values as little-endian words of the
    /// cache's type.
    pub(crate) async fn save(&self, model: &LanguageModel) -> Result<Vec<u8>> {
        let tokens = self.tokens();
        let kept = self.kept();
        let cache = model.model.export(self.state(), kept).await?;
        let len = HEADER + 4 * (tokens.len() + cache.len());
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(len);
        reserved.map_err(|_| Error::OutOfMemory { bytes: len as u64 })?;
        bytes.extend(MAGIC);
        bytes.extend(fingerprint(model, self.lora()).to_le_bytes());
        bytes.extend(model.model.config.cache_type.bits().to_le_bytes());
        bytes.extend((kept.len as u32).to_le_bytes());
        bytes.extend((kept.oldest as u32).to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(tokens.iter().flat_map(|token| token.to_le_bytes()));
        bytes.extend(cache.iter().flat_map(|value| value.to_le_bytes()));
        let checksum = checksum(&bytes[HEADER..]).to_le_bytes();
        bytes[HEADER - 8..HEADER].copy_from_slice(&checksum);
        Ok(bytes)
    }

    /// Reads a sequence that the same model saved with the same adapters.
    ///
    /// # Errors
    /// `InvalidModel` for other bytes or another model's, `LimitExceeded` if the context has no room for its tokens,
    /// the errors of [`Sequence::set_lora`].
    pub(crate) async fn load(
        model: &LanguageModel,
        bytes: &[u8],
        lora: &[ScaledLora],
    ) -> Result<Self> {
        let fault = |what: &str| Err(invalid(what, "a saved session"));
        if bytes.len() < HEADER || !bytes.starts_with(MAGIC) {
            return fault("it does not begin as a session of this version");
        }
        let mut sequence = Self::new(model)?;
        sequence.set_lora(model, lora)?;
        let (header, rest) = bytes.split_at(HEADER);
        if header[8..16] != fingerprint(model, lora).to_le_bytes() {
            return fault("another model wrote it, or the same one with other adapters");
        }
        let number = |bytes: &[u8]| {
            let bytes = bytes.iter().rev();
            bytes.fold(0, |number, &byte| number << 8 | usize::from(byte))
        };
        let [bits, len, oldest] = [16, 20, 24].map(|at| number(&header[at..at + 4]));
        let (kept, config) = (KeptPositions { len, oldest }, &model.model.config);
        let cache_type = config.cache_type;
        if bits != cache_type.bits() as usize {
            let name = cache_type.name();
            return fault(&format!(
                "its keys and values have {bits} bits, but this model was loaded with a cache of {name}"
            ));
        }
        let (words, more) = rest.as_chunks::<4>();
        let total = config.kept_words(kept).saturating_add(len);
        if total != words.len() || !more.is_empty() {
            return fault("its length is not that of its tokens");
        }
        if header[HEADER - 8..] != checksum(rest).to_le_bytes() {
            return fault("its checksum is not that of its tokens, keys and values");
        }
        let (tokens, cache) = words.split_at(len);
        let tokens: Vec<u32> = tokens
            .iter()
            .map(|&word| u32::from_le_bytes(word))
            .collect();
        model.model.check(0, &tokens)?;
        if !config.has_room(kept) {
            return fault(&format!("it has {len} tokens and keys from {oldest} on"));
        }
        let mut values = try_zeros(cache.len())?;
        let from = cache.iter().map(|&word| f32::from_le_bytes(word));
        values
            .iter_mut()
            .zip(from)
            .for_each(|(to, from)| *to = from);
        sequence.restore(model, tokens, kept, &values).await?;
        Ok(sequence)
    }
}

/// The hash of tokens, keys and values.
fn checksum(rest: &[u8]) -> u64 {
    fingerprint::of_words(rest.as_chunks::<4>().0.iter())
}

/// A hash of the model's file, without most of its weights, and of adapters.
fn fingerprint(model: &LanguageModel, lora: &[ScaledLora]) -> u64 {
    let file = &model.model.file;
    let tensors = file.tensors().iter();
    let header = file.slice(0..file.weights_start());
    let samples = tensors.map(|tensor| file.beginning(tensor, SAMPLE));
    let lora: Vec<[u8; 8]> = lora
        .iter()
        .map(|one| one.fingerprint().to_le_bytes())
        .collect();
    let lora = lora.iter().map(|bytes| &bytes[..]);
    fingerprint::of([header].into_iter().chain(samples).chain(lora))
}
