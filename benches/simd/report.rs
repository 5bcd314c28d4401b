//! The figures as JSON, as a Markdown table and as a chart.

use crate::report_head::head;
use crate::{Row, machine};
use plotters::prelude::*;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

pub(crate) struct Report<'a> {
    machine: Value,
    rounds: usize,
    threads: usize,
    rows: &'a [Row],
}

impl Row {
    /// The best peer's median time over ours: more than 1 where we are faster. Ours on one thread is no peer.
    fn ratio(&self) -> f64 {
        let peers = self.contestants.iter().skip(1);
        let peers = peers.filter(|(name, _)| name != "relampago, 1 thread");
        let best_peer = peers.fold(f64::INFINITY, |best, (_, times)| best.min(times.median));
        best_peer / self.contestants[0].1.median
    }
}

impl<'a> Report<'a> {
    pub(crate) fn new(mut machine: Value, rounds: usize, threads: usize, rows: &'a [Row]) -> Self {
        machine["load after"] = json!(machine::load());
        Self {
            machine,
            rounds,
            threads,
            rows,
        }
    }

    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::write(folder.join("simd.json"), format!("{:#}", self.json()))?;
        std::fs::write(folder.join("simd.md"), self.markdown())?;
        let chart = self.chart().map_err(io::Error::other)?;
        std::fs::write(folder.join("simd.svg"), chart)
    }

    pub(crate) fn markdown(&self) -> String {
        let processor = self.machine["processor"].as_str();
        let processor = processor.unwrap_or("Unknown processor");
        let mut text = head(&format!("{processor}, threads: {}", self.threads), "simd");
        for (key, value) in self.machine.as_object().into_iter().flatten() {
            let _ = writeln!(
                text,
                "- {key}: {}",
                value.as_str().unwrap_or(&value.to_string())
            );
        }
        let _ = writeln!(text, "- medians of {} samples\n", self.rounds);
        text.push_str("| | µs | rate | peers, µs | best peer ÷ ours |\n|---|---|---|---|---|\n");
        for row in self.rows {
            let ours = row.contestants[0].1.median;
            let peers = row.contestants[1..].iter();
            let peers = peers.map(|(name, times)| format!("{name} {:.1}", times.median * 1e6));
            let _ = writeln!(
                text,
                "| {} | {:.1} | {:.1} {} | {} | {:.2} |",
                row.name,
                ours * 1e6,
                row.work / ours,
                row.unit,
                peers.collect::<Vec<_>>().join(", "),
                row.ratio(),
            );
        }
        text
    }

    fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let times = row.contestants.iter().map(|(name, times)| {
                let quartiles = [times.lower_quartile, times.median, times.upper_quartile];
                (name.clone(), json!(quartiles.map(|time| time * 1e6)))
            });
            json!({
                "name": row.name,
                "quartiles in microseconds": times.collect::<Map<_, _>>(),
                "rate": row.work / row.contestants[0].1.median,
                "unit": row.unit,
                "ratio": row.ratio(),
            })
        });
        json!({
            "machine": self.machine,
            "rounds": self.rounds,
            "threads": self.threads,
            "rows": rows.collect::<Vec<_>>(),
        })
    }

    /// A bar for each row's ratio, and a line where the best peer is.
    fn chart(&self) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
        const BAR: usize = 22;
        let (count, width) = (self.rows.len(), 900);
        let height = (count * BAR + 90) as u32;
        let widest = self
            .rows
            .iter()
            .map(Row::ratio)
            .fold(2.0, f64::max)
            .min(8.0);
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
            area.fill(&WHITE)?;
            let mut chart = ChartBuilder::on(&area)
                .caption("Best peer's time ÷ relampago's", ("sans-serif", 18))
                .margin(12)
                .x_label_area_size(30)
                .y_label_area_size(190)
                .build_cartesian_2d(0.0..widest, (0..count.saturating_sub(1)).into_segmented())?;
            chart
                .configure_mesh()
                .disable_y_mesh()
                .y_labels(count)
                .y_label_formatter(&|at| match at {
                    SegmentValue::CenterOf(i) => {
                        let row = self.rows.get(count - 1 - i.min(&(count - 1)));
                        row.map_or_else(String::new, |row| row.name.clone())
                    }
                    _ => String::new(),
                })
                .draw()?;
            let bars = self.rows.iter().rev().enumerate().map(|(i, row)| {
                let ends = [
                    (0.0, SegmentValue::Exact(i)),
                    (row.ratio().min(widest), SegmentValue::Exact(i + 1)),
                ];
                let mut bar = Rectangle::new(ends, RGBColor(250, 166, 26).filled());
                bar.set_margin(3, 3, 0, 0);
                bar
            });
            chart.draw_series(bars)?;
            let ends = [
                (1.0, SegmentValue::Exact(0)),
                (1.0, SegmentValue::Exact(count)),
            ];
            chart.draw_series([PathElement::new(ends, BLACK)])?;
            area.present()?;
        }
        Ok(svg)
    }
}
