//! The filters of lists and mappings.

use super::super::access::{elements, path};
use super::super::budget::Budget;
use super::super::conditions::is;
use super::super::display::text_of;
use super::super::fault::{Result, refused, unsupported};
use super::super::methods::{self, Values, integer_argument, lower, missing, text_argument};
use super::super::operators::arithmetic;
use super::super::sort::sort;
use super::super::syntax::Operator;
use super::super::text::Text;
use super::super::value::Value;
use super::filter as apply;
use std::cmp::Ordering;

/// Applies a filter to the elements of a value.
pub(super) fn filter(
    name: &str,
    value: &Value,
    arguments: &Values,
    budget: &Budget,
) -> Result<Value> {
    let is_lazy = matches!(
        name,
        "map" | "select" | "reject" | "selectattr" | "rejectattr"
    );
    if is_lazy && !value.is_true() {
        // Also of what has no elements, such as none.
        return Value::generator(Vec::new());
    }
    match name {
        "first" | "last" => end(name, value, budget),
        "list" => Value::list(elements(value, budget)?),
        "reverse" => reverse(value, budget),
        "join" => join(value, arguments, budget),
        "map" => map(value, arguments, budget),
        "select" | "reject" => {
            let (test, rest) = split_test(&arguments.positional)?;
            choose(
                value,
                name == "select",
                test,
                &rest,
                |value| Ok(value.clone()),
                budget,
            )
        }
        "selectattr" | "rejectattr" => {
            let Some((attribute, rest)) = arguments.positional.split_first() else {
                return Err(missing(name, "attribute"));
            };
            let (test, rest) = split_test(rest)?;
            let attribute = |value: &Value| path(value, attribute, budget);
            choose(value, name == "selectattr", test, &rest, attribute, budget)
        }
        "sort" => {
            let [reverse, case, attribute] =
                arguments.take(name, ["reverse", "case_sensitive", "attribute"])?;
            let keys = Keys::new(case, attribute, budget);
            let reverse = reverse.is_some_and(Value::is_true);
            Value::list(sorted(elements(value, budget)?, &keys, reverse)?)
        }
        "dictsort" => sorted_items(value, arguments, budget),
        "unique" => {
            let [case, attribute] = arguments.take(name, ["case_sensitive", "attribute"])?;
            unique(value, &Keys::new(case, attribute, budget))
        }
        "min" | "max" => {
            let [case, attribute] = arguments.take(name, ["case_sensitive", "attribute"])?;
            extreme(name, value, &Keys::new(case, attribute, budget))
        }
        "sum" => {
            let [attribute, start] = arguments.take(name, ["attribute", "start"])?;
            let mut sum = start.cloned().unwrap_or(Value::Integer(0));
            for element in elements(value, budget)? {
                let term = attribute.map(|attribute| path(&element, attribute, budget));
                let term = term.transpose()?.unwrap_or(element);
                if let Value::Text(_) = sum {
                    return refused("`sum` of strings");
                }
                sum = arithmetic(sum, Operator::Add, &term, budget)?;
            }
            Ok(sum)
        }
        "batch" => batch(value, arguments, budget),
        _ => unsupported(format!("the filter `{name}`")),
    }
}

fn end(name: &str, value: &Value, budget: &Budget) -> Result<Value> {
    if name == "last" && matches!(value, Value::Generator(_)) {
        return refused("the last element of a generator: use `| list` before");
    }
    let elements = elements(value, budget)?;
    let element = if name == "first" {
        elements.first()
    } else {
        elements.last()
    };
    Ok(element
        .cloned()
        .unwrap_or_else(|| Value::undefined("an element of nothing")))
}

fn reverse(value: &Value, budget: &Budget) -> Result<Value> {
    let mut elements = elements(value, budget)?;
    elements.reverse();
    if !matches!(value, Value::Text(_)) {
        return Value::generator(elements);
    }
    let mut text = Text::default();
    for character in elements {
        text.push_text(text_argument("reverse", Some(&character))?);
    }
    Ok(Value::Text(text))
}

fn join(value: &Value, arguments: &Values, budget: &Budget) -> Result<Value> {
    let [between, attribute] = arguments.take("join", ["d", "attribute"])?;
    let between = between
        .map(|between| text_of(between, budget))
        .transpose()?;
    let mut texts = Vec::new();
    for element in elements(value, budget)? {
        let element = match attribute {
            None | Some(Value::None) => element,
            Some(attribute) => path(&element, attribute, budget)?,
        };
        texts.push(Value::Text(text_of(&element, budget)?));
    }
    let arguments = Values {
        positional: vec![Value::list(texts)?],
        named: Vec::new(),
    };
    let between = Value::Text(between.unwrap_or_default());
    methods::call(&between, "join", &arguments, budget)
}

fn map(value: &Value, arguments: &Values, budget: &Budget) -> Result<Value> {
    let Some((name, rest)) = arguments.positional.split_first() else {
        let [attribute, default] = arguments.take("map", ["attribute", "default"])?;
        let attribute = attribute.ok_or_else(|| missing("map", "attribute"))?;
        let mapped = elements(value, budget)?.into_iter().map(|element| {
            let value = path(&element, attribute, budget)?;
            Ok(match (value, default) {
                (Value::Undefined(_), Some(default)) => default.clone(),
                (value, _) => value,
            })
        });
        return Value::generator(mapped.collect::<Result<_>>()?);
    };
    let name = text_argument("map", Some(name))?.as_str();
    let arguments = Values {
        positional: rest.to_vec(),
        named: arguments.named.clone(),
    };
    if matches!(
        name,
        "map" | "select" | "reject" | "selectattr" | "rejectattr"
    ) {
        return unsupported(format!("the filter `map` by `{name}`"));
    }
    let mapped = elements(value, budget)?.into_iter();
    let mapped = mapped.map(|element| apply(name, &element, &arguments, budget));
    Value::generator(mapped.collect::<Result<_>>()?)
}

