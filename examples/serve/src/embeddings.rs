//! `/v1/embeddings`.

use crate::engine::Vectors;
use crate::error::ApiError;
use relampago::llm::EmbedOptions;
use serde::Deserialize;
use serde_json::{Value, json};

/// A request.
#[derive(Debug, Deserialize)]
pub(crate) struct EmbeddingsBody {
    pub(crate) model: Option<String>,
    input: Input,
    encoding_format: Option<String>,
    dimensions: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Input {
    One(String),
    Several(Vec<String>),
}

impl EmbeddingsBody {
    /// The texts to embed.
    pub(crate) fn texts(&self) -> Result<Vec<String>, ApiError> {
        let texts = match &self.input {
            Input::One(text) => vec![text.clone()],
            Input::Several(texts) => texts.clone(),
        };
        if texts.is_empty() {
            return Err(ApiError::invalid(
                "input",
                "`input` must have at least one text",
            ));
        }
        Ok(texts)
    }

    pub(crate) fn options(&self) -> EmbedOptions {
        let mut options = EmbedOptions::default();
        options.dimensions = self.dimensions;
        options
    }

    /// Whether vectors are written as base64 of their bytes, which is the default of `OpenAI`'s clients.
    pub(crate) fn is_base64(&self) -> Result<bool, ApiError> {
        match self.encoding_format.as_deref() {
            None | Some("float") => Ok(false),
            Some("base64") => Ok(true),
            Some(_) => Err(ApiError::invalid(
                "encoding_format",
                "`encoding_format` must be `float` or `base64`",
            )),
        }
    }
}

/// The answer to a request.
pub(crate) fn answer(name: &str, (vectors, tokens): &Vectors, is_base64: bool) -> Value {
    let data = vectors.iter().enumerate().map(|(index, vector)| {
        let embedding = if is_base64 {
            let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
            base64(&bytes).into()
        } else {
            json!(vector)
        };
        json!({ "object": "embedding", "index": index, "embedding": embedding })
    });
    json!({
        "object": "list",
        "model": name,
        "data": data.collect::<Vec<_>>(),
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
    })
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            if digit > chunk.len() {
                text.push('=');
            } else {
                text.push(char::from(DIGITS[(bits >> (18 - 6 * digit)) as usize % 64]));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(super::base64(bytes.as_bytes()), text);
        }
        assert_eq!(super::base64(&[0xff, 0xfb, 0xf0]), "//vw");
    }
}
