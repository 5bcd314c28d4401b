//! Chat templates that would fill memory or never end: each gives an error, within bounded memory.

use super::allocations::measured;
use super::load;
use super::transformer::{LLAMA, random_model};
use relampago::InstructionSet;
use relampago::llm::{LanguageModel, Message};

/// The most memory that a template may take for an empty conversation.
const LIMIT: usize = 32 << 20;

/// Returns a model of which the chat template is another one.
fn with_template(template: &str) -> LanguageModel {
    let (file, _) = random_model(LLAMA, 1);
    let key = b"tokenizer.chat_template";
    let place = file.windows(key.len()).position(|part| part == key);
    // After the key and the type of its value come the text's length and the text.
    let length = place.unwrap() + key.len() + 4;
    let number: [u8; 8] = file[length..length + 8].try_into().unwrap();
    let end = length + 8 + u64::from_le_bytes(number) as usize;
    // The weights keep their alignment.
    let more = (template.len() + 8).wrapping_sub(end - length) % 32;
    let template = format!("{template}{}", " ".repeat((32 - more) % 32));
    let mut bytes = file[..length].to_vec();
    bytes.extend((template.len() as u64).to_le_bytes());
    bytes.extend(template.as_bytes());
    bytes.extend(&file[end..]);
    load(&bytes, InstructionSet::best())
}

/// Renders "hello" by a template, and checks that the memory is bounded.
fn rendered(template: &str) -> relampago::Result<String> {
    let model = with_template(template);
    let messages = [Message::user("hello")];
    let (text, allocated) = measured(|| model.render(&messages));
    assert!(allocated.peak <= LIMIT, "{template}: {allocated:?}");
    text
}

/// Templates that double a text, or make one of any length.
const TEXTS: [&str; 14] = [
    "n.x ~ n.x",
    "n.x + n.x",
    "n.x * 1000",
    "n.x | replace('a', 'aaaa')",
    "n.x.replace('a', 'aaaa')",
    "[n.x, n.x] | join",
    "''.join([n.x, n.x])",
    "n.x.join([1, 2, n.x])",
    "range(100000) | join(n.x)",
    "'{0}{0}'.format(n.x)",
    "'%s%s' | format(n.x, n.x)",
    "(('%(a)s' * 1000) | format(a=n.x)) ~ n.x",
    "(n.x ~ '\n') | indent(1000000, true)",
    "([n.x, n.x] | tojson) ~ n.x",
];

#[test]
fn templates_that_double_texts_give_errors() {
    for text in TEXTS {
        let template = format!(
            "{{% set n = namespace(x='ab') %}}{{% for i in range(1000) %}}{{% set n.x = {text} %}}{{% endfor %}}"
        );
        let error = rendered(&template).unwrap_err();
        assert_eq!(error.code(), "INVALID_MODEL", "{text}: {error}");
    }
}

#[test]
fn one_operation_cannot_make_a_long_text() {
    for text in [
        "'{:900000000}'.format(1)",
        "'{0:{1}}'.format(1, 900000000)",
        "'%900000000d' | format(1)",
        "'%*d' | format(900000000, 1)",
        "'%.900000000f' | format(1.5)",
        "'a' * 90000000",
        "'a' | indent(width=900000000, first=true)",
        "([[1] * 100000] * 100000) | string",
        "(['a' * 10000] * 9000) | join",
        "''.join(['a' * 10000] * 9000)",
        "['a' * 10000] * 9000",
        "range(100000)",
        "debug()",
    ] {
        let error = rendered(&format!("{{{{ {text} }}}}")).unwrap_err();
        let expected = ["INVALID_MODEL", "INVALID_ARGUMENT"];
        assert!(expected.contains(&error.code()), "{text}: {error}");
    }
}

/// Filters and methods that turn a list into text.
const OF_LISTS: [&str; 16] = [
    "{{ n.x }}",
    "{{ n.x | string }}",
    "{{ n.x | tojson }}",
    "{{ n.x | join }}",
    "{{ n.x | upper }}",
    "{{ n.x | lower }}",
    "{{ n.x | title }}",
    "{{ n.x | capitalize }}",
    "{{ n.x | trim }}",
    "{{ n.x | safe }}",
    "{{ n.x | escape }}",
    "{{ n.x | indent }}",
    "{{ n.x | map('string') | list }}",
    "{{ ''.join(n.x) }}",
    "{{ '{}'.format(n.x) }}",
    "{{ '%s' | format(n.x) }}",
];

#[test]
fn lists_in_lists_become_text_within_limits_only() {
    // A list that holds itself, and lists of 2^60 elements. Of a map, only the keys are joined.
    for made in [
        "{% set n.x = [n] %}",
        "{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}",
        "{% for i in range(60) %}{% set n.x = {'a': n.x, 'b': n.x} %}{% endfor %}",
        "{% for i in range(9000) %}{% set n.x = [n.x] %}{% endfor %}",
    ] {
        let keys =
            |text: &&&str| made.contains("'a'") && (text.contains("join") || text.contains("map"));
        for text in OF_LISTS.iter().filter(|text| !keys(text)) {
            let template = format!("{{% set n = namespace(x=[1]) %}}{made}{text}");
            let error = rendered(&template).unwrap_err();
            let expected = ["INVALID_MODEL", "INVALID_ARGUMENT"];
            assert!(expected.contains(&error.code()), "{made}{text}: {error}");
        }
    }
}

#[test]
fn lists_as_deep_as_the_steps_allow_are_dropped() {
    let set = "{% set n.x = [n.x] %}";
    let flat = set.repeat(1_800);
    let deep = format!(
        "{{% for i in range(9) %}}{{% for j in range(9000) %}}{set}{{% endfor %}}{{% endfor %}}"
    );
    // The length of a message allows more steps.
    for (made, length) in [(flat, 1), (deep, 4 << 20)] {
        let model = with_template(&format!("{{% set n = namespace(x=[1]) %}}{made}done"));
        let messages = [Message::user("a".repeat(length))];
        assert_eq!(model.render(&messages).unwrap().trim_end(), "done");
    }
}

#[test]
fn what_templates_use_gives_the_same_text_as_before() {
    for (template, text) in [
        (
            "{{ messages | tojson }}",
            r#"[{"role": "user", "content": "hello"}]"#,
        ),
        ("{{ ['a', 1] | join(', ') }}", "a, 1"),
        ("{{ ', '.join(['a', 'b']) }}", "a, b"),
        ("{{ '{}-{:>4}'.format('a', 7) }}", "a-   7"),
        ("{{ '%s-%4d' | format('a', 7) }}", "a-   7"),
        ("{{ 'a\nb' | indent(2) }}", "a\n  b"),
        ("{{ 'aaa' | replace('a', 'b', 2) }}", "bba"),
        ("{{ 'aaa'.replace('a', 'b') | upper }}", "BBB"),
        ("{{ ' a ' | trim }}{{ [1, 2] }}", "a[1, 2]"),
        ("{{ messages[0].content.split('l') | last }}", "o"),
    ] {
        assert_eq!(rendered(template).unwrap().trim_end(), text, "{template}");
    }
}

#[test]
fn long_conversations_have_steps_for_their_length() {
    let model = with_template(
        "{% for m in messages %}{% set text = m.content | trim %}{{ '<' ~ m.role ~ '>' ~ text ~ '\n' }}{% endfor %}",
    );
    let messages: Vec<Message> = (0..500)
        .map(|_| Message::user("hello ".repeat(2000)))
        .collect();
    let text = model.render(&messages).unwrap();
    assert_eq!(text.len() / 500, "<user>\n".len() + 6 * 2000 - 1);
}
