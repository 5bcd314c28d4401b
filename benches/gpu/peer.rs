//! `PyTorch` beside us, where it is installed and sees a GPU.

use std::collections::BTreeMap;
use std::process::Command;

/// Seconds by the names of rows.
#[derive(Default)]
pub(crate) struct Times {
    pub(crate) version: Option<String>,
    seconds: BTreeMap<String, f64>,
}

impl Times {
    pub(crate) fn of(&self, name: &str) -> Option<f64> {
        self.seconds.get(name).copied()
    }
}

pub(crate) fn measure() -> Times {
    const SCRIPT: &str = include_str!("torch_rows.py");
    const VERSION: &str =
        "import torch; assert torch.cuda.is_available(); print(torch.__version__)";
    let Some(version) = python(VERSION) else {
        return Times::default();
    };
    let output = python(SCRIPT).unwrap_or_default();
    let seconds = output.lines().filter_map(|line| {
        let (name, seconds) = line.split_once('\t')?;
        Some((name.to_owned(), seconds.parse().ok()?))
    });
    Times {
        version: Some(version.trim().to_owned()),
        seconds: seconds.collect(),
    }
}

/// Returns a program's output, if there is a Python interpreter and the program succeeds.
fn python(program: &str) -> Option<String> {
    let output = Command::new("python3")
        .args(["-c", program])
        .output()
        .ok()?;
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    String::from_utf8(output.stdout).ok()
}
