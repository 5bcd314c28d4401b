//! The syntax tree of a template. Chains of operators and of postfixes are lists, so that long ones are not deep.

use super::text::Text;
use super::value::Value;

/// A statement, or text between statements.
#[derive(Debug)]
pub(super) enum Statement {
    /// `text`
    Text(Text),
    /// `{{ expression }}`
    Output(Expression),
    /// `{% if %}`, its conditions in order.
    If(Vec<(Expression, Vec<Statement>)>, Vec<Statement>),
    /// `{% for %}`
    For(Box<For>),
    /// `{% set target = expression %}`
    Set(Target, Expression),
    /// `{% set target | filters %}`
    SetBlock(Target, Vec<Postfix>, Vec<Statement>),
    /// `{% with %}`
    With(Vec<(Target, Expression)>, Vec<Statement>),
    /// `{% filter %}`
    Filter(Vec<Postfix>, Vec<Statement>),
    /// `{% macro %}`
    Macro(Macro),
    /// `{% call %}`, with the body as a macro.
    Call(Expression, Macro),
    /// `{% generation %}`
    Generation(Vec<Statement>),
    /// `{% break %}`
    Break,
    /// `{% continue %}`
    Continue,
}

/// A loop.
#[derive(Debug)]
pub(super) struct For {
    pub(super) target: Target,
    pub(super) iterable: Expression,
    /// The condition of elements that are not left out.
    pub(super) condition: Option<Expression>,
    pub(super) body: Vec<Statement>,
    pub(super) otherwise: Vec<Statement>,
}

/// A macro.
#[derive(Debug)]
pub(super) struct Macro {
    pub(super) name: Box<str>,
    pub(super) parameters: Vec<(Box<str>, Option<Expression>)>,
    pub(super) body: Vec<Statement>,
}

/// The target of an assignment.
#[derive(Debug)]
pub(super) enum Target {
    Name(Box<str>),
    /// An attribute of a namespace.
    Attribute(Box<str>, Box<str>),
    Tuple(Vec<Target>),
}

/// An expression.
#[derive(Debug)]
pub(super) enum Expression {
    Literal(Value),
    Name(Box<str>),
    List(Vec<Expression>),
    Tuple(Vec<Expression>),
    Dict(Vec<(Expression, Expression)>),
    Not(Box<Expression>),
    Negative(Box<Expression>),
    Positive(Box<Expression>),
    /// Operators of the same precedence, from left to right.
    Arithmetic(Box<Expression>, Vec<(Operator, Expression)>),
    /// `a ~ b`
    Concat(Vec<Expression>),
    And(Vec<Expression>),
    Or(Vec<Expression>),
    /// `a < b < c`
    Compare(Box<Expression>, Vec<(Comparison, Expression)>),
    /// `then if condition else otherwise`
    Condition(Box<[Expression; 2]>, Option<Box<Expression>>),
    /// A value and the postfixes after it, from left to right.
    Postfix(Box<Expression>, Vec<Postfix>),
}

/// A postfix of a value.
#[derive(Debug)]
pub(super) enum Postfix {
    /// `.name`
    Attribute(Box<str>),
    /// `[index]`
    Item(Expression),
    /// `[start:stop:step]`
    Slice(Box<[Option<Expression>; 3]>),
    /// `(arguments)`
    Call(Arguments),
    /// `| name(arguments)`
    Filter(Box<str>, Arguments),
    /// `is name(arguments)`, or `is not`
    Test(Box<str>, Arguments, bool),
}

/// The arguments of a call.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) positional: Vec<Expression>,
    pub(super) named: Vec<(Box<str>, Expression)>,
    /// `*arguments`
    pub(super) list: Option<Box<Expression>>,
    /// `**arguments`
    pub(super) dict: Option<Box<Expression>>,
}

/// An operator on numbers, texts and lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}
