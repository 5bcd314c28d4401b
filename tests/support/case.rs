//! An operation with inputs, and how its result is judged.

use relampago::Op;
use relampago::reference::{self, Expected};

/// An operation with inputs.
#[derive(Debug)]
pub struct Case {
    pub op: Op,
    pub inputs: Vec<Vec<f32>>,
}

impl Case {
    pub(super) fn new(op: Op, inputs: Vec<Vec<f32>>) -> Self {
        Self { op, inputs }
    }

    pub fn inputs(&self) -> Vec<&[f32]> {
        self.inputs.iter().map(Vec::as_slice).collect()
    }

    /// Judges one result: see [`Oracle::judge`].
    pub fn judge(&self, actual: &[f32], on_gpu: bool) -> Result<f64, String> {
        self.oracle().judge(actual, on_gpu)
    }

    /// Computes the true results, which take longer than any back-end's.
    pub fn oracle(&self) -> Oracle<'_> {
        let (expected, flushed) = self.expected();
        Oracle {
            case: self,
            expected,
            flushed,
        }
    }

    /// Returns for each row of a norm whether its squares add up to more than any number: GPUs have NaN
    /// there, though the values beside an infinity are zeros. No rows for other operations.
    pub fn rows_with_squares_beyond_numbers(&self) -> Vec<bool> {
        let Op::RmsNorm { cols, .. } = self.op else {
            return Vec::new();
        };
        let squares = |row: &[f32]| row.iter().map(|x| x * x).sum::<f32>();
        let rows = self.inputs[0].chunks(cols.max(1));
        rows.map(|row| squares(row).is_infinite()).collect()
    }

    /// The true results, and those of denormal inputs read as zero where there are any.
    pub fn expected(&self) -> (Vec<Expected>, Option<Vec<Expected>>) {
        let expected = reference::evaluate(&self.op, &self.inputs());
        (expected, self.flushed())
    }

    fn flushed(&self) -> Option<Vec<Expected>> {
        let denormal = |x: &f32| x.is_subnormal();
        if !self.inputs.iter().flatten().any(denormal) {
            return None;
        }
        let flush = |&x: &f32| {
            if x.is_subnormal() {
                0f32.copysign(x)
            } else {
                x
            }
        };
        let inputs: Vec<Vec<f32>> = self
            .inputs
            .iter()
            .map(|v| v.iter().map(flush).collect())
            .collect();
        let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
        Some(reference::evaluate(&self.op, &inputs))
    }

    fn complaint(&self, i: usize, value: f32, want: &Expected, error: f64) -> String {
        let at: Vec<Option<&f32>> = self.inputs.iter().map(|input| input.get(i)).collect();
        let lens: Vec<usize> = self.inputs.iter().map(Vec::len).collect();
        format!(
            "{:?} of lengths {lens:?}: value {i} is {value:e}, not {:e}: {error:.2} ULP where {} are stated; inputs there {at:?}",
            self.op,
            want.value,
            self.op.ulp()
        )
    }
}

/// A case with its true results, for all back-ends that compute it.
pub struct Oracle<'a> {
    case: &'a Case,
    expected: Vec<Expected>,
    /// The results of denormal inputs read as zero, where there are any.
    flushed: Option<Vec<Expected>>,
}

impl Oracle<'_> {
    /// Returns the largest error of `actual` in the op table's units, or a description of the
    /// fault.
    ///
    /// GPUs may read denormal inputs as zero, so both readings are accepted for them.
    pub fn judge(&self, actual: &[f32], on_gpu: bool) -> Result<f64, String> {
        let Self { case, expected, .. } = self;
        let flushed = self.flushed.as_ref().filter(|_| on_gpu);
        if expected.len() != actual.len() {
            return Err(format!("{:?}: {} values", case.op, actual.len()));
        }
        let beyond = if on_gpu {
            case.rows_with_squares_beyond_numbers()
        } else {
            Vec::new()
        };
        let cols = (expected.len() / beyond.len().max(1)).max(1);
        let mut largest = 0.0f64;
        for (i, (&value, want)) in actual.iter().zip(expected).enumerate() {
            if value.is_nan() && beyond.get(i / cols) == Some(&true) {
                continue;
            }
            let also = flushed.map(|flushed| &flushed[i]);
            let error =
                error(want, value).min(also.map_or(f64::INFINITY, |want| error(want, value)));
            largest = largest.max(error);
            if error > case.op.ulp() {
                return Err(case.complaint(i, value, want, error));
            }
        }
        Ok(largest)
    }
}

fn error(want: &Expected, value: f32) -> f64 {
    if want.value.is_nan() {
        return if value.is_nan() { 0.0 } else { f64::INFINITY };
    }
    want.error(value)
}

/// The largest error seen of each operation, in the table's units.
#[derive(Default)]
pub struct Summary {
    errors: std::collections::BTreeMap<&'static str, f64>,
    cases: usize,
    complaints: Vec<String>,
}

impl Summary {
    pub fn note(&mut self, case: &Case, judged: Result<f64, String>) {
        self.cases += 1;
        match judged {
            Ok(error) => {
                let largest = self.errors.entry(case.op.name()).or_default();
                *largest = largest.max(error);
            }
            Err(complaint) => self.complaints.push(complaint),
        }
    }

    /// Prints by `print` what was seen, and fails with all faults at once.
    pub fn report(&self, title: &str, print: impl Fn(&str)) {
        print(&self.line(title));
        let complaints = self.complaints.join("\n");
        assert!(complaints.is_empty(), "{title}:\n{complaints}");
    }

    fn line(&self, title: &str) -> String {
        let errors: Vec<String> = self
            .errors
            .iter()
            .map(|(name, error)| format!("{name} {error:.2}"))
            .collect();
        format!(
            "{title}: {} cases; largest errors in ULP: {}",
            self.cases,
            errors.join(", ")
        )
    }
}
