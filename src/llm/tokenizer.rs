//! Converts text to tokens and back, with the vocabulary of a GGUF file.

mod added;
mod bpe;
mod byte_level;
mod chain;
mod charsmap;
mod decode;
mod sentencepiece;
mod split;
mod unigram;
mod vocabulary;
mod wordpiece;

use super::Value;
use super::gguf::{Gguf, misfit};
use crate::error::Result;
use added::{AddedTokens, Fragment};
use byte_level::ByteLevel;
pub(super) use decode::Utf8Stream;
use sentencepiece::SentencePiece;
use std::ops::Range;
use unigram::Unigram;
use vocabulary::{TokenKind, Vocabulary};
use wordpiece::WordPiece;

/// The tokenizer of a file.
#[derive(Debug)]
pub(super) struct Tokenizer {
    vocabulary: Vocabulary,
    added: AddedTokens,
    algorithm: Algorithm,
    bos: Option<u32>,
    eos: Option<u32>,
    /// Whether every text begins with `bos`.
    adds_bos: bool,
    /// Whether a text that is whole ends with `eos`.
    adds_eos: bool,
}

#[derive(Debug)]
enum Algorithm {
    ByteLevel(ByteLevel),
    SentencePiece(SentencePiece),
    WordPiece(WordPiece),
    Unigram(Unigram),
}

impl Tokenizer {
    /// Reads the tokenizer of a file.
    pub(super) fn new(file: &Gguf) -> Result<Self> {
        const KEY: &str = "tokenizer.ggml.model";
        let vocabulary = Vocabulary::new(file)?;
        let valid = |id: &u32| (*id as usize) < vocabulary.len();
        let special =
            |name: &str| -> Result<Option<u32>> { Ok(token_id(file, name)?.filter(valid)) };
        // SentencePiece has its special tokens at fixed places if the file does not name them.
        let fixed = |name: &str, id: u32| -> Result<Option<u32>> {
            Ok(special(name)?.or(Some(id).filter(valid)))
        };
        let (algorithm, bos, eos) = match file.text(KEY)? {
            Some("gpt2") => {
                let algorithm = Algorithm::ByteLevel(ByteLevel::new(file, &vocabulary)?);
                (algorithm, special("bos")?, special("eos")?)
            }
            Some("llama") => {
                let unknown = fixed("unknown", 0)?;
                let pieces = SentencePiece::new(file, &vocabulary, unknown)?;
                let algorithm = Algorithm::SentencePiece(pieces);
                (algorithm, fixed("bos", 1)?, fixed("eos", 2)?)
            }
            Some("bert") => {
                let algorithm =
                    Algorithm::WordPiece(WordPiece::new(&vocabulary, special("unknown")?)?);
                // Texts stand between the tokens `[CLS]` and `[SEP]`, for whose key llama.cpp has this spelling.
                let cls = special("cls")?.or(special("bos")?);
                let end = special("seperator")?.or(special("eos")?);
                (algorithm, cls, end)
            }
            Some("t5") => {
                let unigram = Unigram::new(file, &vocabulary, special("unknown")?)?;
                (
                    Algorithm::Unigram(unigram),
                    special("bos")?,
                    special("eos")?,
                )
            }
            _ => {
                let requirement = "`gpt2`, `llama`, `bert` or `t5`";
                return Err(misfit(KEY, file.get(KEY), requirement));
            }
        };
        let adds_bos = file.truth("tokenizer.ggml.add_bos_token")?;
        let adds_eos = file.truth("tokenizer.ggml.add_eos_token")?;
        let adds_sep = file.truth("tokenizer.ggml.add_sep_token")?;
        let adds_end = adds_eos.or(adds_sep);
        Ok(Self {
            adds_eos: adds_end.unwrap_or(algorithm.adds_eos()),
            adds_bos: adds_bos.unwrap_or(algorithm.adds_bos()),
            added: AddedTokens::new(&vocabulary, strips(file)),
            algorithm,
            bos,
            eos,
            vocabulary,
        })
    }

    /// The number of tokens.
    pub(super) fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// Whether the vocabulary has a token.
    pub(super) fn has(&self, token: u32) -> bool {
        (token as usize) < self.len()
    }

    /// The token that every text begins with, if the file asks for one.
    pub(super) fn begin(&self) -> Option<u32> {
        self.bos.filter(|_| self.adds_bos)
    }

    /// The token that a text that is whole ends with, if the file asks for one.
    pub(super) fn end(&self) -> Option<u32> {
        self.eos.filter(|_| self.adds_eos)
    }

    /// The number of ending tokens between two texts that are read as a pair.
    pub(super) fn ends_between(&self) -> usize {
        match self.algorithm {
            Algorithm::WordPiece(_) => 1,
            // As XLM-RoBERTa was trained.
            Algorithm::ByteLevel(_) | Algorithm::SentencePiece(_) | Algorithm::Unigram(_) => 2,
        }
    }

    /// The token that begins texts.
    pub(super) fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// The token that ends texts.
    pub(super) fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// The token of this text, special ones included.
    pub(super) fn id(&self, text: &str) -> Option<u32> {
        self.vocabulary.id(text.as_bytes())
    }

    /// The tokens of a text. Control tokens are recognised in it only if `special` is true.
    pub(super) fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>> {
        self.encode_parts([(text, special)].into_iter())
    }

