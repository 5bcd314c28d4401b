//! Runs tests whose runner is content with finding none.

use anyhow::{Result, ensure};
use std::io::{BufRead, BufReader, PipeReader, pipe};
use std::process::Command;
use xshell::Cmd;

/// Runs `cmd`, which must succeed and report at least one test that passed.
pub(super) fn run(cmd: Cmd) -> Result<()> {
    println!("$ {cmd}");
    let (reader, writer) = pipe()?;
    let mut command = Command::from(cmd);
    let mut child = command.stdout(writer).spawn()?;
    // The pipe ends only when this process, too, has closed its writing end.
    drop(command);
    let passed = count_passed(reader)?;
    let status = child.wait()?;
    ensure!(status.success(), "the tests failed ({status})");
    ensure!(passed > 0, "no test ran");
    Ok(())
}

/// Passes the output on and adds up its lines `test result: ok. N passed; …`.
fn count_passed(output: PipeReader) -> Result<u64> {
    let mut passed = 0;
    for line in BufReader::new(output).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        println!("{line}");
        let result = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(" passed"));
        let count = result.and_then(|(before, _)| before.rsplit(' ').next()?.parse::<u64>().ok());
        passed += count.unwrap_or(0);
    }
    Ok(passed)
}
