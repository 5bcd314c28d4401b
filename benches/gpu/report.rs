//! The figures as JSON and as Markdown tables.

use crate::ceilings::Ceilings;
use crate::report_head::head;
use crate::{Row, Trip, peer};
use relampago::DeviceInfo;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

pub(crate) struct Report {
    pub(crate) device: DeviceInfo,
    pub(crate) rounds: usize,
    pub(crate) ceilings: Ceilings,
    pub(crate) rows: Vec<Row>,
    pub(crate) trips: Vec<Trip>,
    pub(crate) crossover: Vec<Trip>,
    pub(crate) peer: peer::Times,
}

impl Report {
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::write(folder.join("gpu.json"), format!("{:#}", self.json()))?;
        std::fs::write(folder.join("gpu.md"), self.markdown())
    }

    /// The better of two kernels that copy, a plain one and, where there is one, the peer's.
    fn copy_ceiling(&self) -> f64 {
        let theirs = self
            .peer
            .of("copy")
            .map_or(0.0, |time| 2e-9 * f64::from(1 << 28) / time);
        self.ceilings.copy.max(theirs)
    }

    /// The least time that the hardware could take, over ours.
    fn share(&self, row: &Row) -> Option<f64> {
        let least = (row.gflop / self.ceilings.fma).max(row.gbyte / self.copy_ceiling());
        row.ceiling.then_some(least / row.time)
    }

    pub(crate) fn markdown(&self) -> String {
        let adapter = self.device.adapter.as_deref().unwrap_or("Unknown adapter");
        let mut text = head(adapter, "gpu");
        let _ = writeln!(
            text,
            "- device: {}\n- medians of {} samples\n- ceilings: {:.1} TFLOP/s of multiply–adds, {:.0} GB/s of copies",
            self.device,
            self.rounds,
            self.ceilings.fma * 1e-3,
            self.copy_ceiling(),
        );
        if let Some(version) = &self.peer.version {
            let _ = writeln!(text, "- beside PyTorch {version}");
        }
        text.push_str("\n| on the GPU | µs | rate | share of ceiling | PyTorch, µs |\n");
        text.push_str("|---|---:|---:|---:|---:|\n");
        for row in &self.rows {
            let rate = if row.gflop > 0.0 {
                format!("{:.2} TFLOP/s", row.gflop * 1e-3 / row.time)
            } else {
                format!("{:.0} GB/s", row.gbyte / row.time)
            };
            let share = self.share(row);
            let share =
                share.map_or_else(|| "–".to_owned(), |share| format!("{:.0}%", 100.0 * share));
            let _ = writeln!(
                text,
                "| {} | {:.1} | {rate} | {share} | {} |",
                row.name,
                row.time * 1e6,
                micros(self.peer.of(&row.name)),
            );
        }
        self.add_trips(&mut text);
        text
    }

    fn add_trips(&self, text: &mut String) {
        text.push_str(
            "\n| from and to the host | µs | beside it, µs | PyTorch, µs |\n|---|---:|---:|---:|\n",
        );
        for trip in &self.trips {
            let peer = self.peer.of(&trip.name);
            let _ = writeln!(text, "{} {} |", trip.cells(), micros(peer));
        }
        text.push_str("\n| where the GPU gains | GPU, µs | SIMD, µs |\n|---|---:|---:|\n");
        for trip in &self.crossover {
            let _ = writeln!(text, "{}", trip.cells());
        }
    }

    fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "name": row.name,
                "microseconds": row.time * 1e6,
                "gflop": row.gflop,
                "gbyte": row.gbyte,
                "share of ceiling": self.share(row),
                "pytorch, microseconds": self.peer.of(&row.name).map(|time| time * 1e6),
            })
        });
        let trips = |trips: &[Trip]| -> Vec<Value> {
            let each = trips.iter().map(|trip| {
                let times = trip.times.iter().map(|(who, time)| (*who, time * 1e6));
                json!({
                    "name": trip.name,
                    "microseconds": times.collect::<Vec<_>>(),
                    "pytorch, microseconds": self.peer.of(&trip.name).map(|time| time * 1e6),
                })
            });
            each.collect()
        };
        json!({
            "device": self.device.to_string(),
            "rounds": self.rounds,
            "multiply-adds, GFLOP/s": self.ceilings.fma,
            "copies, GB/s": self.copy_ceiling(),
            "pytorch": self.peer.version,
            "resident": rows.collect::<Vec<_>>(),
            "round trips": trips(&self.trips),
            "crossover": trips(&self.crossover),
        })
    }
}

impl Trip {
    /// The row without its end: the name, our time, and the other's.
    fn cells(&self) -> String {
        let other = self.times.get(1).map(|&(_, time)| time);
        let ours = micros(Some(self.times[0].1));
        format!("| {} | {ours} | {} |", self.name, micros(other))
    }
}

fn micros(time: Option<f64>) -> String {
    time.map_or_else(|| "–".to_owned(), |time| format!("{:.1}", time * 1e6))
}
