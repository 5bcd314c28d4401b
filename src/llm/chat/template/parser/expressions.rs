//! The parser of expressions.

use super::super::fault::Result;
use super::super::lexer::Token;
use super::super::syntax::{Comparison, Expression, Operator, Postfix};
use super::super::text::Text;
use super::super::value::Value;
use super::Parser;

impl Parser {
    /// Parses expressions with commas between them, which are a tuple if there is a comma.
    pub(super) fn tuple(&mut self, with_condition: bool) -> Result<Expression> {
        let parse = |parser: &mut Self| {
            if with_condition {
                parser.expression()
            } else {
                parser.nested(Self::or)
            }
        };
        let first = parse(self)?;
        if !self.is_symbol(",") {
            return Ok(first);
        }
        let mut elements = vec![first];
        while self.skip_symbol(",") {
            if self.ends_tuple() {
                break;
            }
            elements.push(parse(self)?);
        }
        Ok(Expression::Tuple(elements))
    }

    fn ends_tuple(&self) -> bool {
        match self.peek() {
            None | Some(Token::TagEnd | Token::OutputEnd | Token::Symbol(")" | "=")) => true,
            Some(Token::Name(name)) => name == "in" || name == "recursive",
            _ => false,
        }
    }

    /// Parses an expression, which may be conditional.
    pub(super) fn expression(&mut self) -> Result<Expression> {
        self.nested(|parser| {
            let expression = parser.or()?;
            if !parser.skip_name("if") {
                return Ok(expression);
            }
            let condition = parser.or()?;
            let otherwise = parser.skip_name("else");
            let otherwise = otherwise.then(|| parser.expression()).transpose()?;
            let parts = Box::new([condition, expression]);
            Ok(Expression::Condition(parts, otherwise.map(Box::new)))
        })
    }

    fn or(&mut self) -> Result<Expression> {
        let parts = self.chain(Self::and, |parser| parser.skip_name("or").then_some(()))?;
        Ok(one_or(parts, Expression::Or))
    }

    fn and(&mut self) -> Result<Expression> {
        let parts = self.chain(Self::not, |parser| parser.skip_name("and").then_some(()))?;
        Ok(one_or(parts, Expression::And))
    }

    /// Parses operands with operators between them.
    fn chain<T>(
        &mut self,
        operand: impl Fn(&mut Self) -> Result<Expression>,
        operator: impl Fn(&mut Self) -> Option<T>,
    ) -> Result<(Expression, Vec<(T, Expression)>)> {
        let first = operand(self)?;
        let mut rest = Vec::new();
        while let Some(operator) = operator(self) {
            rest.push((operator, operand(self)?));
        }
        Ok((first, rest))
    }

    fn not(&mut self) -> Result<Expression> {
        if self.skip_name("not") {
            let negated = self.nested(Self::not)?;
            return Ok(Expression::Not(Box::new(negated)));
        }
        let (first, rest) = self.chain(Self::sum, Self::comparison)?;
        if rest.is_empty() {
            return Ok(first);
        }
        Ok(Expression::Compare(Box::new(first), rest))
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let comparison = match self.peek()? {
            Token::Symbol("==") => Comparison::Equal,
            Token::Symbol("!=") => Comparison::NotEqual,
            Token::Symbol("<") => Comparison::Less,
            Token::Symbol("<=") => Comparison::LessOrEqual,
            Token::Symbol(">") => Comparison::Greater,
            Token::Symbol(">=") => Comparison::GreaterOrEqual,
            Token::Name(name) if name == "in" => Comparison::In,
            Token::Name(name) if name == "not" => {
                let in_next = matches!(self.peek_second(), Some(Token::Name(name)) if name == "in");
                if !in_next {
                    return None;
                }
                self.next += 1;
                Comparison::NotIn
            }
            _ => return None,
        };
        self.next += 1;
        Some(comparison)
    }

    fn sum(&mut self) -> Result<Expression> {
        let operators = [("+", Operator::Add), ("-", Operator::Subtract)];
        self.arithmetic(Self::concat, &operators)
    }

    fn concat(&mut self) -> Result<Expression> {
        let parts = self.chain(Self::product, |parser| {
            parser.skip_symbol("~").then_some(())
        })?;
        Ok(one_or(parts, Expression::Concat))
    }

    fn product(&mut self) -> Result<Expression> {
        let operators = [
            ("*", Operator::Multiply),
            ("/", Operator::Divide),
            ("//", Operator::FloorDivide),
            ("%", Operator::Remainder),
        ];
        self.arithmetic(Self::power, &operators)
    }

    fn power(&mut self) -> Result<Expression> {
        self.arithmetic(|parser| parser.unary(true), &[("**", Operator::Power)])
    }

    fn arithmetic(
        &mut self,
        operand: impl Fn(&mut Self) -> Result<Expression>,
        operators: &[(&str, Operator)],
    ) -> Result<Expression> {
        let operator = |parser: &mut Self| {
            let mut operators = operators.iter();
            let found = operators.find(|(symbol, _)| parser.skip_symbol(symbol));
            found.map(|&(_, operator)| operator)
        };
        let (first, rest) = self.chain(operand, operator)?;
        if rest.is_empty() {
            return Ok(first);
        }
        Ok(Expression::Arithmetic(Box::new(first), rest))
    }

