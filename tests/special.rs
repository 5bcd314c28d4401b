//! The cases of ordinary and special values as a script for the package's tests, which try them from
//! JavaScript.

#![cfg(not(target_arch = "wasm32"))]

mod support;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;

use relampago::Op;
use relampago::ops::{OPS, OpInfo};
use relampago::reference::Expected;
use support::{Case, not_finite, special_cases, vector_cases};

/// The length of ordinary vectors: whole vectors of every instruction set, and a rest.
const ORDINARY: usize = 67;
/// A longer result would make the script large and show no more.
const LONGEST_RESULT: usize = 1_000;

#[test]
fn every_operation_has_cases() {
    let special = special_cases().into_iter().chain(not_finite());
    let cases: Vec<Case> = special.chain(vector_cases(ORDINARY)).collect();
    let tried: BTreeSet<&str> = cases.iter().map(|case| case.op.name()).collect();
    let missing: Vec<&OpInfo> = OPS.iter().filter(|op| !tried.contains(op.name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    if let Ok(path) = std::env::var("RELAMPAGO_SPECIAL_CASES") {
        fs::write(path, script(&cases)).expect("a folder that is there");
    }
}

/// A module with a list of the cases: `op`, `inputs`, `parameters` and `want`, what is right: pairs of a value
/// and the distance from it that is allowed. Where a GPU may read denormal inputs as zeros, these are right,
/// too: `flushed`. `orNaN` says that a GPU's result may be NaN, and `scalar` that it is one number. `operations` is
/// the number of operations in the table, each of which has a case.
fn script(cases: &[Case]) -> String {
    let mut arrays = Arrays::default();
    let mut list = String::new();
    for case in cases {
        let (want, flushed) = case.expected();
        if want.len() > LONGEST_RESULT || has_large_counts(case) {
            continue;
        }
        let inputs: Vec<String> = case.inputs.iter().map(|x| arrays.name(x)).collect();
        let ulp = case.op.ulp();
        let flushed = flushed.map_or("undefined".to_owned(), |flushed| pairs(&flushed, ulp));
        let _ = writeln!(
            list,
            "{{ op: '{}', inputs: [{}], parameters: Object.values({}), want: {}, flushed: {flushed}, orNaN: {}, scalar: {} }},",
            row(case).js_name,
            inputs.join(","),
            object(&format!("{:?}", case.op)),
            pairs(&want, ulp),
            case.rows_with_squares_beyond_numbers().contains(&true),
            case.op.is_scalar(),
        );
    }
    format!(
        "{}export const operations = {};\nexport const cases = [\n{list}];\n",
        arrays.text,
        OPS.len()
    )
}

/// Inputs, each of which the script has once.
#[derive(Default)]
struct Arrays {
    text: String,
    /// Their names, by their bits.
    known: HashMap<Vec<u32>, String>,
}

impl Arrays {
    fn name(&mut self, values: &[f32]) -> String {
        let bits = values.iter().map(|x| x.to_bits()).collect();
        let name = format!("a{}", self.known.len());
        let make = || {
            let values: Vec<String> = values.iter().map(|x| js(&format!("{x:?}"))).collect();
            let values = values.join(",");
            let _ = writeln!(self.text, "const {name} = new Float32Array([{values}]);");
            name
        };
        self.known.entry(bits).or_insert_with(make).clone()
    }
}

fn row(case: &Case) -> &'static OpInfo {
    let row = OPS.iter().find(|row| row.name == case.op.name());
    row.expect("an operation of the table")
}

/// Values, and how far from them a result may be: [`Expected::error`] in other words.
fn pairs(expected: &[Expected], ulp: f64) -> String {
    let pair = |want: &Expected| {
        let slack = ulp * f64::from(f32::EPSILON) * want.magnitude + f64::from(f32::MIN_POSITIVE);
        js(&format!("[{:?}, {slack:?}]", want.value))
    };
    let pairs: Vec<String> = expected.iter().map(pair).collect();
    format!("[{}]", pairs.join(","))
}

/// Variants of enumerations, which are strings in JavaScript.
const CHOICES: [&str; 8] = [
    "Same", "Valid", "Sum", "Mean", "Max", "Min", "Argmax", "Argmin",
];

/// Whether an operation's counts exceed the 32 bits of JavaScript's.
fn has_large_counts(case: &Case) -> bool {
    let Op::Rearrange { options } = &case.op else {
        return false;
    };
    let large = |stride: &isize| i32::try_from(*stride).is_err();
    let mut sizes = options.shape.iter();
    sizes.any(|&size| u32::try_from(size).is_err()) || options.strides.iter().any(large)
}

/// The fields of an operation as Rust prints it, as an object of JavaScript's.
fn object(debug: &str) -> String {
    // The name of an operation without fields may be that of a choice.
    if !debug.contains('{') {
        return "{}".into();
    }
    let mut text = String::new();
    for word in debug.split_inclusive(' ') {
        let plain = word.trim_end_matches([' ', ',']);
        let rest = &word[plain.len()..];
        let key = plain.strip_suffix(':');
        match (key, plain.chars().next()) {
            // The options of a layer have those of its image.
            (Some("image"), _) => text += "...",
            // The words up to its end are numbers, and the end is the same.
            _ if plain.starts_with("Some([") => {
                text += &word.replace("Some([", "new Float32Array([");
            }
            _ if plain.starts_with("Some(") => {
                text += &word.replace("Some(", "").replacen(')', "", 1);
            }
            _ if plain == "None" => text += &word.replace("None", "undefined"),
            (Some(key), _) => {
                let _ = write!(text, "{}: ", camel_case(key));
            }
            (None, Some('A'..='Z')) if CHOICES.contains(&plain) => {
                let _ = write!(text, "'{}'{rest}", plain.to_lowercase());
            }
            // The name of a type.
            (None, Some('A'..='Z')) => {}
            _ => text += &js(word),
        }
    }
    text
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(1);
        name + &initial.to_uppercase() + rest
    })
}

/// Numbers as JavaScript writes them.
fn js(rust: &str) -> String {
    rust.replace("inf", "Infinity")
}
