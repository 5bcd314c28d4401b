//! The order of the elements of rows.
//!
//! An element and its index are one number of 64 bits, whose order is that of the elements: equal ones stay in order,
//! and NaN comes last.

use crate::error::{Error, Result};

/// The length of a row up to which insertion is faster than passes by digits.
const SHORT: usize = 128;

/// The bits of a digit. Three digits have all bits of an element.
const BITS: usize = 11;
const DIGITS: usize = 1 << BITS;

/// Writes the indices of each row's elements in ascending order.
///
/// # Errors
/// `OutOfMemory` if there is no memory for a row with its indices.
pub(super) fn argsort_rows(x: &[f32], cols: usize, out: &mut [f32]) -> Result<()> {
    let rows = x.chunks(cols.max(1)).zip(out.chunks_mut(cols.max(1)));
    if cols <= SHORT {
        let mut items = [0; SHORT];
        for (x, out) in rows {
            insert(x, &mut items[..x.len()]);
            for (out, &item) in out.iter_mut().zip(&items) {
                *out = index(item);
            }
        }
        return Ok(());
    }
    let mut items = [reserved(cols)?, reserved(cols)?];
    let mut starts = reserved(3 * DIGITS)?;
    for (x, out) in rows {
        sort_by_digits(x, &mut items, &mut starts, out);
    }
    Ok(())
}

fn reserved<T: Clone + Default>(len: usize) -> Result<Vec<T>> {
    let mut items = Vec::new();
    let reserved = items.try_reserve_exact(len);
    reserved.map_err(|_| Error::OutOfMemory {
        bytes: (len * size_of::<T>()) as u64,
    })?;
    items.resize(len, T::default());
    Ok(items)
}

/// Returns the bits of an element as an integer in the order of elements. Both zeros are equal, and all NaN.
fn key(x: f32) -> u32 {
    // The sum makes 0 of −0.
    let bits = (x + 0.0).to_bits();
    if x.is_nan() {
        u32::MAX
    } else if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    }
}

/// Returns the elements of a row with their indices.
fn items(x: &[f32]) -> impl Iterator<Item = u64> {
    let items = x.iter().zip(0u64..);
    items.map(|(&x, index)| u64::from(key(x)) << 32 | index)
}

fn index(item: u64) -> f32 {
    item as u32 as f32
}

/// Inserts the elements of a row one after the other.
fn insert(x: &[f32], sorted: &mut [u64]) {
    for (end, item) in items(x).enumerate() {
        let mut at = end;
        while at > 0 && sorted[at - 1] > item {
            sorted[at] = sorted[at - 1];
            at -= 1;
        }
        sorted[at] = item;
    }
}

/// Orders a row by the three digits of its elements, the lowest one first. `starts` has a number for each value of each
/// digit.
fn sort_by_digits(
    x: &[f32],
    [first, second]: &mut [Vec<u64>; 2],
    starts: &mut [u32],
    out: &mut [f32],
) {
    find_starts(x, starts);
    distribute(items(x), 0, starts, |place, item| first[place] = item);
    let items = first.iter().copied();
    distribute(items, 1, starts, |place, item| second[place] = item);
    let items = second.iter().copied();
    distribute(items, 2, starts, |place, item| out[place] = index(item));
}

/// Finds for each value of each digit where its elements begin.
fn find_starts(x: &[f32], starts: &mut [u32]) {
    starts.fill(0);
    for item in items(x) {
        for digit in 0..3 {
            starts[place(item, digit)] += 1;
        }
    }
    for counts in starts.chunks_mut(DIGITS) {
        let mut start = 0;
        for count in counts {
            start += std::mem::replace(count, start);
        }
    }
}

/// Moves each item to the next place of its digit's value.
fn distribute(
    items: impl Iterator<Item = u64>,
    digit: usize,
    starts: &mut [u32],
    mut put: impl FnMut(usize, u64),
) {
    for item in items {
        let start = &mut starts[place(item, digit)];
        put(*start as usize, item);
        *start += 1;
    }
}

/// Returns where the number of a digit's value stands.
fn place(item: u64, digit: usize) -> usize {
    digit * DIGITS + (item >> (32 + BITS * digit)) as usize % DIGITS
}
