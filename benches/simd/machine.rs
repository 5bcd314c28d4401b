//! The facts about the machine that a reader of the figures needs.

use relampago::DeviceInfo;
use serde_json::{Value, json};
use std::fs;

/// Processor, cores, load, instruction set and versions of all contestants.
pub(crate) fn describe(info: &DeviceInfo) -> Value {
    json!({
        "processor": processor(),
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "load before": load(),
        "relampago": info.to_string(),
        "gemm": locked("gemm"),
        "matrixmultiply": locked("matrixmultiply"),
    })
}

/// Returns the load average of the last minute, if the system reports it.
pub(crate) fn load() -> Option<String> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split(' ').next().map(str::to_owned)
}

fn processor() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn locked(package: &str) -> Option<&'static str> {
    const LOCK: &str = include_str!("../../Cargo.lock");
    let entry = format!("name = \"{package}\"\nversion = \"");
    LOCK.split_once(&entry)?.1.split('"').next()
}
