//! The variables of a template by scope.

use super::super::value::Value;
use std::collections::HashMap;

/// The scopes of a template that is rendered. A scope stays as long as a macro may use it.
#[derive(Debug)]
pub(super) struct Scopes<'t> {
    all: Vec<Scope<'t>>,
    current: usize,
    /// The number of scopes that macros may use.
    kept: usize,
}

#[derive(Debug, Default)]
struct Scope<'t> {
    /// The scope around it, which has a lower number.
    outer: Option<usize>,
    variables: HashMap<&'t str, Value>,
}

impl Default for Scopes<'_> {
    fn default() -> Self {
        Self {
            all: vec![Scope::default()],
            current: 0,
            kept: 1,
        }
    }
}

impl<'t> Scopes<'t> {
    /// The present scope.
    pub(super) fn current(&self) -> usize {
        self.current
    }

    /// Enters a scope within the present one, which is returned for `leave`.
    pub(super) fn enter(&mut self) -> usize {
        self.enter_within(self.current)
    }

    /// Enters a scope within another one. Returns the present one for `leave`.
    pub(super) fn enter_within(&mut self, outer: usize) -> usize {
        self.all.push(Scope {
            outer: Some(outer),
            variables: HashMap::new(),
        });
        std::mem::replace(&mut self.current, self.all.len() - 1)
    }

    /// Leaves the present scope for the one of before.
    pub(super) fn leave(&mut self, before: usize) {
        self.all.truncate(self.current.max(self.kept));
        self.current = before;
    }

    /// Keeps all scopes that are there now, and returns the present one.
    pub(super) fn keep(&mut self) -> usize {
        self.kept = self.all.len();
        self.current
    }

    pub(super) fn set(&mut self, name: &'t str, value: Value) {
        self.all[self.current].variables.insert(name, value);
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let mut scope = Some(self.current);
        while let Some(number) = scope {
            if let Some(value) = self.all[number].variables.get(name) {
                return Some(value);
            }
            scope = self.all[number].outer;
        }
        None
    }
}
