//! The measured thresholds of policies, by CPU.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The word that begins a line with thresholds.
const THRESHOLDS: &str = "thresholds";
/// The largest number of CPUs whose thresholds are stored; further ones replace the oldest.
const MAX_CPUS: usize = 16;

/// A CPU (a word that names its instructions and threads), and the thresholds beside it.
type Line = (String, [u64; 7]);

#[derive(Default)]
pub(in crate::gpu) struct Thresholds(Mutex<Vec<Line>>);

impl Thresholds {
    fn lock(&self) -> MutexGuard<'_, Vec<Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the thresholds that were measured beside a CPU.
    pub(in crate::gpu) fn of(&self, cpu: &str) -> Option<[u64; 7]> {
        let lines = self.lock();
        let found = lines.iter().find(|(other, _)| other == cpu);
        found.map(|&(_, thresholds)| thresholds)
    }

    pub(in crate::gpu) fn remember(&self, cpu: &str, thresholds: [u64; 7]) {
        let mut lines = self.lock();
        lines.retain(|(other, _)| other != cpu);
        if lines.len() >= MAX_CPUS {
            lines.remove(0);
        }
        lines.push((cpu.to_owned(), thresholds));
    }

    /// Returns a line for each CPU, such as `thresholds AVX2+FMA-4 1 2 3 4 5 6 7`.
    pub(in crate::gpu) fn text(&self) -> String {
        let mut text = String::new();
        for (cpu, thresholds) in &*self.lock() {
            text += THRESHOLDS;
            text += " ";
            text += cpu;
            for threshold in thresholds {
                text += " ";
                text += &threshold.to_string();
            }
            text += "\n";
        }
        text
    }

    /// Adds the thresholds of such a text beside CPUs that have none; skips other lines.
    pub(in crate::gpu) fn adopt(&self, text: &str) {
        for line in text.lines() {
            if let Some((cpu, thresholds)) = parsed(line)
                && self.of(cpu).is_none()
            {
                self.remember(cpu, thresholds);
            }
        }
    }
}

fn parsed(line: &str) -> Option<(&str, [u64; 7])> {
    let mut words = line.split(' ');
    words.next().filter(|&word| word == THRESHOLDS)?;
    let cpu = words.next()?;
    let mut thresholds = [0; 7];
    for threshold in &mut thresholds {
        *threshold = words.next()?.parse().ok()?;
    }
    words.next().is_none().then_some((cpu, thresholds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_round_trip_as_text() {
        let thresholds = Thresholds::default();
        let text = "thresholds AVX2+FMA-4 1 2 3 4 5 6 18446744073709551615\n";
        thresholds.adopt(text);
        assert_eq!(thresholds.text(), text);
        thresholds.adopt("thresholds AVX2+FMA-4 7 7 7 7 7 7 7\n");
        let found = thresholds.of("AVX2+FMA-4");
        assert_eq!(found, Some([1, 2, 3, 4, 5, 6, u64::MAX]), "measured later");
        thresholds.remember("AVX2+FMA-4", [9; 7]);
        assert_eq!(thresholds.of("AVX2+FMA-4"), Some([9; 7]));
        assert_eq!(thresholds.of("AVX2+FMA-2"), None);
    }

    #[test]
    fn invalid_lines_are_skipped() {
        let thresholds = Thresholds::default();
        thresholds.adopt(
            "thresholds\nthresholds a 1 2 3\nthresholds a 1 2 3 4 5 6 x\n\n\
             thresholds a 1 2 3 4 5 6 -7\nthresholds a 1 2 3 4 5 6 7 8\nmatmul 1 2 3 0 0 0 matmul_32\n",
        );
        assert_eq!(thresholds.text(), "");
    }

    #[test]
    fn oldest_cpus_are_replaced() {
        let thresholds = Thresholds::default();
        for cpu in 0..=MAX_CPUS {
            thresholds.remember(&cpu.to_string(), [0; 7]);
        }
        assert_eq!(thresholds.of("0"), None);
        assert!(thresholds.of("16").is_some());
    }
}
