//! Errors of naga in WGSL's words: types and operators instead of numbers of expressions.

use wgpu::naga::common::DiagnosticDisplay;
use wgpu::naga::front::Typifier;
use wgpu::naga::proc::{ResolveContext, TypeResolution};
use wgpu::naga::valid::{CallError, ExpressionError, FunctionError, ValidationError};
use wgpu::naga::{
    BinaryOperator, Block, Expression, Function, Handle, Module, Span, Statement, TypeInner,
    UnaryOperator, WithSpan,
};

use super::FUNCTIONS;

/// Returns the message of a validation error, and its position in the module's text.
pub(super) fn validation(
    error: &WithSpan<ValidationError>,
    module: &Module,
    source: &str,
) -> (Option<Span>, String) {
    let span = narrowest(error);
    let ValidationError::Function {
        handle,
        source: reason,
        ..
    } = error.as_inner()
    else {
        return (span, with_causes(error.as_inner()));
    };
    let function = &module.functions[*handle];
    let context = Context {
        module,
        function,
        source,
    };
    let of_statement = match reason {
        FunctionError::InvalidIfType(condition) => if_statement(&function.body, *condition),
        _ => None,
    };
    (of_statement.or(span), context.function_error(reason))
}

/// Returns the message of a parser's error.
pub(super) fn parsing(message: &str) -> String {
    if message.starts_with("Invalid access into expression") {
        return "only vectors, matrices and arrays have elements by index".to_owned();
    }
    match message.strip_prefix("Incompatible operands: ") {
        Some(operands) if operands.starts_with("Logical") => {
            "`&&` and `||` take values of type `bool` alone".to_owned()
        }
        Some(operands) => format!("the operands have types that do not fit: {operands}"),
        None => without_numbers(message),
    }
}

/// Replaces the numbers of expressions, whose text the parser no longer has.
fn without_numbers(message: &str) -> String {
    const EXPRESSION: &str = "expression [";
    let Some((before, rest)) = message.split_once(EXPRESSION) else {
        return message.to_owned();
    };
    match rest.split_once(']') {
        Some((number, after)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            [before, "this value", &without_numbers(after)].concat()
        }
        _ => message.to_owned(),
    }
}

/// Returns the innermost span of an error, which also has the span of the whole function.
fn narrowest(error: &WithSpan<ValidationError>) -> Option<Span> {
    let spans = error.spans().map(|(span, _)| *span);
    spans.min_by_key(|span| span.to_range().map_or(usize::MAX, |range| range.len()))
}

/// Returns the validator's error and its causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut reasons = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        reasons = format!("{reasons}: {error}");
        cause = error.source();
    }
    reasons
}

/// Returns the span of the `if` with this condition.
fn if_statement(block: &Block, condition: Handle<Expression>) -> Option<Span> {
    block
        .span_iter()
        .find_map(|(statement, span)| match statement {
            Statement::If { condition: own, .. } if *own == condition => Some(*span),
            Statement::If { accept, reject, .. } => {
                if_statement(accept, condition).or_else(|| if_statement(reject, condition))
            }
            Statement::Block(block) => if_statement(block, condition),
            Statement::Loop { body, .. } => if_statement(body, condition),
            _ => None,
        })
}

/// A function with an error.
struct Context<'a> {
    module: &'a Module,
    function: &'a Function,
    source: &'a str,
}

