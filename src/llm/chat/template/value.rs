//! The values of templates, which are those of Python.

use super::budget::Budget;
use super::fault::{Fault, Result, refused, unsupported};
use super::text::Text;
use std::cmp::Ordering;
use std::sync::Arc;

/// The deepest lists in lists, which bounds the stack of everything that visits a value.
const MAX_DEPTH: usize = 100;

/// A value. Lists and mappings never change, so none holds itself.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// The value of an absent name or attribute, with the name.
    Undefined(Arc<str>),
    None,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(Text),
    /// The result of the filter `safe`: a text that a template can only write.
    Safe(Text),
    List(Arc<List>),
    Tuple(Arc<List>),
    Dict(Arc<Dict>),
    /// Elements that Python makes one by one, which a loop or a filter takes.
    Generator(Arc<List>),
    /// A namespace, by its number. Only namespaces change.
    Namespace(usize),
    /// The variable `loop` of a loop, by the loop's number.
    Loop(usize),
    /// A macro, by its number.
    Macro(usize),
    /// A function for all templates.
    Function(&'static str),
    /// A method of a value.
    Method(Arc<(Value, Box<str>)>),
}

/// The elements of a list or a tuple.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) elements: Vec<Value>,
    depth: usize,
}

/// The entries of a mapping, in the order in which they were written.
#[derive(Debug)]
pub(crate) struct Dict {
    pub(crate) entries: Vec<(Value, Value)>,
    depth: usize,
}

impl Dict {
    /// The value of a key.
    pub(super) fn get(&self, key: &Value, budget: &Budget) -> Result<Option<&Value>> {
        let at = position(&self.entries, key, budget)?;
        Ok(at.map(|at| &self.entries[at].1))
    }
}

