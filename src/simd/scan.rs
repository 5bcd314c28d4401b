//! Cumulative sums and products of rows.

/// Writes the sums, or the products, of each row's elements up to each one. Both are accumulated in `f64`, so that long
/// rows lose nothing.
pub(super) fn scan_rows(is_product: bool, x: &[f32], cols: usize, out: &mut [f32]) {
    let rows = x.chunks(cols.max(1)).zip(out.chunks_mut(cols.max(1)));
    for (x, out) in rows {
        let mut total = if is_product { 1.0 } else { 0.0 };
        for (out, &x) in out.iter_mut().zip(x) {
            let x = f64::from(x);
            total = if is_product { total * x } else { total + x };
            *out = total as f32;
        }
    }
}
