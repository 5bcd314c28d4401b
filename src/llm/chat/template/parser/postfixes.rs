//! The parser of arguments, filters and tests.

use super::super::fault::Result;
use super::super::lexer::Token;
use super::super::syntax::{Arguments, Expression, Postfix};
use super::Parser;

impl Parser {
    /// Parses arguments and the bracket after them.
    pub(super) fn arguments(&mut self) -> Result<Arguments> {
        let mut arguments = Arguments::default();
        let mut is_first = true;
        while !self.skip_symbol(")") {
            if !is_first {
                self.expect_symbol(",")?;
                if self.skip_symbol(")") {
                    break;
                }
            }
            is_first = false;
            if self.skip_symbol("*") {
                arguments.list = Some(Box::new(self.expression()?));
            } else if self.skip_symbol("**") {
                arguments.dict = Some(Box::new(self.expression()?));
            } else if self.peek_second() == Some(&Token::Symbol("="))
                && matches!(self.peek(), Some(Token::Name(_)))
            {
                let name = self.name()?;
                self.next += 1;
                arguments.named.push((name, self.expression()?));
            } else if arguments.named.is_empty() {
                arguments.positional.push(self.expression()?);
            } else {
                return Err(self.unexpected("the name of an argument"));
            }
        }
        Ok(arguments)
    }

    pub(super) fn filters_and_tests(&mut self, to: &mut Vec<Postfix>) -> Result<()> {
        loop {
            if self.skip_symbol("|") {
                to.push(self.filter()?);
            } else if self.skip_name("is") {
                to.push(self.test()?);
            } else if self.skip_symbol("(") {
                to.push(Postfix::Call(self.nested(Self::arguments)?));
            } else {
                return Ok(());
            }
        }
    }

    /// Parses the filters of a tag.
    pub(super) fn filters(&mut self) -> Result<Vec<Postfix>> {
        let mut filters = vec![self.filter()?];
        while self.skip_symbol("|") {
            filters.push(self.filter()?);
        }
        Ok(filters)
    }

    fn filter(&mut self) -> Result<Postfix> {
        let name = self.name()?;
        let arguments = self.skip_symbol("(");
        let arguments = arguments
            .then(|| self.nested(Self::arguments))
            .transpose()?;
        Ok(Postfix::Filter(name, arguments.unwrap_or_default()))
    }

    fn test(&mut self) -> Result<Postfix> {
        let is_negated = self.skip_name("not");
        let name = self.name()?;
        let mut arguments = Arguments::default();
        if self.skip_symbol("(") {
            arguments = self.nested(Self::arguments)?;
        } else if self.starts_argument() {
            let value = self.nested(Self::unary_argument)?;
            arguments.positional.push(value);
        }
        Ok(Postfix::Test(name, arguments, is_negated))
    }

    /// Whether a test's argument without brackets is next.
    fn starts_argument(&self) -> bool {
        match self.peek() {
            Some(Token::String(_) | Token::Integer(_) | Token::Float(_)) => true,
            Some(Token::Symbol(symbol)) => matches!(*symbol, "[" | "{"),
            Some(Token::Name(name)) => {
                !matches!(&**name, "else" | "or" | "and" | "if" | "is" | "in" | "not")
            }
            _ => false,
        }
    }

    fn unary_argument(&mut self) -> Result<Expression> {
        let value = self.primary()?;
        let mut postfixes = Vec::new();
        self.subscripts(&mut postfixes)?;
        if postfixes.is_empty() {
            return Ok(value);
        }
        Ok(Expression::Postfix(Box::new(value), postfixes))
    }
}
