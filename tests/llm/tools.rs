//! Calls of functions and reasoning, of models that would say anything.

use super::random_models::{LLAMA, random_model};
use super::templates::replaced_template;
use super::{is_exhaustive, model_file, vocabulary};
use relampago::llm::{
    Delta, FinishReason, GenerateOptions, LanguageModel, LoadOptions, Message, Sampling, Session,
    Tool, ToolChoice, ToolFormat,
};
use serde_json::Value;

macro_rules! template {
    ($name:literal) => {
        include_str!(concat!("../data/templates/", $name, ".jinja"))
    };
}

/// The newer templates of Mistral.
const MISTRAL_ARGS: &str = "{% if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}\
    {% for m in messages %}{% if m.role == 'assistant' %}{% for call in m.tool_calls or [] %}\
    [TOOL_CALLS]{{ call.function.name }}[ARGS]{{ call.function.arguments | tojson }}{% endfor %}\
    {{ m.content }}{{ eos_token }}{% elif m.role == 'tool' %}[TOOL_RESULTS]{{ m.content }}[/TOOL_RESULTS]\
    {% else %}[INST]{{ m.content }}[/INST]{% endif %}{% endfor %}";

/// Templates of families, with a token that opens their calls.
const FAMILIES: [(&str, &str, &str); 10] = [
    ("Hermes", template!("hermes"), "<tool_call>"),
    ("Qwen 2.5", template!("qwen2.5"), "<tool_call>"),
    ("Qwen 3", template!("qwen3"), "<tool_call>"),
    ("SmolLM3", template!("smollm3"), "<tool_call>"),
    ("Llama 3", template!("llama3.1"), "<|python_tag|>"),
    ("Mistral", template!("mistral-nemo"), "[TOOL_CALLS]"),
    ("Mistral with [ARGS]", MISTRAL_ARGS, "[TOOL_CALLS]"),
    ("LFM2", template!("lfm2"), "<|tool_call_start|>"),
    ("ChatML", template!("chatml"), "<tool_call>"),
    ("Gemma 3", template!("gemma3"), "<tool_call>"),
];

/// A tiny random model with a template.
fn model(template: &str, seed: u64) -> LanguageModel {
    let shape = LLAMA.with_context(4096).with_calls();
    let (file, _) = random_model(shape, seed);
    let options = LoadOptions::default().with_context_length(4096);
    LanguageModel::from_bytes(replaced_template(&file, template), options).unwrap()
}

/// The seeds of conversations for each family.
fn seeds() -> std::ops::Range<u64> {
    0..if is_exhaustive() { 200 } else { 12 }
}

/// The token of a text, after the 260 tokens that all vocabularies of bytes have.
fn token(text: &str) -> u32 {
    let found = vocabulary::CALLS
        .iter()
        .position(|(other, _)| *other == text);
    260 + found.unwrap() as u32
}

const WEATHER: &str = r#"{
    "type": "object",
    "properties": {
        "city": { "type": "string", "maxLength": 8 },
        "days": { "type": "integer", "minimum": 0, "maximum": 9 },
        "unit": { "enum": ["°C", "\"F\"", null, true] }
    },
    "required": ["city", "days"]
}"#;

const PLACE: &str = r##"{
    "type": "object",
    "properties": {
        "at": { "$ref": "#/$defs/point" },
        "tags": { "type": "array", "maxItems": 2, "items": { "enum": ["a,b)", "[c", "}"] } }
    },
    "$defs": { "point": { "type": "array", "minItems": 2, "maxItems": 2, "items": { "type": "boolean" } } },
    "required": ["at"]
}"##;

