//! Templates with random mutations: each gives a text or an error.

use super::ChatTemplate;
use super::origins::{Random, templates};
use crate::llm::Message;

/// Texts that mutations insert into templates.
const PIECES: [&str; 40] = [
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "-",
    "+",
    "'",
    "\"",
    "\\",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    "|",
    "~",
    "*",
    "**",
    "//",
    "%",
    " in ",
    " is ",
    " not ",
    " if ",
    " else ",
    ":",
    ",",
    "=",
    "0",
    "9223372036854775807",
    "1e999",
    "é",
    "\u{1f469}",
    "loop.",
    " raw ",
    "namespace(",
];

fn mutated(source: &str, random: &mut Random) -> String {
    let mut characters: Vec<char> = source.chars().collect();
    for _ in 0..=random.below(4) {
        let at = random.below(characters.len() + 1);
        let end = (at + random.below(30)).min(characters.len());
        match random.below(3) {
            0 => drop(characters.drain(at..end)),
            1 => drop(characters.splice(at..at, PIECES[random.below(PIECES.len())].chars())),
            _ => {
                let copy = characters[at..end].to_vec();
                let to = random.below(characters.len() + 1);
                drop(characters.splice(to..to, copy));
            }
        }
    }
    characters.into_iter().collect()
}

#[test]
fn mutated_templates_give_texts_or_errors() {
    let (mut random, mut texts, mut faults) = (Random(8), 0, 0);
    let messages = [
        Message::system("é <|im_end|>"),
        Message::user("'a' {{ b }}"),
        Message::assistant("<think>x</think>\n y"),
        Message::user(""),
    ];
    for (_, source) in templates() {
        for _ in 0..200 {
            let template = mutated(&source, &mut random);
            let text = ChatTemplate::new(&template)
                .and_then(|template| template.render_messages(&messages));
            texts += usize::from(text.is_ok());
            faults += usize::from(text.is_err());
        }
    }
    println!("{texts} texts and {faults} errors of mutated templates");
    assert!(texts > 500 && faults > 500);
}
