//! A composer for shaders: it makes the WGSL of each kernel from the files of `shaders/`, which are written in a subset
//! of [WESL](https://wesl-lang.dev). `build.rs` includes this module and the crate's unit tests do; the library itself
//! only has what it writes.
//!
//! The subset:
//! - `import package::lib::math::exponential;` and `import package::lib::math::{exponential, logarithm};` name
//!   declarations of other files. They may be cyclic.
//! - `package::kernel` is the kernel that is being composed. `shaders/kernel.wgsl` declares what libraries expect of it.
//! - `constants` is the package of constants that the host gives: coefficients, and the sizes in a row of the table.
//! - `@if(vectors && !im2col)` and `@else` stand before imports, directives and declarations.
//! - A declaration begins and ends on lines of its own. Names are unique within a kernel; nothing is renamed.
//!
//! Of other files a kernel gets the declarations that its own need, directly or through others. Comments and
//! indentation are left out.

mod condition;
mod inline;
mod kernel;
mod library;
mod module;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;

pub(crate) use kernel::Target;
pub(crate) use library::Library;
pub(crate) use write::{own_text, tables};

use super::table;
use super::words::{is_of_word, words};

/// A mistake in a shader, where it stands.
#[derive(Debug, PartialEq)]
pub(crate) struct Error {
    /// The file's path in `shaders/`.
    pub(crate) file: String,
    /// The first line is 1.
    pub(crate) line: usize,
    pub(crate) message: String,
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    fn new(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shaders/{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for Error {}

/// Returns the identifiers in a text, except members of structures and components of vectors.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let mut after_point = false;
    words(text).filter(move |word| {
        let is_member = std::mem::replace(&mut after_point, word.ends_with('.'));
        word.starts_with(is_of_word) && !is_member
    })
}