/// The position of a key's entry.
fn position(entries: &[(Value, Value)], key: &Value, budget: &Budget) -> Result<Option<usize>> {
    budget.step(entries.len() / 16)?;
    key.check_hashable()?;
    for (at, (other, _)) in entries.iter().enumerate() {
        if other.equals(key, budget)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Sets the value of a key.
pub(super) fn insert(
    entries: &mut Vec<(Value, Value)>,
    key: Value,
    value: Value,
    budget: &Budget,
) -> Result<()> {
    match position(entries, &key, budget)? {
        Some(at) => entries[at].1 = value,
        None => entries.push((key, value)),
    }
    Ok(())
}

impl Value {
    pub(crate) fn list(elements: Vec<Self>) -> Result<Self> {
        Ok(Self::List(Self::elements(elements)?))
    }

    pub(super) fn tuple(elements: Vec<Self>) -> Result<Self> {
        Ok(Self::Tuple(Self::elements(elements)?))
    }

    pub(super) fn generator(elements: Vec<Self>) -> Result<Self> {
        Ok(Self::Generator(Self::elements(elements)?))
    }

    fn elements(elements: Vec<Self>) -> Result<Arc<List>> {
        let depth = deeper(elements.iter())?;
        Ok(Arc::new(List { elements, depth }))
    }

    /// A mapping of entries with different keys.
    pub(crate) fn dict(entries: Vec<(Self, Self)>) -> Result<Self> {
        let depth = deeper(entries.iter().flat_map(|(key, value)| [key, value]))?;
        Ok(Self::Dict(Arc::new(Dict { entries, depth })))
    }

    /// A mapping with texts as keys.
    pub(crate) fn attributes<const N: usize>(entries: [(&str, Self); N]) -> Result<Self> {
        let entries = entries.into_iter();
        let entries = entries.map(|(key, value)| (Self::Text(Text::untrusted(key)), value));
        Self::dict(entries.collect())
    }

    pub(super) fn method(self, name: &str) -> Self {
        Self::Method(Arc::new((self, name.into())))
    }

    pub(super) fn undefined(name: impl Into<String>) -> Self {
        Self::Undefined(name.into().into())
    }

    fn depth(&self) -> usize {
        match self {
            Self::List(list) | Self::Tuple(list) | Self::Generator(list) => list.depth,
            Self::Dict(dict) => dict.depth,
            Self::Method(method) => method.0.depth() + 1,
            _ => 0,
        }
    }

    /// The name of the value's type, with its article.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Undefined(_) => "an undefined value",
            Self::None => "none",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Text(_) => "a string",
            Self::Safe(_) => "a string after `safe`",
            Self::List(_) => "a list",
            Self::Tuple(_) => "a tuple",
            Self::Dict(_) => "a mapping",
            Self::Generator(_) => "a generator",
            Self::Namespace(_) => "a namespace",
            Self::Loop(_) => "a loop",
            Self::Macro(_) => "a macro",
            Self::Function(_) => "a function",
            Self::Method(_) => "a method",
        }
    }

    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Undefined(_) | Self::None => false,
            Self::Bool(value) => *value,
            Self::Integer(number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Text(text) | Self::Safe(text) => !text.is_empty(),
            Self::List(list) | Self::Tuple(list) => !list.elements.is_empty(),
            Self::Dict(dict) => !dict.entries.is_empty(),
            Self::Generator(_)
            | Self::Namespace(_)
            | Self::Loop(_)
            | Self::Macro(_)
            | Self::Function(_)
            | Self::Method(_) => true,
        }
    }

    /// The integer that a boolean or an integer is.
    pub(super) fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Bool(value) => Some(i64::from(*value)),
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The number that a boolean, an integer or a float is.
    pub(super) fn as_number(&self) -> Option<f64> {
        match self {
            Self::Float(number) => Some(*number),
            _ => self.as_integer().map(|number| number as f64),
        }
    }

    /// The elements of a list or a tuple.
    pub(super) fn as_elements(&self) -> Option<&[Self]> {
        match self {
            Self::List(list) | Self::Tuple(list) => Some(&list.elements),
            _ => None,
        }
    }

    /// Refuses an undefined value, and a text after `safe`, where they cannot be used.
    pub(super) fn check_usable(&self) -> Result<()> {
        match self {
            Self::Safe(_) => unsupported("an operation on a string after `safe`"),
            Self::Undefined(name) => refused(format!("{name} is undefined")),
            _ => Ok(()),
        }
    }

    /// Refuses a value that cannot be a key.
    pub(super) fn check_hashable(&self) -> Result<()> {
        match self {
            Self::List(_) | Self::Dict(_) => refused(format!("{} cannot be a key", self.kind())),
            Self::Tuple(list) => list.elements.iter().try_for_each(Self::check_hashable),
            _ => Ok(()),
        }
    }

    /// Whether two values are equal. Origins do not count.
    pub(super) fn equals(&self, other: &Self, budget: &Budget) -> Result<bool> {
        if let (Some(a), Some(b)) = (self.as_integer(), other.as_integer()) {
            return Ok(a == b);
        }
        if let (Some(a), Some(b)) = (self.as_number(), other.as_number()) {
            return Ok(a == b);
        }
        Ok(match (self, other) {
            (Self::Undefined(_), Self::Undefined(_)) | (Self::None, Self::None) => true,
            (Self::Text(a), Self::Text(b)) => {
                budget.read(a.len().min(b.len()))?;
                a == b
            }
            (Self::Safe(_), other) | (other, Self::Safe(_))
                if matches!(other, Self::Text(_) | Self::Safe(_)) =>
            {
                return unsupported("a comparison with a string after `safe`");
            }
            (Self::List(a), Self::List(b)) | (Self::Tuple(a), Self::Tuple(b)) => {
                equal_lists(&a.elements, &b.elements, budget)?
            }
            (Self::Dict(a), Self::Dict(b)) => equal_dicts(a, b, budget)?,
            (Self::Namespace(a), Self::Namespace(b))
            | (Self::Loop(a), Self::Loop(b))
            | (Self::Macro(a), Self::Macro(b)) => a == b,
            (Self::Function(a), Self::Function(b)) => a == b,
            _ => false,
        })
    }

    /// The order of two values.
    pub(super) fn order(&self, other: &Self, budget: &Budget) -> Result<Option<Ordering>> {
        self.check_usable()?;
        other.check_usable()?;
        if let (Some(a), Some(b)) = (self.as_integer(), other.as_integer()) {
            return Ok(Some(a.cmp(&b)));
        }
        if let (Some(a), Some(b)) = (self.as_number(), other.as_number()) {
            return Ok(a.partial_cmp(&b));
        }
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => {
                budget.read(a.len().min(b.len()))?;
                Ok(Some(a.as_str().cmp(b.as_str())))
            }
            (Self::List(a), Self::List(b)) | (Self::Tuple(a), Self::Tuple(b)) => {
                for (a, b) in a.elements.iter().zip(&b.elements) {
                    budget.step(1)?;
                    if !a.equals(b, budget)? {
                        return a.order(b, budget);
                    }
                }
                Ok(Some(a.elements.len().cmp(&b.elements.len())))
            }
            _ => refused(format!("{} is ordered with {}", self.kind(), other.kind())),
        }
    }

    /// Whether this value contains another one.
    pub(super) fn contains(&self, value: &Self, budget: &Budget) -> Result<bool> {
        match (self, value) {
            (Self::Undefined(_), _) => Ok(false),
            (Self::Text(text), Self::Text(part)) => {
                budget.read(text.len())?;
                Ok(text.as_str().contains(part.as_str()))
            }
            (Self::Dict(dict), _) => Ok(dict.get(value, budget)?.is_some()),
            (Self::Safe(_), _) | (_, Self::Safe(_)) => unsupported("`in` of a string after `safe`"),
            (Self::List(list) | Self::Tuple(list) | Self::Generator(list), _) => {
                budget.step(list.elements.len() / 16)?;
                for element in &list.elements {
                    if element.equals(value, budget)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => refused(format!("`in` of {} and {}", value.kind(), self.kind())),
        }
    }
}

fn equal_lists(a: &[Value], b: &[Value], budget: &Budget) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(b) {
        budget.step(1)?;
        if !a.equals(b, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_dicts(a: &Dict, b: &Dict, budget: &Budget) -> Result<bool> {
    if a.entries.len() != b.entries.len() {
        return Ok(false);
    }
    for (key, value) in &a.entries {
        budget.step(1)?;
        match b.get(key, budget)? {
            Some(other) if value.equals(other, budget)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// The depth of a value that holds others.
fn deeper<'a>(values: impl Iterator<Item = &'a Value>) -> Result<usize> {
    let depth = values.map(Value::depth).max().unwrap_or(0) + 1;
    if depth > MAX_DEPTH {
        let limit = format!("a list holds lists deeper than {MAX_DEPTH} levels");
        return Err(Fault::Limit(limit));
    }
    Ok(depth)
}
