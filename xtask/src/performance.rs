//! The pages of `docs/performance`: a head that people write, and a section for each report of a benchmark.

use crate::project::Project;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

/// Writes `report` into the page of the benchmark `name`. It replaces the section with the same heading, which
/// names the machine.
pub(crate) fn save(project: &Project, name: &str, report: &Path) -> Result<()> {
    let page = project.root.join(format!("docs/performance/{name}.md"));
    let section = read(report)?;
    ensure!(
        section.starts_with("## "),
        "{} does not start with a heading",
        report.display()
    );
    fs::write(&page, with_section(&read(&page)?, &section))?;
    println!("{}", page.display());
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn with_section(page: &str, section: &str) -> String {
    let mut parts: Vec<&str> = page.split("\n## ").map(str::trim_end).collect();
    let section = section["## ".len()..].trim_end();
    let heading = |part: &str| part.lines().next().map(str::to_owned);
    let same = |part: &&mut &str| heading(part) == heading(section);
    match parts.iter_mut().skip(1).find(same) {
        Some(part) => *part = section,
        None => parts.push(section),
    }
    parts.join("\n\n## ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::with_section;

    const PAGE: &str = "# SIMD\n\nText.\n\n## Xeon\n\n| old |\n\n## EPYC\n\n| other |\n";

    #[test]
    fn sections_of_the_same_machine_are_replaced() {
        let expected = PAGE.replace("old", "new");
        assert_eq!(with_section(PAGE, "## Xeon\n\n| new |\n"), expected);
    }

    #[test]
    fn sections_of_other_machines_are_appended() {
        let section = "## M4\n\n| new |\n";
        let expected = format!("{PAGE}\n{section}");
        assert_eq!(with_section(PAGE, section), expected);
    }
}
