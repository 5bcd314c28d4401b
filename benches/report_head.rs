//! The head of a report: what it is of, when it was measured and by which command.

use std::process::Command;

/// Returns the heading, the date and the command of `cargo xtask bench`, as Markdown.
pub(crate) fn head(heading: &str, benchmark: &str) -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let separator = if arguments.is_empty() { "" } else { " -- " };
    let arguments = arguments.join(" ");
    let date = date().unwrap_or_else(|| "unknown".to_owned());
    format!(
        "## {heading}\n\n- date: {date}\n- command: `cargo xtask bench {benchmark}{separator}{arguments}`\n"
    )
}

/// Returns today's date, if the system has a program for it.
fn date() -> Option<String> {
    let output = Command::new("date").arg("+%F").output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