/// The name of a test and its arguments.
fn split_test(arguments: &[Value]) -> Result<(Option<&str>, Values)> {
    let Some((name, rest)) = arguments.split_first() else {
        return Ok((None, Values::default()));
    };
    let name = text_argument("select", Some(name))?.as_str();
    let values = Values {
        positional: rest.to_vec(),
        named: Vec::new(),
    };
    Ok((Some(name), values))
}

/// The elements that pass or fail a test, which is truth if none is named.
fn choose(
    value: &Value,
    wanted: bool,
    test: Option<&str>,
    arguments: &Values,
    key: impl Fn(&Value) -> Result<Value>,
    budget: &Budget,
) -> Result<Value> {
    let mut chosen = Vec::new();
    for element in elements(value, budget)? {
        let key = key(&element)?;
        let passes = match test {
            Some(test) => is(test, &key, arguments, budget)?,
            None => key.is_true(),
        };
        if passes == wanted {
            chosen.push(element);
        }
    }
    Value::generator(chosen)
}

/// The keys by which elements are ordered.
struct Keys<'a> {
    case_sensitive: bool,
    attribute: Option<&'a Value>,
    budget: &'a Budget,
}

impl<'a> Keys<'a> {
    fn new(case: Option<&Value>, attribute: Option<&'a Value>, budget: &'a Budget) -> Self {
        Self {
            case_sensitive: case.is_some_and(Value::is_true),
            attribute: attribute.filter(|attribute| !matches!(attribute, Value::None)),
            budget,
        }
    }

    fn of(&self, element: &Value) -> Result<Value> {
        let key = match self.attribute {
            Some(Value::Text(text)) if text.as_str().contains(',') => {
                return unsupported("several attributes to sort by");
            }
            Some(attribute) => path(element, attribute, self.budget)?,
            None => element.clone(),
        };
        match key {
            Value::Text(text) if !self.case_sensitive => {
                self.budget.write(text.size())?;
                Ok(Value::Text(lower(&text)))
            }
            key => Ok(key),
        }
    }
}

/// Sorts elements by their keys; equal ones stay in their order.
fn sorted(elements: Vec<Value>, keys: &Keys, reverse: bool) -> Result<Vec<Value>> {
    let pairs = elements
        .into_iter()
        .map(|element| Ok((keys.of(&element)?, element)));
    let pairs = sort(pairs.collect::<Result<_>>()?, reverse, keys.budget)?;
    Ok(pairs.into_iter().map(|(_, element)| element).collect())
}

fn sorted_items(value: &Value, arguments: &Values, budget: &Budget) -> Result<Value> {
    let names = ["case_sensitive", "by", "reverse"];
    let [case, by, reverse] = arguments.take("dictsort", names)?;
    let by = by
        .map(|by| text_argument("dictsort", Some(by)))
        .transpose()?;
    let at = match by.map_or("key", Text::as_str) {
        "key" => Value::Integer(0),
        "value" => Value::Integer(1),
        by => return refused(format!("`dictsort` by '{by}'")),
    };
    value.check_usable()?;
    let items = methods::items(value, budget)?;
    let keys = Keys::new(case, Some(&at), budget);
    let reverse = reverse.is_some_and(Value::is_true);
    Value::list(sorted(elements(&items, budget)?, &keys, reverse)?)
}

fn unique(value: &Value, keys: &Keys) -> Result<Value> {
    let (mut seen, mut unique): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    for element in elements(value, keys.budget)? {
        let key = keys.of(&element)?;
        key.check_hashable()?;
        keys.budget.step(seen.len() / 16)?;
        let mut is_new = true;
        for other in &seen {
            if other.equals(&key, keys.budget)? {
                is_new = false;
                break;
            }
        }
        if is_new {
            seen.push(key);
            unique.push(element);
        }
    }
    Value::generator(unique)
}

fn extreme(name: &str, value: &Value, keys: &Keys) -> Result<Value> {
    let mut best: Option<(Value, Value)> = None;
    let wanted = if name == "min" {
        Ordering::Less
    } else {
        Ordering::Greater
    };
    for element in elements(value, keys.budget)? {
        let key = keys.of(&element)?;
        let is_better = match &best {
            Some((best, _)) => key.order(best, keys.budget)? == Some(wanted),
            None => true,
        };
        if is_better {
            best = Some((key, element));
        }
    }
    let nothing = || Value::undefined(format!("`{name}` of nothing"));
    Ok(best.map_or_else(nothing, |(_, element)| element))
}

fn batch(value: &Value, arguments: &Values, budget: &Budget) -> Result<Value> {
    let [count, fill] = arguments.take("batch", ["linecount", "fill_with"])?;
    let count = integer_argument("batch", count)?.unwrap_or(0);
    let Some(count) = usize::try_from(count).ok().filter(|count| *count > 0) else {
        return refused("`batch` needs a positive number");
    };
    let elements = elements(value, budget)?;
    let mut batches = Vec::new();
    for batch in elements.chunks(count) {
        let mut batch = batch.to_vec();
        if let Some(fill) = fill.filter(|fill| !matches!(fill, Value::None)) {
            budget.step(count - batch.len())?;
            batch.resize(count, fill.clone());
        }
        batches.push(Value::list(batch)?);
    }
    Value::generator(batches)
}
