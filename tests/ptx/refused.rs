//! What a kernel may not have, so that no text comes of it: structure, constants, names and sizes.

use super::mistakes::{build, run};
use relampago::ptx::PtxType::F32;
use relampago::ptx::{Builder, Error, Reg, Special, Target};

/// What `finish` says of a kernel's body.
fn said(body: impl FnOnce(&mut Builder)) -> String {
    match build(Target::Sm90a, body) {
        Err(error) => error.to_string(),
        Ok(_) => "nothing".to_owned(),
    }
}

/// Fails unless what is said contains each of the words.
fn says(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

/// Two predicates of a thread, and the address of a number of its own.
fn two_conditions(k: &mut Builder) -> (Reg, Reg, Reg) {
    let buffer = k.pointer("buffer", F32);
    let thread = k.special(Special::TidX);
    let at = k.at(buffer, thread, 4);
    (k.lt(thread, 40), k.gt(thread, 20), at)
}

#[test]
fn anything_but_instructions_under_a_guard() {
    let under_guard = |what, body: fn(&mut Builder, Reg)| {
        let error = build(Target::Sm80, |k| {
            let (below, above, _) = two_conditions(k);
            k.guarded(below, true, |k| body(k, above));
        });
        match error {
            Err(Error::UnderGuard { what: found, at }) => {
                assert_eq!(found, what);
                assert!(at.to_string().contains("refused.rs"), "{at}");
            }
            other => panic!("{what}: {other:?}"),
        }
    };
    under_guard("guarded", |k, cond| k.guarded(cond, true, |_| ()));
    under_guard("when", |k, cond| k.when(cond, |_| ()));
    under_guard("when", |k, cond| k.when_else(cond, |_| (), |_| ()));
    under_guard("repeat_while", |k, cond| k.repeat_while(|_| cond));
    under_guard("when", |k, _| k.for_range(0, 4, 1, |_, _| ()));
}

/// What to do instead of guards under each other.
#[test]
fn a_guard_of_two_conditions() {
    let values = run(64, |k| {
        let (below, above, at) = two_conditions(k);
        let both = k.and(below, above);
        k.guarded(both, true, |k| k.st_global(F32, at, 0, 1.0f32));
        k.guarded(below, false, |k| k.st_global(F32, at, 0, 2.0f32));
    });
    let expected = |i| match i {
        0..=20 => 0.0,
        21..40 => 1.0,
        _ => 2.0,
    };
    assert_eq!(values.unwrap(), (0..64).map(expected).collect::<Vec<f32>>());
}

#[test]
fn conditions_that_are_no_predicates() {
    let refused = |method, body: fn(&mut Builder, Reg)| {
        let said = said(|k| {
            let number = k.special(Special::TidX);
            body(k, number);
        });
        let method = format!("`{method}` takes");
        says(&said, &["refused.rs", &method, "type pred", "ty: U32"]);
    };
    refused("guarded", |k, cond| k.guarded(cond, true, |_| ()));
    refused("when", |k, cond| k.when(cond, |_| ()));
    refused("when", |k, cond| k.when_else(cond, |_| (), |_| ()));
    refused("repeat_while", |k, cond| k.repeat_while(|_| cond));
}
