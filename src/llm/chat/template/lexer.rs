//! The tokens of a template, with the white space of jinja2's `trim_blocks` and `lstrip_blocks`.

use super::fault::{Fault, Result, refused};

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// Text between tags.
    Text(String),
    /// `{{`
    OutputStart,
    /// `}}`
    OutputEnd,
    /// `{%`
    TagStart,
    /// `%}`
    TagEnd,
    Name(String),
    String(String),
    Integer(i64),
    Float(f64),
    /// An operator, a bracket or a separator.
    Symbol(&'static str),
}

/// Symbols, longer ones before their beginnings.
const SYMBOLS: [&str; 26] = [
    "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "[", "]", "(", ")", "{", "}",
    ">", "<", "=", ".", ":", "|", ",", ";",
];

/// Splits a template into tokens.
pub(super) fn tokens(source: &str) -> Result<Vec<Token>> {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut lexer = Lexer {
        rest: source.strip_suffix('\n').unwrap_or(&source),
        tokens: Vec::new(),
        starts_line: true,
    };
    while !lexer.rest.is_empty() {
        lexer.text()?;
    }
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    rest: &'a str,
    tokens: Vec<Token>,
    /// Whether the text that was read last ends with a newline or is empty.
    starts_line: bool,
}

impl<'a> Lexer<'a> {
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    /// Reads text, and the tag after it.
    fn text(&mut self) -> Result<()> {
        let starts = self.rest.match_indices('{');
        let mut starts = starts.map(|(at, _)| at);
        let is_start =
            |at: &usize| matches!(self.rest.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#'));
        let Some(start) = starts.find(is_start) else {
            let text = self.take(self.rest.len());
            self.push_text(text);
            return Ok(());
        };
        let text = self.take(start);
        let (opening, sign) = (self.rest.as_bytes()[1], self.rest.as_bytes().get(2));
        let text = self.before_tag(text, opening != b'{', sign);
        self.push_text(text);
        self.take(2);
        if matches!(sign, Some(b'-' | b'+')) {
            self.take(1);
        }
        match opening {
            b'#' => self.comment(),
            b'%' => match self.raw_start() {
                Some(len) => self.raw(len),
                None => self.tag(Token::TagStart, Token::TagEnd),
            },
            _ => self.tag(Token::OutputStart, Token::OutputEnd),
        }
    }

    /// The text before a tag, without the white space that the tag takes.
    fn before_tag(&self, text: &'a str, is_block: bool, sign: Option<&u8>) -> &'a str {
        match sign {
            Some(b'-') => text.trim_end_matches(is_space),
            Some(b'+') => text,
            _ if is_block => {
                let line = text.rfind('\n').map_or(0, |at| at + 1);
                let is_blank = text[line..].chars().all(is_space);
                let strips = is_blank && (line > 0 || self.starts_line);
                if strips { &text[..line] } else { text }
            }
            _ => text,
        }
    }

    fn push_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.tokens.push(Token::Text(text.to_owned()));
        }
    }

    /// Reads the end of a tag: its sign, its two characters and the white space that it takes.
    fn end(&mut self, end: &str, takes_newline: bool) -> bool {
        let sign = self.rest.as_bytes().first().copied();
        let signed = matches!(sign, Some(b'-')) || (end != "}}" && matches!(sign, Some(b'+')));
        if !self.rest[usize::from(signed)..].starts_with(end) {
            return false;
        }
        self.take(end.len() + usize::from(signed));
        let space = if signed && sign == Some(b'-') {
            self.rest.len() - self.rest.trim_start_matches(is_space).len()
        } else {
            usize::from(!signed && takes_newline && self.rest.starts_with('\n'))
        };
        let space = self.take(space);
        self.starts_line = space.ends_with('\n');
        true
    }

    fn comment(&mut self) -> Result<()> {
        // jinja2 takes one that begins where the template ends.
        if self.rest.is_empty() {
            return Ok(());
        }
        let Some(end) = self.rest.find("#}") else {
            return refused("the template has a comment without an end");
        };
        let sign = self.rest[..end].ends_with(['-', '+']);
        self.take(end - usize::from(sign));
        self.end("#}", true);
        Ok(())
    }

