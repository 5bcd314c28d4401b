//! The parser of templates: jinja2's grammar with loop controls and `generation`, without inheritance.

mod expressions;
mod postfixes;

use super::fault::{Fault, Result, refused, unsupported};
use super::lexer::{Token, tokens};
use super::syntax::{Expression, For, Macro, Statement, Target};
use super::text::Text;

/// The deepest nesting of statements and expressions.
const MAX_DEPTH: usize = 100;

/// Parses a template.
pub(super) fn parse(source: &str) -> Result<Vec<Statement>> {
    let mut parser = Parser {
        tokens: tokens(source)?,
        next: 0,
        depth: 0,
        loops: 0,
    };
    let statements = parser.statements(&[])?;
    match parser.peek() {
        None => Ok(statements),
        Some(_) => refused("the template has a tag that ends nothing"),
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    /// The loops around the statement, within the macro.
    loops: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    fn peek_second(&self) -> Option<&Token> {
        self.tokens.get(self.next + 1)
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek(), Some(Token::Symbol(next)) if *next == symbol)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Some(Token::Name(next)) if next == name)
    }

    /// Takes a symbol if it is next.
    fn skip_symbol(&mut self, symbol: &str) -> bool {
        let is_next = self.is_symbol(symbol);
        self.next += usize::from(is_next);
        is_next
    }

    /// Takes a name if it is next.
    fn skip_name(&mut self, name: &str) -> bool {
        let is_next = self.is_name(name);
        self.next += usize::from(is_next);
        is_next
    }

    fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.skip_symbol(symbol) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{symbol}`")))
    }

    fn expect_name(&mut self, name: &str) -> Result<()> {
        if self.skip_name(name) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{name}`")))
    }

    fn name(&mut self) -> Result<Box<str>> {
        match self.tokens.get(self.next) {
            Some(Token::Name(name)) => {
                self.next += 1;
                Ok(name.as_str().into())
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    fn unexpected(&self, expected: &str) -> Fault {
        let found = match self.peek() {
            None => "its end".to_owned(),
            Some(Token::Text(_)) => "text".to_owned(),
            Some(Token::Name(name)) => format!("`{name}`"),
            Some(Token::String(text)) => format!("'{text}'"),
            Some(Token::Integer(number)) => number.to_string(),
            Some(Token::Float(number)) => number.to_string(),
            Some(Token::Symbol(symbol)) => format!("`{symbol}`"),
            Some(Token::TagStart) => "`{%`".to_owned(),
            Some(Token::TagEnd) => "`%}`".to_owned(),
            Some(Token::OutputStart) => "`{{`".to_owned(),
            Some(Token::OutputEnd) => "`}}`".to_owned(),
        };
        Fault::Refused(format!("the template has {found} in place of {expected}"))
    }

    fn end_of_tag(&mut self) -> Result<()> {
        if self.peek() == Some(&Token::TagEnd) {
            self.next += 1;
            return Ok(());
        }
        Err(self.unexpected("`%}`"))
    }

    /// Parses a nested construct.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            let limit = format!("the template nests deeper than {MAX_DEPTH} levels");
            return Err(Fault::Limit(limit));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Parses up to a tag of one of these names, or up to the template's end. The next token is then the tag's name.
    fn statements(&mut self, ends: &[&str]) -> Result<Vec<Statement>> {
        let mut statements = Vec::new();
        while let Some(token) = self.peek() {
            match token {
                Token::Text(text) => {
                    statements.push(Statement::Text(Text::trusted(text)));
                    self.next += 1;
                }
                Token::OutputStart => {
                    self.next += 1;
                    let expression = self.nested(|parser| parser.tuple(true))?;
                    statements.push(Statement::Output(expression));
                    if self.peek() != Some(&Token::OutputEnd) {
                        return Err(self.unexpected("`}}`"));
                    }
                    self.next += 1;
                }
                _ => {
                    self.next += 1;
                    if ends.iter().any(|end| self.is_name(end)) {
                        return Ok(statements);
                    }
                    statements.push(self.nested(Self::statement)?);
                }
            }
        }
        if ends.is_empty() {
            return Ok(statements);
        }
        Err(self.unexpected(&format!("`{}`", ends.join("` or `"))))
    }

    /// Parses the body of a tag and the tag that ends it.
    fn body(&mut self, end: &str) -> Result<Vec<Statement>> {
        self.end_of_tag()?;
        let body = self.statements(&[end])?;
        self.next += 1;
        self.end_of_tag()?;
        Ok(body)
    }

    fn statement(&mut self) -> Result<Statement> {
        let name = self.name()?;
        match &*name {
            "if" => self.condition(),
            "for" => self.for_loop(),
            "set" => self.set(),
            "with" => self.with(),
            "filter" => {
                let filters = self.filters()?;
                Ok(Statement::Filter(filters, self.body("endfilter")?))
            }
            "macro" => self.macro_definition(),
            "call" => self.call_block(),
            "generation" => Ok(Statement::Generation(self.body("endgeneration")?)),
            "break" | "continue" if self.loops == 0 => {
                refused(format!("the template has `{name}` outside of a loop"))
            }
            "break" => self.end_of_tag().map(|()| Statement::Break),
            "continue" => self.end_of_tag().map(|()| Statement::Continue),
            _ => unsupported(format!("the tag `{name}`")),
        }
    }

    fn condition(&mut self) -> Result<Statement> {
        let mut branches = Vec::new();
        loop {
            let condition = self.tuple(true)?;
            self.end_of_tag()?;
            let body = self.statements(&["elif", "else", "endif"])?;
            branches.push((condition, body));
            if self.skip_name("elif") {
                continue;
            }
            let otherwise = if self.skip_name("else") {
                self.end_of_tag()?;
                self.statements(&["endif"])?
            } else {
                Vec::new()
            };
            self.next += 1;
            self.end_of_tag()?;
            return Ok(Statement::If(branches, otherwise));
        }
    }

    fn for_loop(&mut self) -> Result<Statement> {
        let target = self.targets()?;
        self.expect_name("in")?;
        let iterable = self.tuple(false)?;
        let condition = self.skip_name("if");
        let condition = condition.then(|| self.expression()).transpose()?;
        if self.is_name("recursive") {
            return unsupported("the tag `for` with `recursive`");
        }
        self.end_of_tag()?;
        self.loops += 1;
        let body = self.statements(&["endfor", "else"]);
        self.loops -= 1;
        let body = body?;
        let otherwise = if self.skip_name("else") {
            self.end_of_tag()?;
            self.statements(&["endfor"])?
        } else {
            Vec::new()
        };
        self.next += 1;
        self.end_of_tag()?;
        Ok(Statement::For(Box::new(For {
            target,
            iterable,
            condition,
            body,
            otherwise,
        })))
    }

    /// Parses targets with commas between them.
    fn targets(&mut self) -> Result<Target> {
        let first = self.target()?;
        if !self.is_symbol(",") {
            return Ok(first);
        }
        let mut targets = vec![first];
        while self.skip_symbol(",") {
            if !matches!(self.peek(), Some(Token::Name(_) | Token::Symbol("("))) {
                break;
            }
            targets.push(self.target()?);
        }
        Ok(Target::Tuple(targets))
    }

    fn target(&mut self) -> Result<Target> {
        if self.skip_symbol("(") {
            let targets = self.nested(Self::targets)?;
            self.expect_symbol(")")?;
            return Ok(targets);
        }
        let name = self.name()?;
        if self.skip_symbol(".") {
            return Ok(Target::Attribute(name, self.name()?));
        }
        Ok(Target::Name(name))
    }

    fn set(&mut self) -> Result<Statement> {
        let target = self.targets()?;
        if self.skip_symbol("=") {
            let value = self.tuple(true)?;
            self.end_of_tag()?;
            return Ok(Statement::Set(target, value));
        }
        let filters = if self.skip_symbol("|") {
            self.filters()?
        } else {
            Vec::new()
        };
        Ok(Statement::SetBlock(target, filters, self.body("endset")?))
    }

    fn with(&mut self) -> Result<Statement> {
        let mut assignments = Vec::new();
        while self.peek() != Some(&Token::TagEnd) {
            if !assignments.is_empty() {
                self.expect_symbol(",")?;
            }
            let target = self.target()?;
            self.expect_symbol("=")?;
            assignments.push((target, self.expression()?));
        }
        Ok(Statement::With(assignments, self.body("endwith")?))
    }

    fn macro_definition(&mut self) -> Result<Statement> {
        let name = self.name()?;
        let parameters = self.parameters()?;
        let body = self.macro_body("endmacro")?;
        Ok(Statement::Macro(Macro {
            name,
            parameters,
            body,
        }))
    }

    fn macro_body(&mut self, end: &str) -> Result<Vec<Statement>> {
        let loops = std::mem::take(&mut self.loops);
        let body = self.body(end);
        self.loops = loops;
        body
    }

    fn parameters(&mut self) -> Result<Vec<(Box<str>, Option<Expression>)>> {
        self.expect_symbol("(")?;
        let mut parameters = Vec::new();
        while !self.skip_symbol(")") {
            if !parameters.is_empty() {
                self.expect_symbol(",")?;
                if self.skip_symbol(")") {
                    break;
                }
            }
            let name = self.name()?;
            let default = self.skip_symbol("=");
            let default = default.then(|| self.expression()).transpose()?;
            parameters.push((name, default));
        }
        Ok(parameters)
    }

    fn call_block(&mut self) -> Result<Statement> {
        let parameters = if self.is_symbol("(") {
            self.parameters()?
        } else {
            Vec::new()
        };
        let call = self.expression()?;
        let body = self.macro_body("endcall")?;
        let name = "caller".into();
        let caller = Macro {
            name,
            parameters,
            body,
        };
        Ok(Statement::Call(call, caller))
    }
}
