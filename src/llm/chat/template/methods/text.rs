//! The methods of texts, with Python's meaning. Each result keeps the origin of each character.

mod case;
mod split;

use super::super::access::elements as elements_of;
use super::super::budget::Budget;
use super::super::fault::{Result, refused, unsupported};
use super::super::format;
use super::super::lexer::is_space;
use super::super::text::Text;
use super::super::value::Value;
use super::{Values, integer_argument, missing, text_argument};
pub(in super::super) use case::{capitalized, lower, upper};
use case::{swapped, titled};
use split::{lines, partition, split};

pub(super) const METHODS: [&str; 47] = [
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "maketrans",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "translate",
    "upper",
    "zfill",
];

/// Calls a method of a text.
pub(super) fn call(text: &Text, name: &str, arguments: &Values, budget: &Budget) -> Result<Value> {
    budget.write(text.size())?;
    if name.starts_with("is") {
        return classify(text, name).map(Value::Bool);
    }
    Ok(match name {
        "upper" => Value::Text(upper(text)),
        "lower" => Value::Text(lower(text)),
        "capitalize" => Value::Text(capitalized(text)),
        "title" => Value::Text(titled(text)),
        "swapcase" if text.as_str().is_ascii() => Value::Text(swapped(text)),
        "casefold" if text.as_str().is_ascii() => Value::Text(lower(text)),
        "strip" | "lstrip" | "rstrip" => {
            let [characters] = arguments.take(name, ["chars"])?;
            let sides = (name != "rstrip", name != "lstrip");
            Value::Text(stripped(text, characters, sides)?)
        }
        "split" | "rsplit" => {
            let [separator, most] = arguments.take(name, ["sep", "maxsplit"])?;
            let most = integer_argument(name, most)?.filter(|most| *most >= 0);
            let most = most.map_or(usize::MAX, |most| most as usize);
            split(text, separator, most, name == "rsplit", budget)?
        }
        "splitlines" => {
            let [keeps_ends] = arguments.take(name, ["keepends"])?;
            lines(text, keeps_ends.is_some_and(Value::is_true), budget)?
        }
        "startswith" | "endswith" => Value::Bool(is_at_end(text, name, arguments)?),
        "find" | "rfind" | "index" | "rindex" | "count" => search(text, name, arguments, budget)?,
        "replace" => {
            let [old, new, count] = arguments.take(name, ["old", "new", "count"])?;
            let (old, new) = (text_argument(name, old)?, text_argument(name, new)?);
            let count = integer_argument(name, count)?.filter(|count| *count >= 0);
            let count = count.map_or(usize::MAX, |count| count as usize);
            Value::Text(replaced(text, old, new, count, budget)?)
        }
        "removeprefix" | "removesuffix" => {
            let [affix] = arguments.take(name, ["affix"])?;
            without_affix(text, text_argument(name, affix)?, name == "removeprefix")
        }
        "partition" | "rpartition" => {
            let [separator] = arguments.take(name, ["sep"])?;
            partition(text, text_argument(name, separator)?, name == "rpartition")?
        }
        "join" => {
            let [elements] = arguments.take(name, ["iterable"])?;
            joined(
                text,
                elements.ok_or_else(|| missing(name, "iterable"))?,
                budget,
            )?
        }
        "center" | "ljust" | "rjust" | "zfill" => justified(text, name, arguments, budget)?,
        "format" => {
            let (positional, named) = (&arguments.positional, &arguments.named);
            Value::Text(format::format(text, positional, named, budget)?)
        }
        _ => return unsupported(format!("the method `{name}` of a string")),
    })
}

/// The text without white space, or without other characters, at its start and its end.
pub(in super::super) fn stripped(
    text: &Text,
    characters: Option<&Value>,
    (at_start, at_end): (bool, bool),
) -> Result<Text> {
    let characters = match characters {
        None | Some(Value::None) => None,
        value => Some(text_argument("strip", value)?.as_str()),
    };
    let strips =
        |c: char| characters.map_or_else(|| is_space(c), |characters| characters.contains(c));
    let source = text.as_str();
    let start = if at_start {
        source.trim_start_matches(strips)
    } else {
        source
    };
    let start = source.len() - start.len();
    let end = if at_end {
        source[start..].trim_end_matches(strips)
    } else {
        &source[start..]
    };
    Ok(text.part(start..start + end.len()))
}

