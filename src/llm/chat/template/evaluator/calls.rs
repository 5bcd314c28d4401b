//! Calls of functions, macros and methods.

use super::super::access::elements;
use super::super::clock::strftime;
use super::super::fault::{Fault, Result, refused, unsupported};
use super::super::methods::{self, Values, missing, text_argument};
use super::super::syntax::{Arguments, Expression, Postfix};
use super::super::text::Text;
use super::super::value::{Value, insert};
use super::{Evaluator, Flow};

/// The functions that every template has.
pub(super) const FUNCTIONS: [&str; 8] = [
    "range",
    "dict",
    "namespace",
    "raise_exception",
    "strftime_now",
    "cycler",
    "joiner",
    "lipsum",
];

/// The longest list that the sandbox lets `range` make.
const MAX_RANGE: u64 = 100_000;

impl<'t> Evaluator<'t> {
    pub(super) fn arguments(&mut self, arguments: &'t Arguments) -> Result<Values> {
        let mut positional = self.all(&arguments.positional)?;
        let mut named = Vec::new();
        for (name, value) in &arguments.named {
            named.push((name.to_string(), self.evaluate(value)?));
        }
        if let Some(list) = &arguments.list {
            let list = self.evaluate(list)?;
            positional.extend(elements(&list, &self.budget)?);
        }
        if let Some(dict) = &arguments.dict {
            let dict = self.evaluate(dict)?;
            let Value::Dict(dict) = &dict else {
                return refused(format!("`**` of {}", dict.kind()));
            };
            for (name, value) in &dict.entries {
                let name = text_argument("**", Some(name))?;
                self.budget.step(1)?;
                named.push((name.as_str().to_owned(), value.clone()));
            }
        }
        Ok(Values { positional, named })
    }

    /// Calls the last call of an expression with `caller`.
    pub(super) fn call_with(&mut self, call: &'t Expression, caller: Value) -> Result<Value> {
        let Expression::Postfix(base, postfixes) = call else {
            return refused("the tag `call` is without a call");
        };
        let Some((Postfix::Call(arguments), before)) = postfixes.split_last() else {
            return refused("the tag `call` is without a call");
        };
        let function = self.evaluate(base)?;
        let function = self.follow(function, before)?;
        let mut arguments = self.arguments(arguments)?;
        arguments.named.push(("caller".to_owned(), caller));
        self.call(&function, arguments)
    }

    pub(super) fn call(&mut self, function: &Value, arguments: Values) -> Result<Value> {
        match function {
            Value::Function(name) => self.call_function(name, &arguments),
            Value::Macro(number) => self.call_macro(*number, arguments),
            Value::Method(method) => match &method.0 {
                Value::Loop(number) => self.loop_method(*number, &method.1, arguments),
                value => methods::call(value, &method.1, &arguments, &self.budget),
            },
            Value::Loop(_) => unsupported("the call of `loop`"),
            _ => {
                function.check_usable()?;
                refused(format!("{} is called", function.kind()))
            }
        }
    }

    fn call_function(&mut self, name: &str, arguments: &Values) -> Result<Value> {
        match name {
            "range" => self.range(arguments),
            "dict" | "namespace" => {
                let entries = self.entries(arguments)?;
                if name == "dict" {
                    return Value::dict(entries);
                }
                let mut attributes = Vec::new();
                for (name, value) in entries {
                    let name = text_argument("namespace", Some(&name))?;
                    attributes.push((name.as_str().into(), value));
                }
                self.namespaces.push(attributes);
                Ok(Value::Namespace(self.namespaces.len() - 1))
            }
            "raise_exception" => {
                let [message] = arguments.take(name, ["message"])?;
                let message = message.ok_or_else(|| missing(name, "message"))?;
                let message = super::text_of(message, &self.budget)?;
                Err(Fault::Raised(message.as_str().to_owned()))
            }
            "strftime_now" => {
                let [format] = arguments.take(name, ["format"])?;
                let format = text_argument(name, format)?;
                self.budget.write_times(format.len(), 8)?;
                let text = strftime(self.context.now, format.as_str())?;
                // A format may come from a message.
                Ok(Value::Text(Text::untrusted(text)))
            }
            _ => unsupported(format!("the function `{name}`")),
        }
    }

