//! The site: the pages of `www/` with the package, TypeScript and the documentation beside them.

use crate::docs;
use crate::files::{copy_tree, list};
use crate::project::Project;
use crate::setup::Tools;
use crate::typescript;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// The beginning of a link to a page of the documentation.
const LINK: &str = "href=\"docs/";

/// Assembles the site with the files of `package`, and with the documentation if `cargo xtask docs` built it. Returns the
/// site's folder. The page of conformance waits for `add_cases`.
pub(crate) fn assemble(project: &Project, tools: &Tools, package: &Path) -> Result<PathBuf> {
    let folder = project.target("site");
    project.sh.remove_path(&folder)?;
    copy_tree(&project.root.join("www"), &folder)?;
    copy_tree(package, &folder.join("relampago"))?;
    typescript::add(project, tools, &folder.join("typescript"))?;
    add_documentation(project, &folder)?;
    Ok(folder)
}

/// Writes the cases of the page of conformance.
pub(crate) fn add_cases(project: &Project, folder: &Path) -> Result<()> {
    let cases = project.example("conformance_cases", &[])?;
    // Renamed, so that no visitor reads half of it.
    let written = folder.join("cases.json.new");
    fs::write(&written, cases)?;
    Ok(fs::rename(written, folder.join("cases.json"))?)
}

/// Copies the documentation. Without one, the pages link to the repository's pages.
fn add_documentation(project: &Project, folder: &Path) -> Result<()> {
    let documentation = docs::folder(project);
    if documentation.join("index.html").is_file() {
        return copy_tree(&documentation, &folder.join("docs"));
    }
    for page in list(folder)? {
        if page
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            let text = fs::read_to_string(&page)?;
            fs::write(&page, with_links_to_repository(&text))?;
        }
    }
    Ok(())
}

/// Replaces links to pages of the documentation by the addresses of the repository's pages.
fn with_links_to_repository(page: &str) -> String {
    let (before, rest) = page.split_once(LINK).unwrap_or((page, ""));
    let links = rest.split(LINK).filter(|part| !part.is_empty());
    let links = links.map(|part| {
        let (target, rest) = part.split_once('"').unwrap_or((part, ""));
        let target = target.replacen(".html", ".md", 1);
        format!(
            "href=\"{}/blob/main/docs/{target}\"{rest}",
            docs::REPOSITORY
        )
    });
    [before.to_owned()].into_iter().chain(links).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_documentation_lead_to_the_repository() {
        let page = r#"<a href="docs/guide/rust.html#features">a</a> <a href="talk.html">b</a>"#;
        let expected = format!(
            r#"<a href="{}/blob/main/docs/guide/rust.md#features">a</a> <a href="talk.html">b</a>"#,
            docs::REPOSITORY
        );
        assert_eq!(with_links_to_repository(page), expected);
    }
}
