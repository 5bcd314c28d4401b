//! Splitting of text into words, which merging never crosses.

#[cfg_attr(target_arch = "wasm32", path = "split/browser.rs")]
#[cfg_attr(not(target_arch = "wasm32"), path = "split/native.rs")]
mod stage;

use crate::error::{Error, Result};
use crate::llm::gguf::invalid;
pub(super) use stage::{Stage, decomposed};

/// Models whose files name one of the same pre-tokenizers.
struct Family {
    names: &'static [&'static str],
    /// Expressions, each applied to the words of the one before.
    stages: &'static [&'static str],
    /// Whether a word that is a token is taken whole, and whether texts begin with a token if the
    /// file does not say so.
    llama3: bool,
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)";

const LLAMA3: &str = concat!(
    r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

const QWEN2: &str = concat!(
    r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|",
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

const QWEN35: &str = concat!(
    r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|",
    r"\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

const TEKKEN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|",
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

const GPT4O: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

const FAMILIES: &[Family] = &[
    Family {
        names: &["default", ""],
        stages: &[r"[\p{P}$+<=>^~|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
        llama3: false,
    },
    Family {
        names: &[
            "gpt-2",
            "phi-2",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "exaone4",
            "mellum",
            "gigachat",
            "a.x-4.0",
            "granite-docling",
        ],
        stages: &[GPT2],
        llama3: false,
    },
    Family {
        names: &[
            "smollm",
            "starcoder",
            "refact",
            "command-r",
            "codeshell",
            "exaone",
            "minerva-7b",
        ],
        stages: &[r"\p{N}", GPT2],
        llama3: false,
    },
    Family {
        names: &["falcon"],
        stages: &[r"[\p{P}$+<=>^~|`]+", GPT2, r"[0-9][0-9][0-9]"],
        llama3: false,
    },
    Family {
        names: &[
            "llama-bpe",
            "llama3",
            "llama-v3",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
        ],
        stages: &[LLAMA3],
        llama3: true,
    },
    Family {
        names: &["dbrx", "smaug-bpe", "chatglm-bpe", "glm4"],
        stages: &[LLAMA3],
        llama3: false,
    },
    Family {
        names: &[
            "qwen2",
            "deepseek-r1-qwen",
            "stablelm2",
            "megrez",
            "hunyuan",
            "solar-open",
            "kormo",
            "f2llmv2",
            "grok-2",
        ],
        stages: &[QWEN2],
        llama3: false,
    },
    Family {
        names: &["qwen35"],
        stages: &[QWEN35],
        llama3: false,
    },
    Family {
        names: &["tekken"],
        stages: &[TEKKEN],
        llama3: true,
    },
    Family {
        names: &["gpt-4o", "llama4", "kanana2"],
        stages: &[GPT4O],
        llama3: false,
    },
];

/// The pre-tokenizer of a file.
#[derive(Debug)]
pub(super) struct Pretokenizer {
    stages: Vec<Stage>,
    llama3: bool,
}

impl Pretokenizer {
    /// The pre-tokenizer of a name in the file.
    pub(super) fn new(name: &str) -> Result<Self> {
        let family = FAMILIES.iter().find(|family| family.names.contains(&name));
        let family = family.ok_or_else(|| {
            let names = FAMILIES.iter().flat_map(|family| family.names);
            let names = names.copied().filter(|name| !name.is_empty());
            let names = names.collect::<Vec<_>>().join(", ");
            let what = format!("the pre-tokenizer `{name}`, but supported are {names}");
            invalid(what, "metadata `tokenizer.ggml.pre`")
        })?;
        let stages = family.stages.iter();
        let stages = stages.map(|stage| Stage::new(stage));
        Ok(Self {
            stages: stages.collect::<Result<_>>()?,
            llama3: family.llama3,
        })
    }

    /// Whether a word that is a token is taken whole, whatever the merges say.
    pub(super) fn takes_whole_words(&self) -> bool {
        self.llama3
    }

    /// Whether texts begin with a token if the file does not say so.
    pub(super) fn adds_bos(&self) -> bool {
        self.llama3
    }

    /// The words of a text, which together are the text.
    pub(super) fn split<'a>(&self, text: &'a str) -> Result<Vec<&'a str>> {
        let mut words = vec![text];
        for stage in &self.stages {
            let mut finer = Vec::new();
            for word in words {
                stage.split(word, &mut finer)?;
            }
            words = finer;
        }
        Ok(words)
    }
}

/// The error of a text that an expression cannot be applied to.
fn fault(reason: String) -> Error {
    Error::invalid("text", reason, "one that the pre-tokenizer can split")
}

#[cfg(test)]
mod tests {
    use super::{FAMILIES, Pretokenizer};

    fn split(name: &str, text: &'static str) -> Vec<&'static str> {
        Pretokenizer::new(name).unwrap().split(text).unwrap()
    }

    #[test]
    fn words_are_those_of_the_families_expressions() {
        let text = "It's  a1234 THEyRe'LL\n\n";
        for (name, words) in [
            (
                "gpt-2",
                vec!["It", "'s", " ", " a", "1234", " THEyRe", "'", "LL", "\n\n"],
            ),
            (
                "smollm",
                vec![
                    "It", "'s", " ", " a", "1", "2", "3", "4", " THEyRe", "'", "LL", "\n\n",
                ],
            ),
            (
                "llama-bpe",
                vec!["It", "'s", " ", " a", "123", "4", " THEyRe", "'LL", "\n\n"],
            ),
            (
                "qwen2",
                vec![
                    "It", "'s", " ", " a", "1", "2", "3", "4", " THEyRe", "'LL", "\n\n",
                ],
            ),
            (
                "tekken",
                vec![
                    "It", "'s", " ", " a", "1", "2", "3", "4", " THEy", "Re", "'LL", "\n\n",
                ],
            ),
            (
                "gpt-4o",
                vec!["It's", " ", " a", "123", "4", " THEy", "Re'LL", "\n\n"],
            ),
        ] {
            assert_eq!(split(name, text), words, "{name}");
        }
    }

    #[test]
    fn letters_of_all_scripts_have_cases() {
        assert_eq!(
            split("tekken", "приветМир ПРИВЕТ"),
            ["привет", "Мир", " ПРИВЕТ"]
        );
        assert_eq!(
            split("llama-bpe", "приветМир ПРИВЕТ"),
            ["приветМир", " ПРИВЕТ"]
        );
        assert_eq!(split("gpt-4o", "a//\n\n b"), ["a", "//\n\n", " b"]);
    }

    #[test]
    fn names_are_unique_and_unknown_ones_are_listed() {
        let names: Vec<&str> = FAMILIES.iter().flat_map(|f| f.names).copied().collect();
        let unique: std::collections::HashSet<&str> = names.iter().copied().collect();
        assert_eq!(unique.len(), names.len());
        for name in names {
            Pretokenizer::new(name).unwrap();
        }
        let message = Pretokenizer::new("other").unwrap_err().to_string();
        assert!(
            message.contains("`other`") && message.contains("llama-bpe"),
            "{message}"
        );
    }
}
