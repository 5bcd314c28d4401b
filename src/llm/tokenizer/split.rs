//! Splitting of text into words, which merging never crosses.

use crate::error::{Error, Result};
use crate::llm::gguf::invalid;
use fancy_regex::Regex;

/// GPT-2's words.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)";

/// The expressions of a family, each applied to the words of the one before.
#[derive(Debug)]
pub(super) struct Pretokenizer {
    stages: Vec<Regex>,
}

impl Pretokenizer {
    /// The pre-tokenizer of a name in the file.
    pub(super) fn new(name: &str) -> Result<Self> {
        let stages: &[&str] = match name {
            "smollm" => &[r"\p{N}", GPT2],
            "gpt-2" | "default" | "" => &[GPT2],
            _ => {
                let what =
                    format!("the pre-tokenizer `{name}`, but `smollm` and `gpt-2` are supported");
                return Err(invalid(what, "metadata `tokenizer.ggml.pre`"));
            }
        };
        let stages = stages
            .iter()
            .map(|stage| Regex::new(stage).map_err(|error| fault(&error)));
        Ok(Self {
            stages: stages.collect::<Result<_>>()?,
        })
    }

    /// The words of a text, which together are the text.
    pub(super) fn split<'a>(&self, text: &'a str) -> Result<Vec<&'a str>> {
        let mut words = vec![text];
        for stage in &self.stages {
            let mut finer = Vec::new();
            for word in words {
                split_word(stage, word, &mut finer)?;
            }
            words = finer;
        }
        Ok(words)
    }
}

/// Appends the matches in a word and what lies between them.
fn split_word<'a>(stage: &Regex, word: &'a str, to: &mut Vec<&'a str>) -> Result<()> {
    let mut end = 0;
    for found in stage.find_iter(word) {
        let found = found.map_err(|error| fault(&error))?;
        if found.start() > end {
            to.push(&word[end..found.start()]);
        }
        to.push(found.as_str());
        end = found.end();
    }
    if end < word.len() {
        to.push(&word[end..]);
    }
    Ok(())
}

fn fault(error: &fancy_regex::Error) -> Error {
    Error::invalid(
        "text",
        error.to_string(),
        "one that the pre-tokenizer can split",
    )
}

#[cfg(test)]
mod tests {
    use super::Pretokenizer;

    #[test]
    fn digits_stand_alone_and_spaces_join_the_next_word() {
        let split = Pretokenizer::new("smollm").unwrap();
        let words = split.split("It's  a12 b\n\n").unwrap();
        assert_eq!(words, ["It", "'s", " ", " a", "1", "2", " b", "\n\n"]);
        assert!(Pretokenizer::new("other").is_err());
    }
}
