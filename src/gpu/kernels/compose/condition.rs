//! The conditions of `@if`.

use super::table::FEATURES;
use super::{Error, Result, identifiers, is_of_word};

/// An expression of features.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    Always,
    Feature(String),
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
}

impl Condition {
    /// Returns whether it is true where these features are on and all others off.
    pub(super) fn holds(&self, features: &[&str]) -> bool {
        match self {
            Self::Always => true,
            Self::Feature(name) => features.contains(&name.as_str()),
            Self::Not(condition) => !condition.holds(features),
            Self::And(a, b) => a.holds(features) && b.holds(features),
            Self::Or(a, b) => a.holds(features) || b.holds(features),
        }
    }

    pub(super) fn not(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// Parses the expression in the parentheses of an `@if`, which stands on a line of a file.
    pub(super) fn parse(text: &str, file: &str, line: usize) -> Result<Self> {
        let mut parser = Parser { rest: text };
        let condition = parser.any();
        if let Some(unknown) = identifiers(text).find(|name| !FEATURES.contains(name)) {
            let message = format!("`{unknown}` is no feature of src/gpu/kernels/table.rs");
            return Err(Error::new(file, line, message));
        }
        match condition {
            Some(condition) if parser.rest.trim().is_empty() => Ok(condition),
            _ => Err(Error::new(
                file,
                line,
                format!("`{text}` is no condition of features with !, &&, || and parentheses"),
            )),
        }
    }
}

struct Parser<'t> {
    rest: &'t str,
}

impl Parser<'_> {
    fn any(&mut self) -> Option<Condition> {
        let mut condition = self.all()?;
        while self.takes("||") {
            condition = Condition::Or(Box::new(condition), Box::new(self.all()?));
        }
        Some(condition)
    }

    fn all(&mut self) -> Option<Condition> {
        let mut condition = self.one()?;
        while self.takes("&&") {
            condition = Condition::And(Box::new(condition), Box::new(self.one()?));
        }
        Some(condition)
    }

    fn one(&mut self) -> Option<Condition> {
        if self.takes("!") {
            return Some(self.one()?.not());
        }
        if self.takes("(") {
            let condition = self.any()?;
            return self.takes(")").then_some(condition);
        }
        let text = self.rest.trim_start();
        let end = text
            .find(|character| !is_of_word(character))
            .unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        self.rest = rest;
        (!name.is_empty()).then(|| Condition::Feature(name.to_owned()))
    }

    fn takes(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        rest.map(|rest| self.rest = rest).is_some()
    }
}