    /// The entries of `dict` and `namespace`: those of a mapping, and named arguments.
    fn entries(&mut self, arguments: &Values) -> Result<Vec<(Value, Value)>> {
        let mut entries = match &*arguments.positional {
            [] => Vec::new(),
            [Value::Dict(dict)] => {
                self.budget.step(dict.entries.len())?;
                dict.entries.clone()
            }
            _ => return unsupported("`dict` or `namespace` of something else than a mapping"),
        };
        for (name, value) in &arguments.named {
            let name = Value::Text(Text::untrusted(name.as_str()));
            insert(&mut entries, name, value.clone(), &self.budget)?;
        }
        Ok(entries)
    }

    fn range(&mut self, arguments: &Values) -> Result<Value> {
        if !arguments.named.is_empty() {
            return refused("`range` has no named arguments");
        }
        let numbers = arguments.positional.iter().map(|value| {
            let fault = || Fault::Refused(format!("`range` of {}", value.kind()));
            value.as_integer().ok_or_else(fault)
        });
        let numbers = numbers.collect::<Result<Vec<_>>>()?;
        let (start, stop, step) = match *numbers {
            [stop] => (0, stop, 1),
            [start, stop] => (start, stop, 1),
            [start, stop, step] if step != 0 => (start, stop, step),
            _ => return refused("`range` needs one to three numbers, the last of which is not 0"),
        };
        let distance = if step > 0 {
            stop.checked_sub(start)
        } else {
            start.checked_sub(stop)
        };
        let distance = distance.unwrap_or(i64::MAX).max(0) as u64;
        let len = distance.div_ceil(step.unsigned_abs());
        if len > MAX_RANGE {
            let limit = format!("`range` has {len} elements, more than {MAX_RANGE}");
            return Err(Fault::Limit(limit));
        }
        self.budget.step(len as usize)?;
        let elements = (0..len as i64).map(|index| Value::Integer(start + index * step));
        Value::generator(elements.collect())
    }

    fn call_macro(&mut self, number: usize, arguments: Values) -> Result<Value> {
        let (definition, scope) = self.macros[number];
        let mut values: Vec<Option<Value>> = arguments.positional.into_iter().map(Some).collect();
        if values.len() > definition.parameters.len() {
            return unsupported(format!(
                "the call of `{}` with more arguments than it names",
                definition.name
            ));
        }
        values.resize(definition.parameters.len(), None);
        let mut caller = None;
        for (name, value) in arguments.named {
            let mut parameters = definition.parameters.iter();
            match parameters.position(|(parameter, _)| **parameter == *name) {
                Some(at) if values[at].is_none() => values[at] = Some(value),
                Some(_) => return refused(format!("`{}` has `{name}` twice", definition.name)),
                None if name == "caller" => caller = Some(value),
                None => return refused(format!("`{}` has no argument `{name}`", definition.name)),
            }
        }
        self.budget.enter()?;
        let before = self.scopes.enter_within(scope);
        let output = std::mem::take(&mut self.output);
        let result = self.macro_body(number, values, caller);
        let text = std::mem::replace(&mut self.output, output);
        self.scopes.leave(before);
        self.budget.leave();
        result.map(|()| Value::Text(text))
    }

    fn macro_body(
        &mut self,
        number: usize,
        values: Vec<Option<Value>>,
        caller: Option<Value>,
    ) -> Result<()> {
        let (definition, _) = self.macros[number];
        if let Some(caller) = caller {
            self.scopes.set("caller", caller);
        }
        for ((name, default), value) in definition.parameters.iter().zip(values) {
            let value = match (value, default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.evaluate(default)?,
                (None, None) => Value::undefined(format!("`{name}`")),
            };
            self.scopes.set(name, value);
        }
        match self.block(&definition.body)? {
            Flow::Next => Ok(()),
            _ => refused("`break` or `continue` leaves a macro"),
        }
    }

    fn loop_method(&mut self, number: usize, name: &str, arguments: Values) -> Result<Value> {
        let Some(state) = self.loops.get_mut(number) else {
            return refused("`loop` of a loop that has ended");
        };
        if name == "cycle" {
            let values = arguments.positional;
            if values.is_empty() {
                return refused("`loop.cycle` has no values");
            }
            return Ok(values[state.index % values.len()].clone());
        }
        let values = Value::list(arguments.positional.clone())?;
        let before = state.changed.replace(arguments.positional);
        match before {
            Some(before) => Ok(Value::Bool(
                !values.equals(&Value::list(before)?, &self.budget)?,
            )),
            None => Ok(Value::Bool(true)),
        }
    }
}
