//! Links of the book's pages. A link to a page of the book or of `www/` becomes relative, also if it names the page by
//! its address in the repository; a link to another file of the repository becomes that file's address.

use super::pages::Pages;
use anyhow::{Result, ensure};
use std::path::{Component, Path, PathBuf};

pub(crate) const REPOSITORY: &str = "https://github.com/OWNER/relampago";

/// Parts of the site that are not pages of the book.
const BESIDE_THE_BOOK: [&str; 2] = ["docs/rust", "docs/js"];

/// Returns the text of `page`, a path in the repository, with its links rewritten. Fails if a link names a file
/// that does not exist. Code blocks are left as they are.
pub(super) fn rewritten(text: &str, page: &Path, pages: &Pages, root: &Path) -> Result<String> {
    // The summary lists pages by their paths in the book.
    if page.ends_with("SUMMARY.md") {
        return Ok(text.to_owned());
    }
    let mut result = String::with_capacity(text.len());
    let mut in_code = false;
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        if in_code || is_fence {
            result.push_str(line);
            continue;
        }
        let mut rest = line;
        while let Some((before, target, after)) = next_link(rest) {
            result.push_str(before);
            result.push_str(&address(target, page, pages, root)?);
            rest = after;
        }
        result.push_str(rest);
    }
    Ok(result)
}

/// Splits `line` at the target of its first link: `[text](target)`.
fn next_link(line: &str) -> Option<(&str, &str, &str)> {
    let start = line.find("](")? + 2;
    let end = start + line[start..].find(')')?;
    Some((&line[..start], &line[start..end], &line[end..]))
}

fn address(target: &str, page: &Path, pages: &Pages, root: &Path) -> Result<String> {
    let of_repository = ["blob", "raw"]
        .iter()
        .find_map(|kind| target.strip_prefix(&format!("{REPOSITORY}/{kind}/main/")));
    if of_repository.is_none() && (target.contains("://") || target.starts_with('#')) {
        return Ok(target.to_owned());
    }
    let (path, anchor) = match of_repository.unwrap_or(target).split_once('#') {
        Some((path, anchor)) => (path, format!("#{anchor}")),
        None => (of_repository.unwrap_or(target), String::new()),
    };
    let path = match of_repository {
        Some(_) => PathBuf::from(path),
        None => normal(&page.with_file_name("").join(path)),
    };
    if let Some(in_book) = pages.get(&path) {
        let from = &pages[page];
        return Ok(format!("{}{anchor}", relative(from, in_book)));
    }
    let is_shown = path
        .extension()
        .is_some_and(|extension| extension == "html");
    if let Ok(page_of_site) = path.strip_prefix("www")
        && is_shown
        && root.join(&path).exists()
    {
        let above_the_book = Path::new("..").join(page_of_site);
        return Ok(format!(
            "{}{anchor}",
            relative(&pages[page], &above_the_book)
        ));
    }
    if BESIDE_THE_BOOK.iter().any(|part| path.starts_with(part)) {
        return Ok(target.to_owned());
    }
    ensure!(
        root.join(&path).exists(),
        "{}: the link {target} leads to no file of the repository",
        page.display()
    );
    Ok(format!("{REPOSITORY}/blob/main/{}{anchor}", path.display()))
}

/// Removes `..` and the name before it.
fn normal(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        if component == Component::ParentDir {
            result.pop();
        } else {
            result.push(component);
        }
    }
    result
}

/// Returns the link from the page `from` to `to`, both paths in the book.
fn relative(from: &Path, to: &Path) -> String {
    let up = "../".repeat(from.components().count() - 1);
    format!("{up}{}", to.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(line: &str) -> Result<String> {
        let pages = [
            ("README.md", "overview.md"),
            ("docs/guide/rust.md", "guide/rust.md"),
            ("docs/engines.md", "engines.md"),
        ];
        let pages = pages.map(|(from, to)| (from.into(), to.into())).into();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        rewritten(line, Path::new("docs/guide/rust.md"), &pages, &root)
    }

    #[test]
    fn links_to_pages_are_relative() {
        let by_address = format!("[a]({REPOSITORY}/blob/main/README.md#install)");
        assert_eq!(rewrite(&by_address).unwrap(), "[a](../overview.md#install)");
        assert_eq!(
            rewrite("[a](../engines.md) [b](#here)").unwrap(),
            "[a](../engines.md) [b](#here)"
        );
    }

    #[test]
    fn links_to_pages_of_the_site_lead_out_of_the_book() {
        let by_address = format!("[a]({REPOSITORY}/blob/main/www/talk.html)");
        assert_eq!(rewrite(&by_address).unwrap(), "[a](../../talk.html)");
        assert_eq!(
            rewrite("[a](../../www/index.html)").unwrap(),
            "[a](../../index.html)"
        );
    }

    #[test]
    fn links_to_other_files_lead_to_the_repository() {
        assert_eq!(
            rewrite("[a](../../Cargo.toml)").unwrap(),
            format!("[a]({REPOSITORY}/blob/main/Cargo.toml)")
        );
    }

    #[test]
    fn links_to_missing_files_are_errors() {
        assert!(rewrite("[a](../../absent.rs)").is_err());
        assert!(rewrite(&format!("[a]({REPOSITORY}/blob/main/absent.md)")).is_err());
    }

    #[test]
    fn code_is_left_alone() {
        let code = "```rust\nlet x = a[0](absent);\n```\n";
        assert_eq!(rewrite(code).unwrap(), code);
    }
}
