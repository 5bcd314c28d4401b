//! The vocabularies of tiny models.

use relampago::llm::GgufWriter;

/// The characters of byte-level vocabularies, in the order of the bytes.
fn byte_tokens() -> Vec<String> {
    let printable = |byte: u32| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let mut next = 0x100;
    let characters = (0..256).map(|byte| {
        if printable(byte) {
            return char::from_u32(byte).unwrap();
        }
        next += 1;
        char::from_u32(next - 1).unwrap()
    });
    characters.map(String::from).collect()
}

/// Writes a vocabulary of bytes, two merges and two control tokens; returns the number of tokens.
pub(crate) fn write_byte_pairs(writer: &mut GgufWriter) -> usize {
    write_bytes_and(writer, &[])
}

/// The tokens around calls and reasoning with their types: those of Mistral, LFM2 and Llama are control tokens, the others
/// tokens of text.
pub(crate) const CALLS: [(&str, i32); 9] = [
    ("[TOOL_CALLS]", 3),
    ("[ARGS]", 3),
    ("<|tool_call_start|>", 3),
    ("<|tool_call_end|>", 3),
    ("<|python_tag|>", 3),
    ("<tool_call>", 4),
    ("</tool_call>", 4),
    ("<think>", 4),
    ("</think>", 4),
];

/// Writes the vocabulary of [`write_byte_pairs`] with the tokens around calls and reasoning after it.
pub(crate) fn write_calls(writer: &mut GgufWriter) -> usize {
    write_bytes_and(writer, &CALLS)
}

fn write_bytes_and(writer: &mut GgufWriter, more: &[(&str, i32)]) -> usize {
    let mut tokens = byte_tokens();
    tokens.extend(["he", "hel", "<|im_start|>", "<|im_end|>"].map(String::from));
    let types = (0..tokens.len()).map(|id| if id < 258 { 1 } else { 3 });
    let types: Vec<i32> = types.chain(more.iter().map(|(_, kind)| *kind)).collect();
    tokens.extend(more.iter().map(|(text, _)| (*text).to_owned()));
    writer.string("tokenizer.ggml.model", "gpt2");
    writer.string("tokenizer.ggml.pre", "smollm");
    writer.strings("tokenizer.ggml.tokens", &tokens);
    writer.integers("tokenizer.ggml.token_type", &types);
    writer.strings(
        "tokenizer.ggml.merges",
        &["h e".to_owned(), "he l".to_owned()],
    );
    writer.unsigned("tokenizer.ggml.eos_token_id", 259);
    writer.string(
        "tokenizer.chat_template",
        "{% for m in messages %}\n<|im_start|>{{ m.role }}:{{ m['content'] }}<|im_end|>{% endfor %}",
    );
    tokens.len()
}

/// Characters of the classes that pre-tokenizers tell apart: letters of all cases, marks, numbers, punctuation, symbols,
/// and white space, of which JavaScript's `\s` has U+FEFF and lacks U+0085.
pub(crate) const CHARACTERS: &[char] = &[
    'a', 'S', 'é', 'ß', 'Ж', 'ǅ', 'ʰ', '漢', '\u{301}', 'ा', '1', '²', '٣', 'Ⅷ', '.', '$', '`',
    '/', '\'', '😀', ' ', '\t', '\n', '\r', '\u{85}', '\u{a0}', '\u{3000}', '\u{feff}', '\u{200b}',
];

/// Writes a vocabulary of bytes, [`CHARACTERS`] and pairs of them, each of which is a merge: where a text is split shows
/// in its tokens. Returns the number of tokens.
pub(crate) fn write_words(writer: &mut GgufWriter, pretokenizer: &str) -> usize {
    let mut tokens = byte_tokens();
    let bytes = tokens.clone();
    let (mut characters, mut merges) = (Vec::new(), Vec::new());
    let mut merge = |tokens: &mut Vec<String>, a: &str, b: &str| {
        let merged = format!("{a}{b}");
        if !tokens.contains(&merged) {
            merges.push(format!("{a} {b}"));
            tokens.push(merged.clone());
        }
        merged
    };
    for character in CHARACTERS {
        let mut utf8 = [0; 4];
        let parts = character.encode_utf8(&mut utf8).bytes();
        let parts = parts.map(|byte| bytes[usize::from(byte)].clone());
        let whole = parts.reduce(|a, b| merge(&mut tokens, &a, &b));
        characters.extend(whole);
    }
    for a in &characters {
        for b in &characters {
            merge(&mut tokens, a, b);
        }
    }
    writer.string("tokenizer.ggml.model", "gpt2");
    writer.string("tokenizer.ggml.pre", pretokenizer);
    writer.strings("tokenizer.ggml.tokens", &tokens);
    writer.strings("tokenizer.ggml.merges", &merges);
    tokens.len()
}

/// Writes a vocabulary of `SentencePiece` like Gemma's, which begins texts with a token, as its
/// template does; returns the number of tokens.
pub(crate) fn write_pieces(writer: &mut GgufWriter) -> usize {
    let control = [
        "<pad>",
        "<eos>",
        "<bos>",
        "<start_of_turn>",
        "<end_of_turn>",
    ];
    let mut tokens: Vec<(String, i32, i32)> = control.map(|text| (text.to_owned(), 0, 3)).into();
    tokens.push(("<unk>".to_owned(), 0, 2));
    tokens.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 0, 6)));
    tokens.extend(["\n\n", "\n"].map(|text| (text.to_owned(), 0, 4)));
    let pieces = [
        "▁", "h", "e", "l", "o", "s", "<", ">", "▁he", "ll", "he", "lo", "hell", "lla",
    ];
    let scored = pieces.iter().zip(1..);
    tokens.extend(scored.map(|(text, rank)| ((*text).to_owned(), -rank, 1)));
    let column = |value: fn(&(String, i32, i32)) -> i32| tokens.iter().map(value).collect();
    let (scores, types): (Vec<i32>, Vec<i32>) = (column(|token| token.1), column(|token| token.2));
    let texts: Vec<String> = tokens.iter().map(|token| token.0.clone()).collect();
    writer.string("tokenizer.ggml.model", "llama");
    writer.strings("tokenizer.ggml.tokens", &texts);
    writer.integers("tokenizer.ggml.scores", &scores);
    writer.integers("tokenizer.ggml.token_type", &types);
    writer.unsigned("tokenizer.ggml.bos_token_id", 2);
    writer.unsigned("tokenizer.ggml.eos_token_id", 1);
    writer.unsigned("tokenizer.ggml.unknown_token_id", 5);
    writer.string(
        "tokenizer.chat_template",
        concat!(
            "{{ bos_token }}{% for m in messages %}<start_of_turn>{{ m.role }}\n",
            "{{ m['content'] | trim }}<end_of_turn>\n{% endfor %}"
        ),
    );
    tokens.len()
}
