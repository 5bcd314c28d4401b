//! Loops. The condition of a loop is evaluated when an element is needed, because the body may change the values that
//! it depends on.

use super::super::access::elements;
use super::super::fault::{Result, refused};
use super::super::syntax::For;
use super::super::value::Value;
use super::{Evaluator, Flow};
use std::vec::IntoIter;

/// A loop that runs.
#[derive(Debug)]
pub(super) struct Loop<'t> {
    syntax: &'t For,
    /// The scope around the loop.
    scope: usize,
    /// The elements that the condition has not seen.
    rest: IntoIter<Value>,
    /// The elements so far that the loop takes.
    elements: Vec<Value>,
    pub(super) index: usize,
    /// The arguments of the last call of `changed`.
    pub(super) changed: Option<Vec<Value>>,
}

impl<'t> Evaluator<'t> {
    pub(super) fn for_loop(&mut self, syntax: &'t For) -> Result<Flow> {
        let iterable = self.evaluate(&syntax.iterable)?;
        let elements = elements(&iterable, &self.budget)?;
        let number = self.loops.len();
        self.loops.push(Loop {
            syntax,
            scope: self.scopes.current(),
            rest: elements.into_iter(),
            elements: Vec::new(),
            index: 0,
            changed: None,
        });
        let completed = self.repeat(syntax, number)?;
        self.loops.truncate(number);
        if completed {
            return Ok(Flow::Next);
        }
        self.scoped(|evaluator| evaluator.block(&syntax.otherwise))
    }

    /// Runs the body for each element. Returns whether it came to its end once: otherwise jinja2 runs `else`.
    fn repeat(&mut self, syntax: &'t For, number: usize) -> Result<bool> {
        let (mut index, mut completed) = (0, false);
        while self.take(number, index + 1)? {
            self.loops[number].index = index;
            let element = self.loops[number].elements[index].clone();
            match self.iteration(syntax, number, element)? {
                Flow::Next => completed = true,
                Flow::Continue => {}
                Flow::Break => break,
            }
            index += 1;
        }
        Ok(completed)
    }

    fn iteration(&mut self, syntax: &'t For, number: usize, element: Value) -> Result<Flow> {
        self.scoped(|evaluator| {
            evaluator.scopes.set("loop", Value::Loop(number));
            evaluator.assign(&syntax.target, element)?;
            evaluator.block(&syntax.body)
        })
    }

    /// Takes elements until a loop has `count`, or all. Returns whether it has `count`.
    fn take(&mut self, number: usize, count: usize) -> Result<bool> {
        while self.loops[number].elements.len() < count {
            let state = &mut self.loops[number];
            let (syntax, scope) = (state.syntax, state.scope);
            let Some(element) = state.rest.next() else {
                return Ok(false);
            };
            if let Some(condition) = &syntax.condition {
                let before = self.scopes.enter_within(scope);
                let is_taken = self.assign(&syntax.target, element.clone());
                let is_taken = is_taken.and_then(|()| self.evaluate(condition));
                self.scopes.leave(before);
                if !is_taken?.is_true() {
                    continue;
                }
            }
            self.loops[number].elements.push(element);
        }
        Ok(true)
    }

    /// `loop.name`
    pub(super) fn loop_attribute(&mut self, number: usize, name: &str) -> Result<Value> {
        if self.loops.get(number).is_none() {
            return refused("`loop` of a loop that has ended");
        }
        let index = self.loops[number].index;
        let wanted = match name {
            "last" | "nextitem" => index + 2,
            "length" | "revindex" | "revindex0" => usize::MAX,
            _ => 0,
        };
        let has_next = self.take(number, wanted)?;
        let elements = &self.loops[number].elements;
        let integer = |number: usize| Value::Integer(number as i64);
        let neighbour = |at: Option<usize>| {
            let element = at.and_then(|at| elements.get(at)).cloned();
            element.unwrap_or_else(|| Value::undefined(format!("`loop.{name}`")))
        };
        Ok(match name {
            "index" => integer(index + 1),
            "index0" => integer(index),
            "revindex" => integer(elements.len() - index),
            "revindex0" => integer(elements.len() - index - 1),
            "first" => Value::Bool(index == 0),
            "last" => Value::Bool(!has_next),
            "length" => integer(elements.len()),
            // They count recursive loops only.
            "depth" => integer(1),
            "depth0" => integer(0),
            "previtem" => neighbour(index.checked_sub(1)),
            "nextitem" => neighbour(Some(index + 1)),
            "cycle" | "changed" => Value::Loop(number).method(name),
            _ => Value::undefined(format!("`loop.{name}`")),
        })
    }
}