    /// Parses a value with its signs, and the postfixes after it.
    fn unary(&mut self, with_filters: bool) -> Result<Expression> {
        let value = if self.skip_symbol("-") {
            let value = self.nested(|parser| parser.unary(false))?;
            Expression::Negative(Box::new(value))
        } else if self.skip_symbol("+") {
            let value = self.nested(|parser| parser.unary(false))?;
            Expression::Positive(Box::new(value))
        } else {
            self.primary()?
        };
        let mut postfixes = Vec::new();
        self.subscripts(&mut postfixes)?;
        if with_filters {
            self.filters_and_tests(&mut postfixes)?;
        }
        if postfixes.is_empty() {
            return Ok(value);
        }
        Ok(Expression::Postfix(Box::new(value), postfixes))
    }

    pub(super) fn primary(&mut self) -> Result<Expression> {
        let Some(token) = self.peek().cloned() else {
            return Err(self.unexpected("a value"));
        };
        self.next += 1;
        Ok(match token {
            Token::Name(name) => match &*name {
                "true" | "True" => Expression::Literal(Value::Bool(true)),
                "false" | "False" => Expression::Literal(Value::Bool(false)),
                "none" | "None" => Expression::Literal(Value::None),
                name => Expression::Name(name.into()),
            },
            Token::String(mut text) => {
                while let Some(Token::String(more)) = self.peek() {
                    text.push_str(more);
                    self.next += 1;
                }
                Expression::Literal(Value::Text(Text::trusted(&text)))
            }
            Token::Integer(number) => Expression::Literal(Value::Integer(number)),
            Token::Float(number) => Expression::Literal(Value::Float(number)),
            Token::Symbol("(") => {
                if self.skip_symbol(")") {
                    return Ok(Expression::Tuple(Vec::new()));
                }
                let value = self.nested(|parser| parser.tuple(true))?;
                self.expect_symbol(")")?;
                value
            }
            Token::Symbol("[") => Expression::List(self.elements("]")?),
            Token::Symbol("{") => self.dict()?,
            _ => {
                self.next -= 1;
                return Err(self.unexpected("a value"));
            }
        })
    }

    /// Parses expressions with commas between them, and the bracket after them.
    fn elements(&mut self, end: &str) -> Result<Vec<Expression>> {
        let mut elements = Vec::new();
        while !self.skip_symbol(end) {
            if !elements.is_empty() {
                self.expect_symbol(",")?;
                if self.skip_symbol(end) {
                    break;
                }
            }
            elements.push(self.expression()?);
        }
        Ok(elements)
    }

    fn dict(&mut self) -> Result<Expression> {
        let mut entries = Vec::new();
        while !self.skip_symbol("}") {
            if !entries.is_empty() {
                self.expect_symbol(",")?;
                if self.skip_symbol("}") {
                    break;
                }
            }
            let key = self.expression()?;
            self.expect_symbol(":")?;
            entries.push((key, self.expression()?));
        }
        Ok(Expression::Dict(entries))
    }

    pub(super) fn subscripts(&mut self, to: &mut Vec<Postfix>) -> Result<()> {
        loop {
            if self.skip_symbol(".") {
                if let Some(&Token::Integer(index)) = self.peek() {
                    self.next += 1;
                    let index = Expression::Literal(Value::Integer(index));
                    to.push(Postfix::Item(index));
                } else {
                    to.push(Postfix::Attribute(self.name()?));
                }
            } else if self.skip_symbol("[") {
                to.push(self.nested(Self::subscript)?);
            } else if self.skip_symbol("(") {
                to.push(Postfix::Call(self.nested(Self::arguments)?));
            } else {
                return Ok(());
            }
        }
    }

    fn subscript(&mut self) -> Result<Postfix> {
        let is_end = |parser: &Self| parser.is_symbol(":") || parser.is_symbol("]");
        let bound = |parser: &mut Self| {
            if is_end(parser) {
                Ok(None)
            } else {
                parser.tuple(true).map(Some)
            }
        };
        let start = bound(self)?;
        if let Some(index) = start {
            if self.skip_symbol("]") {
                return Ok(Postfix::Item(index));
            }
            self.expect_symbol(":")?;
            return self.slice(Some(index), bound);
        }
        self.expect_symbol(":")?;
        self.slice(None, bound)
    }

    fn slice(
        &mut self,
        start: Option<Expression>,
        bound: impl Fn(&mut Self) -> Result<Option<Expression>>,
    ) -> Result<Postfix> {
        let stop = bound(self)?;
        let step = if self.skip_symbol(":") {
            bound(self)?
        } else {
            None
        };
        self.expect_symbol("]")?;
        Ok(Postfix::Slice(Box::new([start, stop, step])))
    }
}

/// One operand itself, or several in a node.
fn one_or(
    (first, rest): (Expression, Vec<((), Expression)>),
    node: impl Fn(Vec<Expression>) -> Expression,
) -> Expression {
    if rest.is_empty() {
        return first;
    }
    let rest = rest.into_iter().map(|((), operand)| operand);
    node(std::iter::once(first).chain(rest).collect())
}