impl Context<'_> {
    fn function_error(&self, error: &FunctionError) -> String {
        match error {
            FunctionError::InvalidReturnType {
                expression: Some(result),
                ..
            } => {
                let own = self.type_of(*result);
                format!("the result has type `{own}`, but must have type `f32`")
            }
            FunctionError::InvalidReturnType { .. } => {
                "it must end with `return` and a value on every path".to_owned()
            }
            FunctionError::InvalidIfType(condition) => {
                let own = self.type_of(*condition);
                format!("a condition has type `{own}`, but must have type `bool`")
            }
            FunctionError::Expression { source, .. } => self.expression_error(source),
            FunctionError::InvalidCall {
                function, error, ..
            } => {
                let name = self.module.functions[*function].name.as_deref();
                self.call_error(given_name(name.unwrap_or("the function")), error)
            }
            FunctionError::MissingCapability(_) => {
                "it uses a feature of GPUs that functions here may not use".to_owned()
            }
            other => self.in_words(&with_causes(other)),
        }
    }

    fn call_error(&self, name: &str, error: &CallError) -> String {
        match error {
            CallError::ArgumentCount { required, seen } => {
                format!("`{name}` takes {required} arguments, not {seen}")
            }
            CallError::ArgumentType {
                index,
                required,
                seen_expression,
            } => {
                let needed = DiagnosticDisplay((*required, self.module.to_ctx()));
                let own = self.type_of(*seen_expression);
                let argument = format!("argument {} of `{name}`", index + 1);
                format!("{argument} has type `{own}`, but must have type `{needed}`")
            }
            other => self.in_words(&with_causes(other)),
        }
    }

    fn expression_error(&self, error: &ExpressionError) -> String {
        match error {
            ExpressionError::InvalidBinaryOperandTypes {
                op,
                lhs_type,
                rhs_type,
                ..
            } => {
                let (a, b) = (self.display(lhs_type), self.display(rhs_type));
                let op = operator(*op);
                format!("`{op}` does not take values of types `{a}` and `{b}`: convert one of them")
            }
            ExpressionError::InvalidUnaryOperandType(op, value) => {
                let (op, own) = (unary_operator(*op), self.type_of(*value));
                format!("`{op}` does not take a value of type `{own}`")
            }
            ExpressionError::SelectConditionNotABool { actual } => {
                let own = self.display(actual);
                format!("the last argument of `select` has type `{own}`, but must have type `bool`")
            }
            ExpressionError::SelectValuesTypeMismatch { accept, reject } => {
                let (a, b) = (self.display(reject), self.display(accept));
                format!("`select` takes two values of one type, not of types `{a}` and `{b}`")
            }
            ExpressionError::IndexOutOfBounds(base, index) => {
                let own = self.type_of(*base);
                format!("there is no element {index} in a value of type `{own}`")
            }
            ExpressionError::InvalidArgumentType(function, index, value) => {
                let name = format!("{function:?}").to_lowercase();
                let own = self.type_of(*value);
                format!(
                    "argument {} of `{name}` may not have type `{own}`",
                    index + 1
                )
            }
            ExpressionError::MissingCapabilities(_) => {
                "it uses a feature of GPUs that functions here may not use".to_owned()
            }
            other => self.in_words(&with_causes(other)),
        }
    }

    /// Returns an expression's type as WGSL writes it.
    fn type_of(&self, expression: Handle<Expression>) -> String {
        let function = self.function;
        let locals = (&function.local_variables, &function.arguments[..]);
        let context = ResolveContext::with_locals(self.module, locals.0, locals.1);
        let mut types = Typifier::new();
        match types.grow(expression, &function.expressions, &context) {
            Ok(()) => {
                let own = DiagnosticDisplay((&types[expression], self.module.to_ctx()));
                let text = own.to_string();
                // A variable, by its value.
                let of_variable = text.strip_prefix("ptr<function, ");
                let value = of_variable.and_then(|text| text.strip_suffix('>'));
                value.map(str::to_owned).unwrap_or(text)
            }
            Err(_) => "unknown".to_owned(),
        }
    }

    fn display(&self, own: &TypeInner) -> String {
        let own = TypeResolution::Value(own.clone());
        DiagnosticDisplay((&own, self.module.to_ctx())).to_string()
    }

    /// Replaces the numbers of expressions, which naga writes as `[3]`, by their text.
    fn in_words(&self, message: &str) -> String {
        let mut words = message.to_owned();
        for (handle, _) in self.function.expressions.iter() {
            let number = format!("{handle:?}");
            let span = self.function.expressions.get_span(handle).to_range();
            let text = span.and_then(|range| self.source.get(range));
            let text = text.map_or_else(|| "a value".to_owned(), |text| format!("`{text}`"));
            words = words.replace(&format!("Some({number})"), &text);
            words = words.replace(&number, &text);
        }
        for (given, own) in FUNCTIONS {
            words = words.replace(own, given);
        }
        words
    }
}

/// Returns the name by which the user calls a function.
fn given_name(own: &str) -> &str {
    let mut functions = FUNCTIONS.iter();
    let found = functions.find(|(_, renamed)| *renamed == own);
    found.map_or(own, |(given, _)| given)
}

fn unary_operator(op: UnaryOperator) -> &'static str {
    match op {
        UnaryOperator::Negate => "-",
        UnaryOperator::LogicalNot => "!",
        UnaryOperator::BitwiseNot => "~",
    }
}

fn operator(op: BinaryOperator) -> &'static str {
    match op {
        BinaryOperator::Add => "+",
        BinaryOperator::Subtract => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::Equal => "==",
        BinaryOperator::NotEqual => "!=",
        BinaryOperator::Less => "<",
        BinaryOperator::LessEqual => "<=",
        BinaryOperator::Greater => ">",
        BinaryOperator::GreaterEqual => ">=",
        BinaryOperator::And => "&",
        BinaryOperator::ExclusiveOr => "^",
        BinaryOperator::InclusiveOr => "|",
        BinaryOperator::LogicalAnd => "&&",
        BinaryOperator::LogicalOr => "||",
        BinaryOperator::ShiftLeft => "<<",
        BinaryOperator::ShiftRight => ">>",
    }
}