    /// The tokens of a text in parts, which may be merged across their borders. Control tokens are
    /// recognised within the parts that are marked as special.
    pub(super) fn encode_parts<'a>(
        &self,
        parts: impl Iterator<Item = (&'a str, bool)>,
    ) -> Result<Vec<u32>> {
        let (mut text, mut template) = (String::new(), Vec::<Range<usize>>::new());
        for (part, special) in parts {
            let start = text.len();
            text.push_str(part);
            match template.last_mut() {
                _ if !special || part.is_empty() => {}
                // A control token may lie across parts.
                Some(last) if last.end == start => last.end = text.len(),
                _ => template.push(start..text.len()),
            }
        }
        self.encode_ranges(&text, &template)
    }

    fn encode_ranges(&self, text: &str, template: &[Range<usize>]) -> Result<Vec<u32>> {
        let (mut tokens, mut first) = (Vec::new(), true);
        for fragment in self.added.split(&self.vocabulary, text, template) {
            match fragment {
                Fragment::Token(id) => tokens.push(id),
                Fragment::Text(text) => {
                    self.algorithm
                        .encode(&self.vocabulary, text, first, &mut tokens)?;
                }
            }
            first = matches!(fragment, Fragment::Token(_));
        }
        Ok(tokens)
    }

    /// Appends the bytes of a token; those of control tokens only if `special` is true.
    pub(super) fn decode(&self, token: u32, special: bool, to: &mut Vec<u8>) {
        let text = self.vocabulary.text(token);
        match self.vocabulary.kind(token) {
            TokenKind::Normal => self.algorithm.decode(text, to),
            TokenKind::Byte => to.extend(byte(text)),
            TokenKind::UserDefined => to.extend_from_slice(text),
            TokenKind::Control | TokenKind::Unknown if special => to.extend_from_slice(text),
            TokenKind::Control | TokenKind::Unknown | TokenKind::Unused => {}
        }
    }

    /// The bytes of a whole text's tokens, without a space that encoding put before the text.
    pub(super) fn decode_all(&self, tokens: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (index, &token) in tokens.iter().enumerate() {
            self.decode(token, true, &mut bytes);
            if index == 0 && self.algorithm.adds_space() && bytes.starts_with(b" ") {
                bytes.remove(0);
            }
        }
        bytes
    }
}

impl Algorithm {
    /// Whether texts begin with a token if the file does not say so.
    fn adds_bos(&self) -> bool {
        match self {
            Self::ByteLevel(algorithm) => algorithm.adds_bos(),
            Self::SentencePiece(_) | Self::WordPiece(_) => true,
            Self::Unigram(_) => false,
        }
    }

    /// Whether whole texts end with a token if the file does not say so.
    fn adds_eos(&self) -> bool {
        match self {
            Self::ByteLevel(_) | Self::SentencePiece(_) => false,
            Self::WordPiece(_) | Self::Unigram(_) => true,
        }
    }

    /// Whether a space is put before a text.
    fn adds_space(&self) -> bool {
        match self {
            Self::ByteLevel(_) => false,
            Self::SentencePiece(algorithm) => algorithm.adds_space(),
            Self::WordPiece(_) => true,
            Self::Unigram(algorithm) => algorithm.adds_space(),
        }
    }

    /// Appends the tokens of a text, which follows a special token or nothing if `first` is true.
    fn encode(
        &self,
        vocabulary: &Vocabulary,
        text: &str,
        first: bool,
        to: &mut Vec<u32>,
    ) -> Result<()> {
        match self {
            Self::ByteLevel(algorithm) => return algorithm.encode(vocabulary, text, to),
            Self::WordPiece(algorithm) => return algorithm.encode(vocabulary, text, to),
            Self::Unigram(algorithm) => algorithm.encode(vocabulary, text, to),
            Self::SentencePiece(algorithm) => algorithm.encode(vocabulary, text, first, to),
        }
        Ok(())
    }

    /// Appends the bytes that a normal token stands for.
    fn decode(&self, text: &[u8], to: &mut Vec<u8>) {
        match self {
            Self::ByteLevel(_) => byte_level::decode(text, to),
            // Words of all these begin with the character for a space.
            Self::SentencePiece(_) | Self::WordPiece(_) | Self::Unigram(_) => {
                sentencepiece::decode(text, to);
            }
        }
    }
}

/// Returns the id that a file's metadata gives for a special token, such as `bos`; `None` for a number that no token has.
///
/// # Errors
/// `InvalidModel` for a value that is not an integer.
pub(super) fn token_id(file: &Gguf, name: &str) -> Result<Option<u32>> {
    let key = format!("tokenizer.ggml.{name}_token_id");
    let id = file.typed(&key, as_integer, "the integer of a token")?;
    Ok(id.and_then(|id| u32::try_from(id).ok()))
}

fn as_integer(value: Value<'_>) -> Option<i128> {
    match value {
        Value::Unsigned(value) => Some(value.into()),
        Value::Signed(value) => Some(value.into()),
        _ => None,
    }
}

/// The byte of a token such as `<0x0A>`.
fn byte(text: &[u8]) -> Option<u8> {
    let digits = text.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Says by its text whether an added token takes the white space after it. Files do not say so;
/// nearly all of the added tokens of Phi 3 do.
fn strips(file: &Gguf) -> impl Fn(&str) -> bool {
    let name = file.get("general.name").and_then(Value::as_str);
    let name = name.unwrap_or_default().to_lowercase();
    let phi3 = name.contains("phi-3") || name.contains("phi3");
    move |token| phi3 && !matches!(token, "<unk>" | "<s>" | "<|endoftext|>")
}
