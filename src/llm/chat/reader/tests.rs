//! Answers of all formats, in pieces of all lengths.

use super::super::call_format::{CallFormat, Thinking};
use super::AnswerReader;
use crate::llm::chat::Text;
use crate::llm::{Message, ToolCall, ToolFormat};
use serde_json::Value;

const THINK: Thinking = ("<think>", "</think>");

const FORMATS: [ToolFormat; 6] = [
    ToolFormat::Hermes,
    ToolFormat::Llama3,
    ToolFormat::Mistral,
    ToolFormat::MistralArgs,
    ToolFormat::Lfm2,
    ToolFormat::Generic,
];

/// Reads a text in pieces of a number of characters.
fn read(mut reader: AnswerReader, text: &str, len: usize) -> Message {
    let (mut message, characters) = (Message::assistant(""), text.chars());
    let characters: Vec<char> = characters.collect();
    for piece in characters.chunks(len) {
        let piece: String = piece.iter().collect();
        for delta in reader.push(&piece) {
            message.push(&delta);
        }
    }
    for delta in reader.finish() {
        message.push(&delta);
    }
    message
}

fn reader(format: ToolFormat, is_open: bool) -> AnswerReader {
    AnswerReader::new(Some(CallFormat::of(format)), Some(THINK), is_open, 1)
}

#[test]
fn calls_that_a_format_writes_are_read_in_pieces_of_any_length() {
    let calls = [
        (
            "weather",
            r#"{"city": "a\"} ]), {", "days": [1, {"x": null}], "ok": true}"#,
        ),
        ("now", "{}"),
        ("set_place", r#"{"at": -1.5e3, "unit": "°<tool_call>"}"#),
    ];
    let calls = calls.map(|(name, arguments)| ToolCall::new("", name, arguments));
    for format in FORMATS {
        let row = CallFormat::of(format);
        let calls = &calls[..if row.between.is_some() { 3 } else { 1 }];
        let mut text = Text::default();
        row.write(calls, &mut text).unwrap();
        for (before, reasoning, content) in [
            ("", "", ""),
            ("<think>\nx y\n</think>\n\n", "x y", ""),
            ("<think></think>Well,  \n", "", "Well,"),
            (" a <\n", "", " a <"),
        ] {
            if row.open.is_empty() && !content.is_empty() {
                continue;
            }
            let text = format!("{before}{}", text.as_str());
            for len in 1..12 {
                let message = read(reader(format, false), &text, len);
                assert_eq!(message.content, content, "{text}");
                assert_eq!(message.reasoning_content, reasoning, "{text}");
                assert_eq!(message.tool_calls.len(), calls.len(), "{text}");
                for (call, expected) in message.tool_calls.iter().zip(calls) {
                    assert_eq!(call.name, expected.name);
                    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
                    assert_eq!(value(&call.arguments), value(&expected.arguments));
                }
            }
        }
    }
}

#[test]
fn answers_without_calls_are_text_and_reasoning() {
    for (text, is_open, reasoning, content) in [
        ("", false, "", ""),
        ("Hello.\n", false, "", "Hello.\n"),
        ("  <thi", false, "", "  <thi"),
        ("<thing> {\"name\"", false, "", "<thing> {\"name\""),
        ("a\n\nb <tool_cal", false, "", "a\n\nb <tool_cal"),
        ("x </think>\n y", true, "x", "y"),
        ("x <think> y", true, "x <think> y", ""),
        ("<think>x </thin", false, "x </thin", ""),
        ("\n<think>\n\n</think>\n\nyes", false, "", "yes"),
        ("{\"a\": 1}", false, "", "{\"a\": 1}"),
    ] {
        for format in FORMATS {
            for len in 1..9 {
                let message = read(reader(format, is_open), text, len);
                let found = (&*message.reasoning_content, &*message.content);
                assert_eq!(found, (reasoning, content), "{format:?}, {text:?}");
                assert!(message.tool_calls.is_empty());
            }
        }
    }
}