fn tools() -> Vec<Tool> {
    vec![
        Tool::new("weather", "The weather of some days.", WEATHER),
        Tool::new("set-place.v2", "Sets a place.", PLACE),
        Tool::new("now", "", r#"{ "type": "object", "properties": {} }"#),
    ]
}

fn options(seed: u64) -> GenerateOptions {
    let sampling = Sampling::default()
        .with_temperature(1.5)
        .with_seed(seed)
        .with_logit_bias([(token("<think>"), f32::NEG_INFINITY)]);
    GenerateOptions::default()
        .with_max_tokens(400)
        .with_sampling(sampling)
        .with_tools(tools())
        .with_chat_template_kwargs(r#"{ "enable_thinking": false }"#)
}

/// Checks the arguments of a function by its schema.
fn check(name: &str, arguments: &str) {
    let value: Value =
        serde_json::from_str(arguments).unwrap_or_else(|e| panic!("{arguments}: {e}"));
    let object = value.as_object().unwrap();
    match name {
        "weather" => {
            assert!(
                object["city"].as_str().unwrap().chars().count() <= 8,
                "{arguments}"
            );
            assert!(object["days"].as_u64().unwrap() <= 9, "{arguments}");
            let unit = object.get("unit").is_none_or(|unit| {
                [Value::Null, "°C".into(), "\"F\"".into(), true.into()].contains(unit)
            });
            assert!(
                unit && object
                    .keys()
                    .all(|key| ["city", "days", "unit"].contains(&key.as_str()))
            );
        }
        "set-place.v2" => {
            let at = object["at"].as_array().unwrap();
            assert!(
                at.len() == 2 && at.iter().all(Value::is_boolean),
                "{arguments}"
            );
            let tags = object
                .get("tags")
                .map_or(&[][..], |tags| tags.as_array().unwrap());
            assert!(
                tags.len() <= 2
                    && tags
                        .iter()
                        .all(|tag| ["a,b)", "[c", "}"].contains(&tag.as_str().unwrap()))
            );
        }
        "now" => assert!(object.is_empty(), "{arguments}"),
        other => panic!("{other} is no function"),
    }
}

/// Generates an answer; checks that its pieces make the message, and that its calls fit their schemas.
fn answer(
    session: &mut Session,
    messages: &[Message],
    options: GenerateOptions,
) -> (Message, FinishReason) {
    let mut generation = session.chat(messages, options).unwrap();
    let mut joined = Message::assistant("");
    while let Some(delta) = pollster::block_on(generation.next_delta_async()) {
        let delta = delta.unwrap();
        if let Delta::ToolCall { index, .. } = &delta {
            assert_eq!(*index, joined.tool_calls.len());
        }
        joined.push(&delta);
    }
    let reason = generation.finish_reason().unwrap();
    assert_eq!(generation.message(), &joined);
    let calls = joined.tool_calls.len();
    for (index, call) in joined.tool_calls.iter().enumerate() {
        if reason == FinishReason::ToolCalls || index + 1 < calls {
            check(&call.name, &call.arguments);
        }
        assert!(call.id.len() == 9 && call.id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let mut before = joined.tool_calls[..index].iter();
        assert!(before.all(|other| other.id != call.id));
    }
    (joined, reason)
}

#[test]
fn calls_that_are_required_fit_their_schemas() {
    for (name, template, _) in FAMILIES {
        let mut session = model(template, 1).session().unwrap();
        let (mut whole, mut several) = (0, 0);
        for seed in seeds() {
            let mut options = options(seed).with_tool_choice(ToolChoice::Required);
            if seed % 4 == 3 {
                options.tool_choice = ToolChoice::Named("weather".to_owned());
            }
            let (message, reason) =
                answer(&mut session, &[Message::user("hello")], options.clone());
            assert_eq!(message.content, "", "{name}: {message:?}");
            if reason == FinishReason::Length && !message.reasoning_content.is_empty() {
                // It thinks in spite of its template, and still does.
                continue;
            }
            assert!(!message.tool_calls.is_empty(), "{name}: {message:?}");
            if let ToolChoice::Named(named) = &options.tool_choice {
                assert_eq!(
                    (message.tool_calls.len(), &message.tool_calls[0].name),
                    (1, named)
                );
            }
            whole += usize::from(reason == FinishReason::ToolCalls);
            several += usize::from(message.tool_calls.len() > 1);
        }
        let all = seeds().end as usize;
        println!("{name}: {whole} of {all} answers are complete, {several} have several calls");
        assert!(2 * whole >= all, "{name}: {whole}");
        assert_eq!(several > 0, name != "Llama 3", "{name}");
    }
}

#[test]
fn calls_that_a_model_begins_fit_their_schemas() {
    for (name, template, open) in FAMILIES {
        let mut session = model(template, 2).session().unwrap();
        let (mut calls, mut texts) = (0, 0);
        for seed in seeds() {
            let mut options = options(seed).with_max_tokens(250);
            let bias = &mut options.sampling.logit_bias;
            // A Llama may only begin with a call.
            let likely = if name == "Llama 3" { 12.0 } else { 6.0 };
            bias.push((token(open), if seed % 2 == 0 { likely } else { 3.0 }));
            bias.push((259, 2.0));
            options.parallel_tool_calls = seed % 3 != 0;
            let (message, _) = answer(&mut session, &[Message::user("hello")], options);
            assert!(seed % 3 != 0 || message.tool_calls.len() <= 1, "{name}");
            calls += usize::from(!message.tool_calls.is_empty());
            texts += usize::from(!message.content.is_empty());
        }
        let all = seeds().end as usize;
        println!("{name}: {calls} of {all} answers have calls, {texts} have text");
        assert!(6 * calls >= all, "{name}: {calls}");
        assert!(texts >= 1, "{name}: {texts}");
    }
}

#[test]
fn answers_without_calls_fit_a_schema_beside_functions() {
    for (name, template, open) in [FAMILIES[0], FAMILIES[2], FAMILIES[5], FAMILIES[7]] {
        let mut session = model(template, 6).session().unwrap();
        let (mut calls, mut values) = (0, 0);
        for seed in 0..12 {
            let mut options = options(seed).with_json_schema(r#"{ "enum": [12, 34] }"#);
            let bias = &mut options.sampling.logit_bias;
            bias.push((token(open), if seed % 2 == 0 { 9.0 } else { -9.0 }));
            let (message, _) = answer(&mut session, &[Message::user("hello")], options);
            calls += usize::from(!message.tool_calls.is_empty());
            if message.tool_calls.is_empty() && message.reasoning_content.is_empty() {
                values += 1;
                assert!(
                    ["12", "34"].contains(&message.content.trim()),
                    "{name}: {message:?}"
                );
            }
        }
        assert!(
            calls > 0 && values > 0,
            "{name}: {calls} calls, {values} values"
        );
    }
}

/// `SmolLM2` has a template without functions, which come into the first message.
#[test]
fn calls_that_smollm2_writes_fit_their_schemas() {
    let path = is_exhaustive().then(|| model_file("smollm2-135m.gguf"));
    let Some(path) = path.flatten() else {
        return;
    };
    let model = LanguageModel::load(path, LoadOptions::default()).unwrap();
    let mut session = model.session().unwrap();
    let question = [Message::user(
        "What will the weather be in Paris in the next two days?",
    )];
    let (mut whole, mut free) = (0, 0);
    for seed in 0..40 {
        let mut options = options(seed).with_max_tokens(150);
        options.sampling.logit_bias.clear();
        options.sampling.temperature = 0.8;
        options.parallel_tool_calls = false;
        if seed % 2 == 0 {
            options.tool_choice = ToolChoice::Required;
        }
        let (message, reason) = answer(&mut session, &question, options);
        let has_calls = !message.tool_calls.is_empty();
        whole += usize::from(seed % 2 == 0 && reason == FinishReason::ToolCalls);
        free += usize::from(seed % 2 == 1 && has_calls);
        assert!(has_calls || seed % 2 == 1, "{message:?}");
    }
    println!(
        "SmolLM2: {whole} of 20 calls that are required are complete, {free} of 20 others call"
    );
    assert!(whole >= 16, "{whole}");
}

#[test]
fn conversations_with_results_of_calls_are_rendered_by_every_family() {
    for (name, template, open) in FAMILIES {
        let model = model(template, 3);
        let required = options(5).with_tool_choice(ToolChoice::Named("weather".to_owned()));
        let (call, _) = answer(
            &mut model.session().unwrap(),
            &[Message::user("hello")],
            required,
        );
        let id = call.tool_calls[0].id.clone();
        let mut messages = vec![Message::user("hello"), call.clone()];
        messages.push(Message::tool_result(&id, "It rains."));
        messages.push(Message::assistant("Rain."));
        messages.push(Message::user("And now?"));
        let text = model.render_with(&messages, &options(0)).unwrap();
        for part in ["weather", "It rains.", "Rain.", "And now?", "days"] {
            assert!(text.contains(part), "{name}: `{part}` is not in {text}");
        }
        if name != "Llama 3" {
            assert!(text.contains(open), "{name}: {text}");
        }
        // The calls of earlier answers need no functions in a later request.
        let later = model.render(&messages).unwrap();
        assert!(later.contains("It rains."), "{name}: {later}");
        // The beginning of the conversation keeps its tokens.
        let options = options(0);
        let before = model.conversation_with(&messages[..1], &options).unwrap();
        assert!(!before.is_empty());
    }
}

#[test]
fn reasoning_is_apart_from_the_answer() {
    let mut session = model(template!("qwen3"), 4).session().unwrap();
    let question = [Message::user("hello")];
    for (bias, has_tools) in [(9.0, false), (9.0, true), (-9.0, false)] {
        let mut reasoned = 0;
        for seed in 0..10 {
            let mut options = options(seed).with_chat_template_kwargs("{}");
            if !has_tools {
                options.tools.clear();
            }
            let biases = [
                (token("<think>"), bias),
                (token("</think>"), 5.0),
                (259, 1.0),
            ];
            options.sampling.logit_bias = biases.into();
            let (message, _) = answer(&mut session, &question, options);
            reasoned += usize::from(!message.reasoning_content.is_empty());
            let reasoning = &message.reasoning_content;
            assert_eq!(reasoning.trim(), reasoning);
            assert!(!reasoning.contains("</think>"), "{message:?}");
        }
        assert!(
            if bias > 0.0 {
                reasoned > 3
            } else {
                reasoned < 9
            },
            "{bias}: {reasoned}"
        );
    }
}

#[test]
fn reasoning_that_the_prompt_begins_precedes_calls_and_json() {
    let template = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools }}<tool_call></think>\
        {% if enable_thinking is not defined or enable_thinking %}<think>\n{% endif %}";
    let mut session = model(template, 4).session().unwrap();
    let question = [Message::user("hello")];
    let (mut calls, mut objects) = (0, 0);
    for seed in 0..10 {
        let mut options = options(seed).with_tool_choice(ToolChoice::Required);
        options.chat_template_kwargs = None;
        options.sampling.logit_bias.push((token("</think>"), 4.0));
        let (message, _) = answer(&mut session, &question, options.clone());
        calls +=
            usize::from(!message.tool_calls.is_empty() && !message.reasoning_content.is_empty());
        options.tools.clear();
        options.tool_choice = ToolChoice::Auto;
        options.json_schema = Some(r#"{ "enum": [12, 34] }"#.to_owned());
        let (message, reason) = answer(&mut session, &question, options.clone());
        if reason == FinishReason::Stop {
            assert!(["12", "34"].contains(&&*message.content), "{message:?}");
            objects += usize::from(!message.reasoning_content.is_empty());
        }
        options.chat_template_kwargs = Some(r#"{ "enable_thinking": false }"#.to_owned());
        let (message, _) = answer(&mut session, &question, options);
        assert_eq!(message.reasoning_content, "");
        assert!(["12", "34"].contains(&&*message.content), "{message:?}");
    }
    assert!(calls > 2 && objects > 2, "{calls}, {objects}");
}

#[test]
fn wrong_functions_are_refused() {
    let model = model(template!("hermes"), 1);
    let error = |options: GenerateOptions| {
        let error = model.chat(&[Message::user("hello")], options).unwrap_err();
        assert_eq!(error.code(), "INVALID_ARGUMENT", "{error}");
        error.to_string()
    };
    let with = |name: &str, parameters: &str| {
        GenerateOptions::default().with_tools([Tool::new(name, "", parameters)])
    };
    for (options, part) in [
        (with("", "{}"), "1 to 64 letters"),
        (with("a b", "{}"), "'a b'"),
        (with("a\"}", "{}"), "1 to 64 letters"),
        (with(&"a".repeat(65), "{}"), "1 to 64 letters"),
        (with("a", "{"), "valid JSON"),
        (with("a", r#"{ "type": "string" }"#), "an object"),
        (with("a", r#"{ "propertys": {} }"#), "propertys"),
        (
            with("a", r#"{ "properties": { "x": { "type": "text" } } }"#),
            "text",
        ),
        (
            with("a", "{}").with_tool_choice(ToolChoice::Named("b".to_owned())),
            "a choice among",
        ),
        (
            GenerateOptions::default().with_tool_choice(ToolChoice::Required),
            "a choice among",
        ),
        (
            with("a", "{}").with_tools([Tool::new("a", "", "{}"), Tool::new("a", "", "{}")]),
            "twice",
        ),
        (
            with("a", "{}").with_chat_template_kwargs("[]"),
            "a JSON object",
        ),
        (
            with("a", "{}").with_chat_template_kwargs(r#"{ "messages": 1 }"#),
            "other names",
        ),
    ] {
        let message = error(options.clone());
        assert!(message.contains(part), "{options:?}: {message}");
    }
    let continued = model.complete("hello", with("a", "{}")).unwrap_err();
    assert!(
        continued.to_string().contains("a conversation does"),
        "{continued}"
    );
    let llama = with("a", "{}").with_tool_format(ToolFormat::Llama3);
    let schema = llama.with_json_schema("{}");
    assert!(error(schema).contains("an object like any other"));
    let python = with("a", r#"{ "anyOf": [] }"#).with_tool_format(ToolFormat::Lfm2);
    assert!(error(python).contains("anyOf"));
}

#[test]
fn a_stop_string_within_a_call_is_no_end_of_it() {
    let model = model(template!("hermes"), 1);
    let required = options(1).with_tool_choice(ToolChoice::Named("weather".to_owned()));
    let options = required.with_stop(["\"days\""]);
    let mut session = model.session().unwrap();
    let mut generation = session.chat(&[Message::user("hello")], options).unwrap();
    generation.by_ref().for_each(|text| drop(text.unwrap()));
    assert_eq!(generation.finish_reason(), Some(FinishReason::Stop));
    let arguments = &generation.message().tool_calls[0].arguments;
    assert!(arguments.starts_with("{\"city\": "), "{arguments}");
    assert!(!arguments.contains("days"), "{arguments}");
}

#[test]
fn a_choice_of_no_function_hides_them() {
    let model = model(template!("hermes"), 1);
    let question = [Message::user("hello")];
    let none = options(1).with_tool_choice(ToolChoice::None);
    let plain = none.clone().with_tools([]);
    let text = model.render_with(&question, &none).unwrap();
    assert_eq!(text, model.render_with(&question, &plain).unwrap());
    assert!(!text.contains("weather"));
    assert!(
        answer(&mut model.session().unwrap(), &question, none)
            .0
            .tool_calls
            .is_empty()
    );
}

#[test]
fn whole_answers_are_the_pieces_of_streamed_ones() {
    let model = model(template!("hermes"), 1);
    let question = [Message::user("hello")];
    for seed in 0..4 {
        let mut options = options(seed).with_max_tokens(150);
        options
            .sampling
            .logit_bias
            .push((token("<tool_call>"), 4.0));
        let (message, _) = answer(&mut model.session().unwrap(), &question, options.clone());
        let text = model.chat(&question, options).unwrap().text().unwrap();
        assert_eq!(text, message.content);
    }
}
