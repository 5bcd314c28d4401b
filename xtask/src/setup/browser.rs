//! A browser and its web driver, for the tests that run in one.

use super::{Requirement, apt};
use crate::progress::Progress;
use crate::project::{Project, find_program};
use anyhow::Result;
use std::env;
use std::path::PathBuf;

pub(super) struct Browser<'a> {
    pub(super) project: &'a Project,
}

impl Requirement for Browser<'_> {
    fn name(&self) -> String {
        "Chromium and chromedriver".to_owned()
    }

    fn is_met(&self) -> bool {
        chromium().is_some() && chromedriver().is_some()
    }

    fn install(&self, progress: &Progress) -> Result<()> {
        apt::install(self.project, progress, packages())
    }

    fn by_hand(&self) -> String {
        let apt = apt::by_hand(packages());
        format!("`{apt}`, or put both on PATH, or name them in CHROME and CHROMEDRIVER")
    }
}

fn packages() -> &'static [&'static str] {
    if apt::is_ubuntu() {
        &["chromium-browser", "chromium-chromedriver"]
    } else {
        &["chromium", "chromium-driver"]
    }
}

pub(super) fn chromium() -> Option<PathBuf> {
    named_by("CHROME").or_else(|| {
        find_program(&[
            "chromium",
            "chromium-browser",
            "google-chrome",
            "google-chrome-stable",
        ])
    })
}

pub(super) fn chromedriver() -> Option<PathBuf> {
    named_by("CHROMEDRIVER").or_else(|| find_program(&["chromedriver"]))
}

pub(super) fn named_by(variable: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .map(PathBuf::from)
        .filter(|program| program.is_file())
}