    /// The length of ` raw %}`, if the tag is that.
    fn raw_start(&self) -> Option<usize> {
        let rest = self.rest.trim_start_matches(is_space);
        let rest = rest.strip_prefix("raw")?.trim_start_matches(is_space);
        let (rest, strips) = match rest.strip_prefix('-') {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let rest = rest.strip_prefix("%}")?;
        let rest = if strips {
            rest.trim_start_matches(is_space)
        } else {
            rest
        };
        Some(self.rest.len() - rest.len())
    }

    fn raw(&mut self, start: usize) -> Result<()> {
        self.starts_line = self.take(start).ends_with('\n');
        if self.rest.is_empty() {
            return Ok(());
        }
        let tags = self.rest.match_indices("{%");
        let mut ends = tags.filter_map(|(at, _)| {
            let tag = &self.rest[at + 2..];
            let sign = usize::from(tag.starts_with(['-', '+']));
            let name = tag[sign..].trim_start_matches(is_space);
            let after = name.strip_prefix("endraw")?.trim_start_matches(is_space);
            let ends = after
                .strip_prefix(['-', '+'])
                .unwrap_or(after)
                .starts_with("%}");
            ends.then_some((at, tag.len() - after.len()))
        });
        let Some((at, name)) = ends.next() else {
            return refused("the template has `raw` without `endraw`");
        };
        let sign = self.rest.as_bytes().get(at + 2).copied();
        let text = self.take(at);
        let text = self.before_tag(text, true, sign.as_ref());
        self.push_text(text);
        self.take(2 + name);
        self.end("%}", true);
        Ok(())
    }

    /// Reads the tokens of a tag and its end.
    fn tag(&mut self, start: Token, end: Token) -> Result<()> {
        let closing = if end == Token::TagEnd { "%}" } else { "}}" };
        self.tokens.push(start);
        let mut brackets: Vec<&str> = Vec::new();
        loop {
            self.rest = self.rest.trim_start_matches(is_space);
            if brackets.is_empty() && self.end(closing, end == Token::TagEnd) {
                self.tokens.push(end);
                return Ok(());
            }
            let token = self.token()?;
            match token {
                Token::Symbol("(") => brackets.push(")"),
                Token::Symbol("[") => brackets.push("]"),
                Token::Symbol("{") => brackets.push("}"),
                Token::Symbol(symbol @ (")" | "]" | "}")) if brackets.pop() != Some(symbol) => {
                    return refused(format!(
                        "the template has a `{symbol}` without its beginning"
                    ));
                }
                _ => {}
            }
            self.tokens.push(token);
        }
    }

    fn token(&mut self) -> Result<Token> {
        let Some(first) = self.rest.chars().next() else {
            return refused("the template has a tag without an end");
        };
        if first.is_alphabetic() || first == '_' {
            let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
            let len = self
                .rest
                .find(|c| !is_of_name(c))
                .unwrap_or(self.rest.len());
            return Ok(Token::Name(self.take(len).to_owned()));
        }
        if first.is_ascii_digit() {
            return self.number();
        }
        if let '\'' | '"' = first {
            return self.string(first);
        }
        let symbol = SYMBOLS
            .into_iter()
            .find(|symbol| self.rest.starts_with(symbol));
        let Some(symbol) = symbol else {
            return refused(format!("the template has the character `{first}` in a tag"));
        };
        self.take(symbol.len());
        Ok(Token::Symbol(symbol))
    }

    fn number(&mut self) -> Result<Token> {
        let digits = |text: &str| {
            text.bytes()
                .take_while(|b| b.is_ascii_digit() || *b == b'_')
                .count()
        };
        let radix = match self.rest.get(..2) {
            Some("0x" | "0X") => 16,
            Some("0o" | "0O") => 8,
            Some("0b" | "0B") => 2,
            _ => 10,
        };
        let fault = || Fault::Unsupported("an integer of more than 64 bits".to_owned());
        if radix != 10 {
            self.take(2);
            let len = self
                .rest
                .bytes()
                .take_while(u8::is_ascii_alphanumeric)
                .count();
            let number = i64::from_str_radix(self.take(len), radix);
            return number.map(Token::Integer).map_err(|_| fault());
        }
        let mut len = digits(self.rest);
        let mut is_float = false;
        // After a dot stands the index of an element, not a number with a fraction.
        let after_dot = self.tokens.last() == Some(&Token::Symbol("."));
        let fraction = self.rest[len..].strip_prefix('.').map_or(0, digits);
        if fraction > 0 && !after_dot {
            (len, is_float) = (len + 1 + fraction, true);
        }
        if let Some(exponent) = self.rest[len..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['-', '+']));
            let count = digits(&exponent[sign..]);
            if count > 0 {
                (len, is_float) = (len + 1 + sign + count, true);
            }
        }
        let number = self.take(len).replace('_', "");
        if is_float {
            return Ok(Token::Float(number.parse().unwrap_or(f64::INFINITY)));
        }
        number.parse().map(Token::Integer).map_err(|_| fault())
    }

    fn string(&mut self, quote: char) -> Result<Token> {
        let mut escaped = false;
        let end = self.rest[1..].find(|c| {
            let ends = !escaped && c == quote;
            escaped = !escaped && c == '\\';
            ends
        });
        let Some(end) = end else {
            return refused("the template has a string without an end");
        };
        let text = self.take(end + 2);
        unescaped(&text[1..=end]).map(Token::String)
    }
}

/// The text of a string literal, whose escapes are those of Python.
fn unescaped(text: &str) -> Result<String> {
    let (mut result, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('\\') {
        result.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(kind) = rest.chars().next() else {
            return refused("the template has a string that ends with `\\`");
        };
        rest = &rest[kind.len_utf8()..];
        match kind {
            '\n' => {}
            '\\' | '\'' | '"' => result.push(kind),
            'a' => result.push('\u{7}'),
            'b' => result.push('\u{8}'),
            'f' => result.push('\u{c}'),
            'n' => result.push('\n'),
            'r' => result.push('\r'),
            't' => result.push('\t'),
            'v' => result.push('\u{b}'),
            'x' => rest = code(rest, 2, &mut result)?,
            'u' => rest = code(rest, 4, &mut result)?,
            'U' => rest = code(rest, 8, &mut result)?,
            '0'..='7' => {
                let more = rest
                    .bytes()
                    .take(2)
                    .take_while(|b| (b'0'..=b'7').contains(b))
                    .count();
                let digits = format!("{kind}{}", &rest[..more]);
                let code = u32::from_str_radix(&digits, 8).unwrap_or_default();
                result.extend(char::from_u32(code));
                rest = &rest[more..];
            }
            'N' => {
                return Err(Fault::Unsupported(
                    "the escape `\\N` in a string".to_owned(),
                ));
            }
            other => result.extend(['\\', other]),
        }
    }
    result.push_str(rest);
    Ok(result)
}

/// Appends the character of a code in hexadecimal digits, and returns the text after them.
fn code<'a>(text: &'a str, digits: usize, to: &mut String) -> Result<&'a str> {
    let number = text
        .get(..digits)
        .and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let Some(character) = number.and_then(char::from_u32) else {
        return refused("the template has a string with an escape of no character");
    };
    to.push(character);
    Ok(&text[digits..])
}

/// Whether Python counts a character as white space.
pub(super) fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}
