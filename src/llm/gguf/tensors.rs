//! The table of tensors.

use super::cursor::Cursor;
use super::invalid;
use crate::error::{Error, Result};
use crate::tensor::ggml::WeightType;
use std::ops::Range;

/// The least bytes of an entry: the name's length, one dimension, type and offset.
pub(super) const LEAST_BYTES: usize = 8 + 4 + 8 + 4 + 8;

/// The longest name in bytes, as the format says.
pub(super) const MOST_NAME: usize = 64;

/// A tensor of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    name: String,
    kind: WeightType,
    shape: Vec<usize>,
    range: Range<u64>,
}

impl TensorInfo {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of the weights.
    pub fn weight_type(&self) -> WeightType {
        self.kind
    }

    /// The dimensions, the innermost first: a matrix has its columns, then its rows.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of weights.
    pub fn len(&self) -> u64 {
        self.shape.iter().map(|&len| len as u64).product()
    }

    /// Whether there are no weights.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The position in the file, or in its parts one after the other, in bytes.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// The size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// The tensor of a part that `start` bytes precede.
    pub(super) fn moved(self, start: u64) -> Self {
        let Range { start: first, end } = self.range;
        let range = start.saturating_add(first)..start.saturating_add(end);
        Self { range, ..self }
    }
}

/// Sets the positions of a table's tensors in the file. The cursor must be after the table.
///
/// # Errors
/// `InvalidModel` for tensors that end beyond the file or overlap.
pub(super) fn place(tensors: &mut [TensorInfo], cursor: &Cursor<'_>, alignment: u64) -> Result<()> {
    // The header is smaller than the file, whose size is far from overflowing.
    let base = (cursor.at() as u64).next_multiple_of(alignment);
    for tensor in tensors.iter_mut() {
        place_tensor(tensor, base, cursor.file_len())?;
    }
    check_overlaps(tensors)
}

/// Reads an entry of the table; its range is relative until [`place`].
pub(super) fn read(cursor: &mut Cursor<'_>, alignment: u64) -> Result<TensorInfo> {
    let name = cursor.name(MOST_NAME)?.to_owned();
    let dimensions = cursor.u32()?;
    if !(1..=4).contains(&dimensions) {
        return Err(fault(
            &name,
            format!("{dimensions} dimensions, but 1 to 4 are allowed"),
        ));
    }
    let mut shape = Vec::new();
    for _ in 0..dimensions {
        let len = cursor.u64()?;
        let small = usize::try_from(len).ok().filter(|&len| len > 0);
        shape.push(small.ok_or_else(|| fault(&name, format!("a dimension of {len}")))?);
    }
    let id = cursor.u32()?;
    let kind = WeightType::from_id(id);
    let kind = kind.ok_or_else(|| fault(&name, format!("type {id} of ggml is not supported")))?;
    let bytes = size(&shape, kind).ok_or_else(|| {
        fault(
            &name,
            format!("the shape {shape:?} overflows or has no whole blocks of {kind:?}"),
        )
    })?;
    let offset = cursor.u64()?;
    let start = Some(offset).filter(|start| start.is_multiple_of(alignment));
    let range = start.and_then(|start| Some(start..start.checked_add(bytes)?));
    let range = range.ok_or_else(|| {
        fault(
            &name,
            format!("offset {offset} overflows or is no multiple of {alignment}"),
        )
    })?;
    Ok(TensorInfo {
        name,
        kind,
        shape,
        range,
    })
}

fn fault(name: &str, what: String) -> Error {
    invalid(what, format!("tensor `{name}`"))
}

/// Returns the bytes of all rows; `None` if they overflow, or if rows have no whole blocks.
pub(super) fn size(shape: &[usize], kind: WeightType) -> Option<u64> {
    let rows = shape[1..]
        .iter()
        .try_fold(1u64, |rows, &len| rows.checked_mul(len as u64))?;
    // The size of its weights as numbers of 4 bytes is below 2⁶⁴, too.
    rows.checked_mul(shape[0] as u64)?.checked_mul(4)?;
    (kind.row_bytes(shape[0])? as u64).checked_mul(rows)
}

/// Makes the range one of the file.
fn place_tensor(tensor: &mut TensorInfo, base: u64, file: u64) -> Result<()> {
    let Range { start, end } = tensor.range;
    match (start.checked_add(base), end.checked_add(base)) {
        (Some(start), Some(end)) if end <= file => {
            tensor.range = start..end;
            Ok(())
        }
        _ => {
            let what = format!(
                "its data ends at {base} + {end}, but the file has {file} bytes: it is incomplete or damaged"
            );
            Err(fault(&tensor.name, what))
        }
    }
}

fn check_overlaps(tensors: &[TensorInfo]) -> Result<()> {
    let mut order: Vec<&TensorInfo> = tensors.iter().collect();
    order.sort_by_key(|tensor| tensor.range.start);
    match order
        .windows(2)
        .find(|pair| pair[0].range.end > pair[1].range.start)
    {
        Some(pair) => {
            let what = format!("its data overlaps with that of `{}`", pair[0].name);
            Err(fault(&pair[1].name, what))
        }
        None => Ok(()),
    }
}
