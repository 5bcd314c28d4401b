//! Firefox and `WebKit`, for the tests that run in these, too. Their drivers: geckodriver is built by
//! cargo (see `cargo_tool`), `WebKit`'s comes with it.

use super::browser::named_by;
use super::{Requirement, apt};
use crate::progress::Progress;
use crate::project::{Project, find_program};
use anyhow::Result;
use std::fs;
use std::path::PathBuf;

pub(super) struct Firefox<'a> {
    pub(super) project: &'a Project,
}

impl Firefox<'_> {
    /// Ubuntu's package installs a snap.
    fn packages() -> &'static [&'static str] {
        if apt::is_ubuntu() {
            &["firefox"]
        } else {
            &["firefox-esr"]
        }
    }
}

impl Requirement for Firefox<'_> {
    fn name(&self) -> String {
        "Firefox".to_owned()
    }

    fn is_met(&self) -> bool {
        firefox().is_some()
    }

    fn install(&self, progress: &Progress) -> Result<()> {
        apt::install(self.project, progress, Self::packages())
    }

    fn by_hand(&self) -> String {
        let apt = apt::by_hand(Self::packages());
        format!("`{apt}`, or put Firefox on PATH, or name it in FIREFOX")
    }
}

/// Debian's and Ubuntu's names are the same.
const WEBKIT: &[&str] = &["webkit2gtk-driver", "xvfb", "xauth"];

pub(super) struct WebKit<'a> {
    pub(super) project: &'a Project,
}

impl Requirement for WebKit<'_> {
    fn name(&self) -> String {
        "WebKitGTK, its driver and Xvfb".to_owned()
    }

    /// `WebKit` is a Linux build; elsewhere the tests leave `WebKit` out.
    fn is_met(&self) -> bool {
        let driver = find_program(&["WebKitWebDriver"]);
        !cfg!(target_os = "linux")
            || minibrowser().is_some()
                && driver.is_some()
                && find_program(&["xvfb-run"]).is_some()
                && find_program(&["xauth"]).is_some()
    }

    fn install(&self, progress: &Progress) -> Result<()> {
        apt::install(self.project, progress, WEBKIT)
    }

    fn by_hand(&self) -> String {
        let apt = apt::by_hand(WEBKIT);
        format!(
            "`{apt}`, or put WebKitWebDriver and xvfb-run on PATH and name MiniBrowser in MINIBROWSER"
        )
    }
}

pub(super) fn firefox() -> Option<PathBuf> {
    named_by("FIREFOX").or_else(|| find_program(&["firefox-esr", "firefox"]))
}

/// `WebKit`'s own browser, which lies beside the library: `/usr/lib/TRIPLE/webkit2gtk-VERSION/`.
pub(super) fn minibrowser() -> Option<PathBuf> {
    let inside = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let lies_there = || {
        inside("/usr/lib".into())
            .flat_map(|triple| inside(triple.path()))
            .filter(|library| {
                library
                    .file_name()
                    .to_string_lossy()
                    .starts_with("webkit2gtk-")
            })
            .map(|library| library.path().join("MiniBrowser"))
            .find(|program| program.is_file())
    };
    named_by("MINIBROWSER").or_else(lies_there)
}
