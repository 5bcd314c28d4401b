//! The order of the elements of rows.
//!
//! An element and its index are one number of 64 bits, whose order is that of the elements: equal ones stay in order,
//! and NaN comes last.

use crate::error::{Error, Result};

/// The length of a row up to which insertion is faster than four passes by digits.
const SHORT: usize = 64;

/// The values of a digit of eight bits.
const DIGITS: usize = 256;

/// Writes the indices of each row's elements in ascending order.
///
/// # Errors
/// `OutOfMemory` if there is no memory for a row with its indices.
pub(super) fn argsort_rows(x: &[f32], cols: usize, out: &mut [f32]) -> Result<()> {
    let mut items = reserved(cols)?;
    let mut spare = reserved(if cols > SHORT { cols } else { 0 })?;
    for (x, out) in x.chunks(cols.max(1)).zip(out.chunks_mut(cols.max(1))) {
        items.clear();
        items.extend(x.iter().zip(0..).map(|(&x, index)| item(x, index)));
        if cols > SHORT {
            spare.resize(cols, 0);
            sort_by_digits(&mut items, &mut spare);
        } else {
            insert(&mut items);
        }
        for (out, &item) in out.iter_mut().zip(&items) {
            *out = (item as u32) as f32;
        }
    }
    Ok(())
}

fn reserved(len: usize) -> Result<Vec<u64>> {
    let mut items = Vec::new();
    let reserved = items.try_reserve_exact(len);
    reserved.map_err(|_| Error::OutOfMemory {
        bytes: len as u64 * 8,
    })?;
    Ok(items)
}

/// Returns an element and its index as a number. Both zeros are equal, and all NaN.
fn item(x: f32, index: u32) -> u64 {
    // The sum makes 0 of −0.
    let bits = (x + 0.0).to_bits();
    let key = if x.is_nan() {
        u32::MAX
    } else if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    };
    u64::from(key) << 32 | u64::from(index)
}

fn insert(items: &mut [u64]) {
    for end in 1..items.len() {
        let item = items[end];
        let mut at = end;
        while at > 0 && items[at - 1] > item {
            items[at] = items[at - 1];
            at -= 1;
        }
        items[at] = item;
    }
}

/// Sorts items, which are in the order of their indices, by the four digits of their keys.
fn sort_by_digits(items: &mut Vec<u64>, spare: &mut Vec<u64>) {
    let mut counts = [[0; DIGITS]; 4];
    for &item in &*items {
        for (digit, counts) in counts.iter_mut().enumerate() {
            counts[value(item, digit)] += 1;
        }
    }
    for (digit, counts) in counts.iter_mut().enumerate() {
        if counts.contains(&items.len()) {
            continue;
        }
        let mut start = 0;
        for count in counts.iter_mut() {
            start += std::mem::replace(count, start);
        }
        for &item in &*items {
            let place = &mut counts[value(item, digit)];
            spare[*place] = item;
            *place += 1;
        }
        std::mem::swap(items, spare);
    }
}

/// Returns a digit of an item's key, the lowest one first.
fn value(item: u64, digit: usize) -> usize {
    (item >> (32 + 8 * digit)) as usize % DIGITS
}