fn is_at_end(text: &Text, name: &str, arguments: &Values) -> Result<bool> {
    let [affix] = arguments.take(name, ["prefix"])?;
    let is_there = |affix: &str| match name {
        "startswith" => text.as_str().starts_with(affix),
        _ => text.as_str().ends_with(affix),
    };
    if let Some(Value::Tuple(affixes)) = affix {
        for affix in &affixes.elements {
            if is_there(text_argument(name, Some(affix))?.as_str()) {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    Ok(is_there(text_argument(name, affix)?.as_str()))
}

/// Finds or counts a text in a part of another one.
fn search(text: &Text, name: &str, arguments: &Values, budget: &Budget) -> Result<Value> {
    let [part, start, end] = arguments.take(name, ["sub", "start", "end"])?;
    let part = text_argument(name, part)?.as_str();
    let (start, end) = (integer_argument(name, start)?, integer_argument(name, end)?);
    if start.is_some() || end.is_some() {
        return unsupported(format!("the method `{name}` with a start or an end"));
    }
    budget.read(text.len())?;
    let source = text.as_str();
    let index = |at: usize| source[..at].chars().count() as i64;
    let found = match name {
        "count" if part.is_empty() => return Ok(Value::Integer(index(source.len()) + 1)),
        "count" => return Ok(Value::Integer(source.matches(part).count() as i64)),
        "find" | "index" => source.find(part).map(index),
        _ => source.rfind(part).map(index),
    };
    if found.is_none() && name.ends_with("index") {
        return refused(format!("`{name}` of a string that is not there"));
    }
    Ok(Value::Integer(found.unwrap_or(-1)))
}

/// The text with a part of it replaced, up to `count` times.
fn replaced(text: &Text, old: &Text, new: &Text, count: usize, budget: &Budget) -> Result<Text> {
    let (source, old) = (text.as_str(), old.as_str());
    let places = source.match_indices(old).take(count);
    let mut places: Vec<usize> = places.map(|(at, _)| at).collect();
    budget.step(places.len())?;
    budget.write_times(new.size(), places.len())?;
    let (mut replaced, mut end) = (Text::default(), 0);
    for at in places.drain(..) {
        replaced.push_part(text, end..at);
        replaced.push_text(new);
        end = at + old.len();
    }
    replaced.push_part(text, end..text.len());
    Ok(replaced)
}

fn without_affix(text: &Text, affix: &Text, at_start: bool) -> Value {
    let (source, affix) = (text.as_str(), affix.as_str());
    let rest = if at_start {
        source.strip_prefix(affix)
    } else {
        source.strip_suffix(affix)
    };
    let len = rest.unwrap_or(source).len();
    Value::Text(if at_start {
        text.part(text.len() - len..text.len())
    } else {
        text.part(0..len)
    })
}

fn joined(between: &Text, elements: &Value, budget: &Budget) -> Result<Value> {
    let elements = elements_of(elements, budget)?;
    budget.write_times(between.size(), elements.len())?;
    let mut joined = Text::default();
    for (index, element) in elements.iter().enumerate() {
        let element = text_argument("join", Some(element))?;
        budget.write(element.size())?;
        if index > 0 {
            joined.push_text(between);
        }
        joined.push_text(element);
    }
    Ok(Value::Text(joined))
}

fn justified(text: &Text, name: &str, arguments: &Values, budget: &Budget) -> Result<Value> {
    let [width, fill] = arguments.take(name, ["width", "fillchar"])?;
    let width = integer_argument(name, width)?.ok_or_else(|| missing(name, "width"))?;
    let fill = fill
        .map(|fill| text_argument(name, Some(fill)))
        .transpose()?;
    let mut fill = fill.cloned().unwrap_or_else(|| Text::trusted(" "));
    let sign = usize::from(name == "zfill" && text.as_str().starts_with(['-', '+']));
    if name == "zfill" {
        fill = Text::trusted("0");
    }
    let len = text.as_str().chars().count();
    let missing = (width.max(0) as usize).saturating_sub(len);
    budget.write_times(fill.size(), missing)?;
    budget.step(missing)?;
    let before = match name {
        "ljust" => 0,
        // As Python divides an odd number.
        "center" => missing / 2 + (missing & width as usize & 1),
        _ => missing,
    };
    let mut justified = text.part(0..sign);
    (0..before).for_each(|_| justified.push_text(&fill));
    justified.push_part(text, sign..text.len());
    (before..missing).for_each(|_| justified.push_text(&fill));
    Ok(Value::Text(justified))
}

/// Whether all characters are of a class, which is known for ASCII only, except for white space and case.
fn classify(text: &Text, name: &str) -> Result<bool> {
    let source = text.as_str();
    if !source.is_ascii() && !matches!(name, "isspace" | "isascii") {
        return unsupported(format!("the method `{name}` of a string beyond ASCII"));
    }
    let all = |is: fn(char) -> bool| !source.is_empty() && source.chars().all(is);
    let any = |is: fn(&u8) -> bool| source.bytes().any(|byte| is(&byte));
    Ok(match name {
        "isspace" => all(is_space),
        "isascii" => source.is_ascii(),
        "isalpha" => all(|c| c.is_ascii_alphabetic()),
        "isalnum" => all(|c| c.is_ascii_alphanumeric()),
        "isdigit" | "isdecimal" | "isnumeric" => all(|c| c.is_ascii_digit()),
        "isupper" => any(u8::is_ascii_uppercase) && !any(u8::is_ascii_lowercase),
        "islower" => any(u8::is_ascii_lowercase) && !any(u8::is_ascii_uppercase),
        _ => return unsupported(format!("the method `{name}` of a string")),
    })
}
