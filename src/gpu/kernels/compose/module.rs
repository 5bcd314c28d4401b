//! A file's imports, directives and declarations.

use super::condition::Condition;
use super::{Error, Result, identifiers};

/// A file of `shaders/`.
#[derive(Debug)]
pub(crate) struct Module {
    /// The file's path in `shaders/`, for errors.
    pub(super) file: String,
    pub(super) imports: Vec<Import>,
    /// `enable` and `diagnostic`.
    pub(super) directives: Vec<Declaration>,
    pub(super) declarations: Vec<Declaration>,
}

/// A name that a file has from another.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) name: String,
    pub(super) from: Source,
    condition: Condition,
    pub(super) line: usize,
}

/// The origin of an import.
#[derive(Debug, PartialEq)]
pub(super) enum Source {
    /// A file, by its path in `shaders/` without the extension.
    File(String),
    /// The kernel that is being composed.
    Kernel,
    /// The constants that the host gives.
    Constants,
}

/// A declaration or directive, without comments and indentation, in lines that end.
#[derive(Debug)]
pub(super) struct Declaration {
    pub(super) name: String,
    pub(super) text: String,
    condition: Condition,
    pub(super) line: usize,
}

/// A statement or a declaration: it ends with a semicolon or a brace, and has the line on which it begins.
struct Statement {
    text: String,
    line: usize,
}

impl Module {
    /// Parses a file.
    pub(super) fn parse(file: &str, source: &str) -> Result<Self> {
        let mut module = Self {
            file: file.to_owned(),
            imports: Vec::new(),
            directives: Vec::new(),
            declarations: Vec::new(),
        };
        let mut earlier = None;
        for statement in statements(file, source)? {
            let (condition, text) = conditional(&statement, &mut earlier, file)?;
            module.add(text, condition, statement.line)?;
        }
        Ok(module)
    }

    fn add(&mut self, text: &str, condition: Condition, line: usize) -> Result<()> {
        if let Some(path) = text.strip_prefix("import ") {
            let imports = imports(path, &condition, line);
            let message = "an import is `import package::folder::file::{names};` or `import constants::{names};`";
            self.imports
                .extend(imports.ok_or_else(|| Error::new(&self.file, line, message))?);
            return Ok(());
        }
        let is_directive = ["enable ", "diagnostic(", "requires "]
            .iter()
            .any(|word| text.starts_with(word));
        let name = if is_directive {
            Some(text)
        } else {
            declared_name(text)
        };
        let name = name
            .ok_or_else(|| Error::new(&self.file, line, "neither an import nor a declaration"))?;
        let declaration = Declaration {
            name: name.to_owned(),
            text: format!("{text}\n"),
            condition,
            line,
        };
        let list = if is_directive {
            &mut self.directives
        } else {
            &mut self.declarations
        };
        list.push(declaration);
        Ok(())
    }

    /// Returns the declaration of a name, with features.
    pub(super) fn declaration(&self, name: &str, features: &[&str]) -> Option<&Declaration> {
        let mut declarations = self.declarations.iter();
        declarations.find(|declaration| declaration.name == name && declaration.holds(features))
    }

    /// Returns the import of a name, with features.
    pub(super) fn import(&self, name: &str, features: &[&str]) -> Option<&Import> {
        let mut imports = self.imports.iter();
        imports.find(|import| import.name == name && import.condition.holds(features))
    }

    /// Returns whether any declaration refers to a name.
    pub(super) fn uses(&self, name: &str) -> bool {
        let mut declarations = self.declarations.iter();
        declarations.any(|declaration| identifiers(&declaration.text).any(|word| word == name))
    }

    /// Returns an error at a line of this file.
    pub(super) fn error(&self, line: usize, message: impl Into<String>) -> Error {
        Error::new(&self.file, line, message)
    }
}

impl Declaration {
    pub(super) fn holds(&self, features: &[&str]) -> bool {
        self.condition.holds(features)
    }
}

