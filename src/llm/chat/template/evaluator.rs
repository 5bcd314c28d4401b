//! The evaluator of templates.

mod calls;
mod expressions;
mod loops;
mod scopes;

use super::access::elements;
use super::budget::Budget;
use super::display::text_of;
use super::fault::{Result, refused};
use super::syntax::{Expression, Macro, Postfix, Statement, Target};
use super::text::Text;
use super::value::Value;
use loops::Loop;
use scopes::Scopes;

/// The names that a template knows from the start, with the time.
#[derive(Debug)]
pub(super) struct Context<'t> {
    pub(super) variables: &'t [(&'t str, Value)],
    /// Seconds since 1970 in UTC.
    pub(super) now: i64,
}

/// How a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// The state of a template that is rendered.
pub(super) struct Evaluator<'t> {
    context: &'t Context<'t>,
    budget: Budget,
    output: Text,
    scopes: Scopes<'t>,
    loops: Vec<Loop<'t>>,
    namespaces: Vec<Vec<(Box<str>, Value)>>,
    /// Macros, with the scopes that they were defined in.
    macros: Vec<(&'t Macro, usize)>,
}

/// Renders a template.
pub(super) fn render<'t>(
    statements: &'t [Statement],
    context: &'t Context<'t>,
    budget: Budget,
) -> Result<Text> {
    let mut evaluator = Evaluator {
        context,
        budget,
        output: Text::default(),
        scopes: Scopes::default(),
        loops: Vec::new(),
        namespaces: Vec::new(),
        macros: Vec::new(),
    };
    evaluator.block(statements)?;
    Ok(evaluator.output)
}

impl<'t> Evaluator<'t> {
    fn write(&mut self, text: &Text) -> Result<()> {
        self.budget.write(text.size())?;
        self.output.push_text(text);
        Ok(())
    }

    /// Runs statements one after the other.
    fn block(&mut self, statements: &'t [Statement]) -> Result<Flow> {
        for statement in statements {
            self.budget.enter()?;
            let flow = self.statement(statement)?;
            self.budget.leave();
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &'t Statement) -> Result<Flow> {
        match statement {
            Statement::Text(text) => self.write(text)?,
            Statement::Output(expression) => {
                let value = self.evaluate(expression)?;
                let text = text_of(&value, &self.budget)?;
                self.write(&text)?;
            }
            Statement::If(branches, otherwise) => return self.condition(branches, otherwise),
            Statement::For(for_loop) => return self.for_loop(for_loop),
            Statement::Set(target, expression) => {
                let value = self.evaluate(expression)?;
                self.assign(target, value)?;
            }
            Statement::SetBlock(target, filters, body) => {
                let text = self.captured(body, filters)?;
                self.assign(target, text)?;
            }
            Statement::With(assignments, body) => return self.with(assignments, body),
            Statement::Filter(filters, body) => {
                let value = self.captured(body, filters)?;
                let text = text_of(&value, &self.budget)?;
                self.write(&text)?;
            }
            Statement::Macro(definition) => {
                let value = self.defined(definition);
                self.scopes.set(&definition.name, value);
            }
            Statement::Call(call, caller) => {
                let caller = self.defined(caller);
                let value = self.call_with(call, caller)?;
                let text = text_of(&value, &self.budget)?;
                self.write(&text)?;
            }
            Statement::Generation(body) => {
                let text = self.captured(body, &[])?;
                let text = text_of(&text, &self.budget)?;
                self.write(&text)?;
            }
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn condition(
        &mut self,
        branches: &'t [(Expression, Vec<Statement>)],
        otherwise: &'t [Statement],
    ) -> Result<Flow> {
        for (condition, body) in branches {
            if self.evaluate(condition)?.is_true() {
                return self.block(body);
            }
        }
        self.block(otherwise)
    }

    /// The value of a macro in the present scope.
    fn defined(&mut self, definition: &'t Macro) -> Value {
        self.macros.push((definition, self.scopes.keep()));
        Value::Macro(self.macros.len() - 1)
    }

    /// Calls a function in a new scope.
    fn scoped<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outer = self.scopes.enter();
        let result = run(self);
        self.scopes.leave(outer);
        result
    }

    /// The text that a block writes, filtered.
    fn captured(&mut self, body: &'t [Statement], filters: &'t [Postfix]) -> Result<Value> {
        let output = std::mem::take(&mut self.output);
        let flow = self.scoped(|evaluator| evaluator.block(body));
        let text = std::mem::replace(&mut self.output, output);
        if flow? != Flow::Next {
            return refused("`break` or `continue` leaves a block that is no loop");
        }
        self.follow(Value::Text(text), filters)
    }

    fn with(
        &mut self,
        assignments: &'t [(Target, Expression)],
        body: &'t [Statement],
    ) -> Result<Flow> {
        let values = assignments.iter().map(|(_, value)| self.evaluate(value));
        let values = values.collect::<Result<Vec<_>>>()?;
        self.scoped(|evaluator| {
            for ((target, _), value) in assignments.iter().zip(values) {
                evaluator.assign(target, value)?;
            }
            evaluator.block(body)
        })
    }

    fn assign(&mut self, target: &'t Target, value: Value) -> Result<()> {
        match target {
            Target::Name(name) => self.scopes.set(name, value),
            Target::Attribute(name, attribute) => {
                let Value::Namespace(number) = self.name(name) else {
                    return refused(format!(
                        "`{name}.{attribute}` is set, but `{name}` is no namespace"
                    ));
                };
                self.set_attribute(number, attribute, value);
            }
            Target::Tuple(targets) => {
                let elements = elements(&value, &self.budget)?;
                if elements.len() != targets.len() {
                    let (has, needs) = (elements.len(), targets.len());
                    return refused(format!("{has} values are assigned to {needs} names"));
                }
                for (target, element) in targets.iter().zip(elements) {
                    self.assign(target, element)?;
                }
            }
        }
        Ok(())
    }

    fn set_attribute(&mut self, number: usize, name: &str, value: Value) {
        let attributes = &mut self.namespaces[number];
        match attributes.iter_mut().find(|(other, _)| **other == *name) {
            Some((_, old)) => *old = value,
            None => attributes.push((name.into(), value)),
        }
    }

    /// The value of a name.
    fn name(&self, name: &str) -> Value {
        if let Some(value) = self.scopes.get(name) {
            return value.clone();
        }
        let mut variables = self.context.variables.iter();
        if let Some((_, value)) = variables.find(|(other, _)| *other == name) {
            return value.clone();
        }
        match calls::FUNCTIONS
            .into_iter()
            .find(|function| *function == name)
        {
            Some(function) => Value::Function(function),
            None => Value::undefined(format!("`{name}`")),
        }
    }
}
