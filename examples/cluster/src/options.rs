//! The program's options, and those of timely dataflow.

use anyhow::{Context, Error, Result, ensure};
use relampago::Backend;
use std::str::FromStr;

pub(crate) struct Options {
    /// The number of blocks of points on all machines.
    pub(crate) blocks: u64,
    /// The number of rounds of k-means.
    pub(crate) rounds: u64,
    pub(crate) backend: Backend,
    /// The threads of each device on SIMD, if not all.
    pub(crate) threads: Option<usize>,
}

impl Options {
    /// Reads the command line; prints the options and returns nothing after `--help`.
    pub(crate) fn from_args() -> Result<Option<(timely::Config, Self)>> {
        let mut options = getopts::Options::new();
        timely::Config::install_options(&mut options);
        options.optopt("b", "blocks", "blocks of 100,000 points (8)", "NUM");
        options.optopt("", "rounds", "rounds of k-means (10)", "NUM");
        options.optopt("", "backend", "auto, gpu, simd or cuda (auto)", "NAME");
        options.optopt("", "device-threads", "threads of a device on SIMD", "NUM");
        options.optflag("", "help", "print this help");
        let given = options.parse(std::env::args().skip(1))?;
        if given.opt_present("help") {
            print!("{}", options.usage("cluster [OPTIONS]"));
            return Ok(None);
        }
        let parsed = Self {
            blocks: value(&given, "blocks")?.unwrap_or(8),
            rounds: value(&given, "rounds")?.unwrap_or(10),
            backend: value(&given, "backend")?.unwrap_or(Backend::Auto),
            threads: value(&given, "device-threads")?,
        };
        ensure!(parsed.rounds > 0, "--rounds is 0, but must be at least 1");
        let config = timely::Config::from_matches(&given).map_err(Error::msg)?;
        Ok(Some((config, parsed)))
    }
}

/// Returns an option's value, if it is given.
fn value<T>(given: &getopts::Matches, name: &str) -> Result<Option<T>>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let text = given.opt_str(name);
    let parsed = text.map(|text| text.parse().with_context(|| format!("--{name} {text}")));
    parsed.transpose()
}