/// Splits a file into statements, without comments and indentation.
fn statements(file: &str, source: &str) -> Result<Vec<Statement>> {
    let mut statements = Vec::new();
    let mut current = Statement {
        text: String::new(),
        line: 0,
    };
    let mut depth = 0_usize;
    for (index, line) in source.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default().trim();
        if code.is_empty() {
            continue;
        }
        if current.text.is_empty() {
            current.line = index + 1;
        } else {
            current.text.push('\n');
        }
        current.text.push_str(code);
        if let Some(end) = end_of_statement(code, &mut depth) {
            if end < code.len() {
                return Err(Error::new(
                    file,
                    index + 1,
                    "a declaration begins on a line of its own",
                ));
            }
            statements.push(std::mem::replace(
                &mut current,
                Statement {
                    text: String::new(),
                    line: 0,
                },
            ));
        }
    }
    match current.line {
        0 => Ok(statements),
        line => Err(Error::new(file, line, "this declaration does not end")),
    }
}

/// Returns where a statement ends in a line, given the number of brackets open at its beginning.
fn end_of_statement(line: &str, depth: &mut usize) -> Option<usize> {
    for (index, character) in line.char_indices() {
        match character {
            '(' | '[' | '{' => *depth += 1,
            ')' | ']' | '}' => *depth = depth.saturating_sub(1),
            _ => {}
        }
        let ends = matches!(character, ';' | '}') && *depth == 0;
        // An import's names end with a brace before the semicolon.
        if ends && !line[index + 1..].starts_with(';') {
            return Some(index + 1);
        }
    }
    None
}

/// Returns a statement's condition and the text that follows. `earlier` is the condition of an `@if` right before.
fn conditional<'s>(
    statement: &'s Statement,
    earlier: &mut Option<Condition>,
    file: &str,
) -> Result<(Condition, &'s str)> {
    let Statement { text, line } = statement;
    let before = earlier.take();
    if let Some(rest) = text.strip_prefix("@else") {
        let before = before
            .ok_or_else(|| Error::new(file, *line, "`@else` without an `@if` right before"))?;
        return Ok((before.not(), rest.trim_start()));
    }
    let Some(rest) = text.strip_prefix("@if(") else {
        return Ok((Condition::Always, text));
    };
    let mut depth = 1_usize;
    let end = rest.find(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let end = end.ok_or_else(|| Error::new(file, *line, "`@if` without a closing parenthesis"))?;
    let condition = Condition::parse(&rest[..end], file, *line)?;
    *earlier = Some(condition.clone());
    Ok((condition, rest[end + 1..].trim_start()))
}

/// Returns the imports of a statement, after the word `import`.
fn imports(path: &str, condition: &Condition, line: usize) -> Option<Vec<Import>> {
    let (path, names) = path.strip_suffix(';')?.rsplit_once("::")?;
    let names = match names.strip_prefix('{') {
        Some(list) => list.strip_suffix('}')?,
        None => names,
    };
    let names = names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let import = |name: &str| {
        let is_name = identifiers(name).eq([name]);
        is_name.then_some(Import {
            name: name.to_owned(),
            from: source(path)?,
            condition: condition.clone(),
            line,
        })
    };
    names.map(import).collect()
}

fn source(path: &str) -> Option<Source> {
    match path.strip_prefix("package::") {
        Some("kernel") => Some(Source::Kernel),
        Some(file) => Some(Source::File(file.replace("::", "/"))),
        None => (path == "constants").then_some(Source::Constants),
    }
}

/// Returns the name that a declaration declares.
fn declared_name(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(attribute) = rest.strip_prefix('@') {
        let name = attribute.find(|character| !super::is_of_word(character))?;
        rest = attribute[name..].trim_start();
        if rest.starts_with('(') {
            rest = rest[rest.find(')')? + 1..].trim_start();
        }
    }
    let (keyword, rest) = rest.split_once([' ', '<'])?;
    let rest = match keyword {
        "var" => rest.split_once('>').map_or(rest, |(_, rest)| rest),
        "fn" | "const" | "override" | "struct" | "alias" => rest,
        _ => return None,
    };
    identifiers(rest).next()
}
