//! Debian's and Ubuntu's packages.

use crate::progress::Progress;
use crate::project::{Project, find_program};
use anyhow::{Result, bail};
use std::fs;
use std::sync::{Mutex, PoisonError};
use xshell::cmd;

/// Whether the package lists were refreshed in this run. The first installation refreshes them. The lock is held while
/// apt works, because apt refuses to run twice at the same time.
static UPDATED: Mutex<bool> = Mutex::new(false);

pub(super) fn install(project: &Project, progress: &Progress, packages: &[&str]) -> Result<()> {
    let sh = &project.sh;
    if find_program(&["apt-get"]).is_none() {
        bail!("this is not a Debian or Ubuntu machine");
    }
    let (env, args) = elevation(project)?;
    let mut updated = UPDATED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*updated {
        progress.run(cmd!(sh, "{env} {args...} apt-get update -qq"))?;
        *updated = true;
    }
    let install = cmd!(
        sh,
        "{env} {args...} DEBIAN_FRONTEND=noninteractive apt-get install"
    )
    .args(["-y", "--no-install-recommends"])
    .args(packages);
    progress.run(install)
}

/// The line to type where `install` may not act.
pub(super) fn by_hand(packages: &[&str]) -> String {
    format!("sudo apt-get install {}", packages.join(" "))
}

pub(super) fn is_ubuntu() -> bool {
    fs::read_to_string("/etc/os-release")
        .is_ok_and(|release| release.lines().any(|line| line == "ID=ubuntu"))
}

/// `env` as root, by way of `sudo -n` where that asks for no password.
fn elevation(project: &Project) -> Result<(&'static str, &'static [&'static str])> {
    let sh = &project.sh;
    if cmd!(sh, "id -u").quiet().read()? == "0" {
        return Ok(("env", &[]));
    }
    let sudo = find_program(&["sudo"]).is_some()
        && cmd!(sh, "sudo -n true")
            .quiet()
            .ignore_stdout()
            .ignore_stderr()
            .run()
            .is_ok();
    if !sudo {
        bail!("installing packages needs root, or sudo without a password");
    }
    Ok(("sudo", &["-n", "env"]))
}
