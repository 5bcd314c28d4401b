//! The book's pages: those of `docs/` and of the repository's root, with links that fit the site.

use super::links;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of `docs/` with pages and pictures; the empty name is `docs/` itself.
const FOLDERS: [&str; 4] = ["", "guide", "design", "performance"];

/// Pages of the repository's root, and their names in the book.
const OF_THE_ROOT: [(&str, &str); 4] = [
    ("README.md", "overview.md"),
    ("ARCHITECTURE.md", "architecture.md"),
    ("CONTRIBUTING.md", "contributing.md"),
    ("CHANGELOG.md", "changelog.md"),
];

/// Files of the repository by their paths, and their paths in the book.
pub(super) type Pages = BTreeMap<PathBuf, PathBuf>;

/// Writes the book's sources into `folder`.
pub(super) fn write(root: &Path, folder: &Path) -> Result<()> {
    let pages = find(root)?;
    let summary = fs::read_to_string(root.join("docs/SUMMARY.md"))?;
    for (from, to) in &pages {
        let (source, copy) = (root.join(from), folder.join(to));
        fs::create_dir_all(copy.parent().context("a page lies in a folder")?)?;
        if !is_page(from) {
            fs::copy(source, copy)?;
            continue;
        }
        let listed = summary.contains(&format!("({})", to.display()));
        ensure!(
            listed || from.ends_with("SUMMARY.md"),
            "docs/SUMMARY.md does not list {}",
            to.display()
        );
        let text = fs::read_to_string(source)?;
        fs::write(copy, links::rewritten(&text, from, &pages, root)?)?;
    }
    for file in ["book.toml", "run.js"] {
        fs::copy(root.join("docs").join(file), folder.join(file))?;
    }
    Ok(())
}

fn find(root: &Path) -> Result<Pages> {
    let mut pages = Pages::new();
    for (from, to) in OF_THE_ROOT {
        pages.insert(from.into(), to.into());
    }
    for folder in FOLDERS {
        let folder = Path::new("docs").join(folder);
        for entry in fs::read_dir(root.join(&folder))? {
            let path = folder.join(entry?.file_name());
            if is_page(&path) || is_picture(&path) {
                let name = path.strip_prefix("docs")?.to_path_buf();
                pages.insert(path, name);
            }
        }
    }
    Ok(pages)
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

fn is_picture(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jpg")
}
