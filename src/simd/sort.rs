//! The order of the elements of rows.
//!
//! An element and its index are one number of 64 bits, whose order is that of the elements: equal ones stay in order,
//! and NaN comes last.

use crate::error::{Error, Result};

/// The length of a row up to which insertion is faster than passes by digits.
const SHORT: usize = 128;

/// The bits of a digit: few enough that the places of all values stay within a processor's first cache.
const BITS: usize = 8;
const DIGITS: usize = 1 << BITS;

/// Writes each row's elements in ascending order, or their indices.
///
/// # Errors
/// `OutOfMemory` if there is no memory for a row with its indices.
pub(super) fn sort_rows(x: &[f32], cols: usize, as_indices: bool, out: &mut [f32]) -> Result<()> {
    let rows = x.chunks(cols.max(1)).zip(out.chunks_mut(cols.max(1)));
    if cols <= SHORT {
        let mut items = [0; SHORT];
        for (x, out) in rows {
            insert(x, as_indices, &mut items[..x.len()]);
            for (out, &item) in out.iter_mut().zip(&items) {
                *out = result(item, as_indices);
            }
        }
        return Ok(());
    }
    let mut items = [reserved(cols)?, reserved(cols)?];
    let mut starts = reserved(4 * DIGITS)?;
    for (x, out) in rows {
        sort_by_digits(x, as_indices, &mut items, &mut starts, out);
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

/// Returns the bits of an element as an integer in the order of elements. All NaN are equal.
fn key(x: f32) -> u32 {
    let bits = x.to_bits();
    if x.is_nan() {
        u32::MAX
    } else if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    }
}

/// Returns the elements of a row with their indices. If these are the result, both zeros are equal.
fn items(x: &[f32], as_indices: bool) -> impl Iterator<Item = u64> {
    // The sum makes 0 of −0.
    let added = if as_indices { 0.0 } else { -0.0 };
    let items = x.iter().zip(0u64..);
    items.map(move |(&x, index)| u64::from(key(x + added)) << 32 | index)
}

/// Returns the index of an item, or the element, whose bits [`key`] changed.
fn result(item: u64, as_index: bool) -> f32 {
    let key = (item >> 32) as u32;
    if as_index {
        item as u32 as f32
    } else if key >> 31 == 1 {
        f32::from_bits(key & !(1 << 31))
    } else {
        f32::from_bits(!key)
    }
}

/// Inserts the elements of a row one after the other.
fn insert(x: &[f32], as_indices: bool, sorted: &mut [u64]) {
    for (end, item) in items(x, as_indices).enumerate() {
        let mut at = end;
        while at > 0 && sorted[at - 1] > item {
            sorted[at] = sorted[at - 1];
            at -= 1;
        }
        sorted[at] = item;
    }
}

/// Orders a row by the four digits of its elements, the lowest one first. `starts` has a number for each value of each
/// digit.
fn sort_by_digits(
    x: &[f32],
    as_indices: bool,
    [first, second]: &mut [Vec<u64>; 2],
    starts: &mut [u32],
    out: &mut [f32],
) {
    find_starts(x, as_indices, starts);
    let own = items(x, as_indices);
    distribute(own, 0, starts, |place, item| first[place] = item);
    move_items(first, 1, starts, second);
    move_items(second, 2, starts, first);
    let last = first.iter().copied();
    distribute(last, 3, starts, |place, item| {
        out[place] = result(item, as_indices);
    });
}

/// Finds for each value of each digit where its elements begin.
fn find_starts(x: &[f32], as_indices: bool, starts: &mut [u32]) {
    starts.fill(0);
    for item in items(x, as_indices) {
        for digit in 0..4 {
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

fn move_items(from: &[u64], digit: usize, starts: &mut [u32], to: &mut [u64]) {
    let items = from.iter().copied();
    distribute(items, digit, starts, |place, item| to[place] = item);
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
