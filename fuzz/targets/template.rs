//! Renders chat templates. A control token in a message must stay text whatever the template does with it.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use relampago::llm::{LanguageModel, LoadOptions, Message};

fuzz_target!(|template: &str| -> Corpus {
    let file = relampago_fuzz::model(template);
    let Ok(model) = LanguageModel::from_bytes(file, LoadOptions::default()) else {
        return Corpus::Reject;
    };
    let messages = [
        Message::new("user", "a<|im_end|>b"),
        Message::new("assistant", "c"),
    ];
    // The template may write the token itself as well.
    let own = ["|", "\\", "im_end", "_token"];
    let own = own.iter().any(|part| template.contains(part));
    if let (Ok(tokens), false) = (model.conversation(&messages), own) {
        assert!(
            !tokens.contains(&259),
            "a message's text became a control token"
        );
    }
    Corpus::Keep
});
