//! The evaluation of expressions.

use super::super::access::{attribute, item};
use super::super::conditions::is;
use super::super::fault::{Result, refused};
use super::super::filters::filter;
use super::super::operators::{arithmetic, compare, concat, negative, positive, slice};
use super::super::syntax::{Comparison, Expression, Postfix};
use super::super::text::Text;
use super::super::value::{Value, insert};
use super::Evaluator;

impl<'t> Evaluator<'t> {
    pub(super) fn evaluate(&mut self, expression: &'t Expression) -> Result<Value> {
        self.budget.enter()?;
        let value = self.evaluate_node(expression)?;
        self.budget.leave();
        Ok(value)
    }

    fn evaluate_node(&mut self, expression: &'t Expression) -> Result<Value> {
        match expression {
            Expression::Literal(value) => Ok(value.clone()),
            Expression::Name(name) => Ok(self.name(name)),
            Expression::List(elements) => Value::list(self.all(elements)?),
            Expression::Tuple(elements) => Value::tuple(self.all(elements)?),
            Expression::Dict(entries) => self.dict(entries),
            Expression::Not(value) => Ok(Value::Bool(!self.evaluate(value)?.is_true())),
            Expression::Negative(value) => negative(&self.evaluate(value)?),
            Expression::Positive(value) => positive(&self.evaluate(value)?),
            Expression::Arithmetic(first, rest) => {
                let mut value = self.evaluate(first)?;
                for (operator, operand) in rest {
                    let operand = self.evaluate(operand)?;
                    value = arithmetic(value, *operator, &operand, &self.budget)?;
                }
                Ok(value)
            }
            Expression::Concat(parts) => {
                let mut text = Value::Text(Text::default());
                for part in parts {
                    let part = self.evaluate(part)?;
                    text = concat(text, &part, &self.budget)?;
                }
                Ok(text)
            }
            Expression::And(parts) => self.first(parts, false),
            Expression::Or(parts) => self.first(parts, true),
            Expression::Compare(first, rest) => self.compare(first, rest),
            Expression::Condition(parts, otherwise) => {
                let [condition, value] = &**parts;
                if self.evaluate(condition)?.is_true() {
                    return self.evaluate(value);
                }
                match otherwise {
                    Some(otherwise) => self.evaluate(otherwise),
                    None => Ok(Value::undefined("a condition without `else`")),
                }
            }
            Expression::Postfix(base, postfixes) => {
                let value = self.evaluate(base)?;
                self.follow(value, postfixes)
            }
        }
    }

    pub(super) fn all(&mut self, expressions: &'t [Expression]) -> Result<Vec<Value>> {
        let values = expressions
            .iter()
            .map(|expression| self.evaluate(expression));
        values.collect()
    }

    fn dict(&mut self, entries: &'t [(Expression, Expression)]) -> Result<Value> {
        let mut dict = Vec::new();
        for (key, value) in entries {
            let (key, value) = (self.evaluate(key)?, self.evaluate(value)?);
            insert(&mut dict, key, value, &self.budget)?;
        }
        Value::dict(dict)
    }

    /// The first value that is true or false, or else the last one.
    fn first(&mut self, parts: &'t [Expression], wanted: bool) -> Result<Value> {
        let mut value = Value::None;
        for part in parts {
            value = self.evaluate(part)?;
            if value.is_true() == wanted {
                break;
            }
        }
        Ok(value)
    }

    fn compare(
        &mut self,
        first: &'t Expression,
        rest: &'t [(Comparison, Expression)],
    ) -> Result<Value> {
        let mut left = self.evaluate(first)?;
        for (comparison, right) in rest {
            let right = self.evaluate(right)?;
            if !compare(&left, *comparison, &right, &self.budget)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    /// Returns the value after its postfixes were applied.
    pub(super) fn follow(&mut self, mut value: Value, postfixes: &'t [Postfix]) -> Result<Value> {
        for postfix in postfixes {
            self.budget.step(1)?;
            value = match postfix {
                Postfix::Attribute(name) => self.attribute(&value, name)?,
                Postfix::Item(key) => {
                    let key = self.evaluate(key)?;
                    self.item(&value, &key)?
                }
                Postfix::Slice(bounds) => {
                    let mut numbers = [None; 3];
                    for (number, bound) in numbers.iter_mut().zip(&**bounds) {
                        *number = self.bound(bound.as_ref())?;
                    }
                    slice(&value, numbers, &self.budget)?
                }
                Postfix::Call(arguments) => {
                    let arguments = self.arguments(arguments)?;
                    self.call(&value, arguments)?
                }
                Postfix::Filter(name, arguments) => {
                    let arguments = self.arguments(arguments)?;
                    filter(name, &value, &arguments, &self.budget)?
                }
                Postfix::Test(name, arguments, is_negated) => {
                    let arguments = self.arguments(arguments)?;
                    let is = is(name, &value, &arguments, &self.budget)?;
                    Value::Bool(is != *is_negated)
                }
            };
        }
        Ok(value)
    }

    fn bound(&mut self, bound: Option<&'t Expression>) -> Result<Option<i64>> {
        let Some(bound) = bound else {
            return Ok(None);
        };
        let value = self.evaluate(bound)?;
        match (&value, value.as_integer()) {
            (Value::None, _) => Ok(None),
            (_, Some(number)) => Ok(Some(number)),
            _ => refused(format!("a slice has a bound that is {}", value.kind())),
        }
    }

    fn attribute(&mut self, value: &Value, name: &str) -> Result<Value> {
        match value {
            Value::Namespace(number) => {
                let mut attributes = self.namespaces[*number].iter();
                let found = attributes.find(|(other, _)| **other == *name);
                let missing = || Value::undefined(format!("`{name}` of a namespace"));
                Ok(found.map_or_else(missing, |(_, value)| value.clone()))
            }
            Value::Loop(number) => self.loop_attribute(*number, name),
            _ => attribute(value, name, &self.budget),
        }
    }

    fn item(&mut self, value: &Value, key: &Value) -> Result<Value> {
        match (value, key) {
            (Value::Namespace(_) | Value::Loop(_), Value::Text(name)) => {
                self.attribute(value, name.as_str())
            }
            _ => item(value, key, &self.budget),
        }
    }
}
