//! Streams of text, and messages, options and results as JSON, for programs that send them to others.

#[cfg(feature = "stream")]
#[test]
fn a_stream_has_the_pieces_of_the_answer() {
    use super::random_models::{LLAMA, random_model};
    use futures_core::Stream;
    use relampago::llm::{GenerateOptions, LanguageModel, LoadOptions};
    use relampago::runtime::block_on;
    use std::future::poll_fn;
    use std::pin::Pin;

    let (bytes, _) = random_model(LLAMA, 1);
    let model = LanguageModel::from_bytes(bytes, LoadOptions::default()).unwrap();
    let answer = || {
        let options = GenerateOptions::default().with_max_tokens(6);
        model.complete("a", options).unwrap()
    };
    let pieces: Vec<String> = answer().map(Result::unwrap).collect();
    let mut stream = answer().into_stream();
    let mut streamed = Vec::new();
    block_on(async {
        while let Some(text) = poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
            streamed.push(text.unwrap());
        }
        // The stream has ended for good.
        assert!(
            poll_fn(|context| Pin::new(&mut stream).poll_next(context))
                .await
                .is_none()
        );
    });
    assert_eq!(streamed, pieces);
}

#[cfg(feature = "serde")]
#[test]
fn messages_and_options_are_json() {
    use relampago::Backend;
    use relampago::llm::{FinishReason, GenerateOptions, Message, Sampling};

    let message = Message::user("Hello");
    let json = serde_json::to_string(&message).unwrap();
    assert_eq!(json, r#"{"role":"user","content":"Hello"}"#);
    assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), message);

    let json = r#"{ "max_tokens": 7, "sampling": { "temperature": 0.5 } }"#;
    let options: GenerateOptions = serde_json::from_str(json).unwrap();
    let expected = GenerateOptions::default()
        .with_max_tokens(7)
        .with_sampling(Sampling::default().with_temperature(0.5));
    assert_eq!(options, expected);
    let again = serde_json::to_string(&options).unwrap();
    assert_eq!(
        serde_json::from_str::<GenerateOptions>(&again).unwrap(),
        options
    );
    let unknown = serde_json::from_str::<GenerateOptions>(r#"{ "maxTokens": 7 }"#);
    assert!(unknown.unwrap_err().to_string().contains("maxTokens"));

    for reason in [
        FinishReason::Stop,
        FinishReason::Length,
        FinishReason::ToolCalls,
    ] {
        let json = serde_json::to_string(&reason).unwrap();
        assert_eq!(json, format!("\"{reason}\""));
    }
    for backend in [Backend::Auto, Backend::Gpu, Backend::Simd] {
        let json = serde_json::to_string(&backend).unwrap();
        assert_eq!(json, format!("\"{backend}\""));
    }
}
