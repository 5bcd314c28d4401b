//! The fastest kernels found, by operation and shape.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ops::{Conv2d, ConvLayer};

/// The largest number of choices; further shapes replace the oldest ones.
const MAX_CHOICES: usize = 4096;

/// The kinds of operations with several kernels.
const KINDS: [&str; 5] = [MATMUL, SOFTMAX, NORM, CONVOLVE2D, CONVOLVE_LAYER];
const MATMUL: &str = "matmul";
const SOFTMAX: &str = "softmax";
const NORM: &str = "norm";
const CONVOLVE2D: &str = "convolve2d";
const CONVOLVE_LAYER: &str = "convolve_layer";

/// The key of a choice: a kind of operation and its sizes. Unused sizes at the end are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gpu) struct Key(&'static str, [usize; 6]);

impl Key {
    /// The key of a matmul of an `m × k` and a `k × n` matrix.
    pub(in crate::gpu) fn matmul([m, k, n]: [usize; 3]) -> Self {
        Self(MATMUL, [m, k, n, 0, 0, 0])
    }

    /// The key of softmaxes, or their logarithms: the number of rows and their length.
    pub(in crate::gpu) fn softmax([rows, cols]: [usize; 2]) -> Self {
        Self(SOFTMAX, [rows, cols, 0, 0, 0, 0])
    }

    /// The key of norms: the number of rows and their length.
    pub(in crate::gpu) fn norm([rows, cols]: [usize; 2]) -> Self {
        Self(NORM, [rows, cols, 0, 0, 0, 0])
    }

    /// The key of a convolution: rows and columns of the input, the kernel and the result.
    pub(in crate::gpu) fn convolve2d(conv: &Conv2d) -> Self {
        let (rows, cols) = conv.output_shape();
        let [height, width] = [conv.input_rows, conv.input_cols];
        let kernel = [conv.kernel_rows, conv.kernel_cols];
        Self(
            CONVOLVE2D,
            [height, width, kernel[0], kernel[1], rows, cols],
        )
    }

    /// The key of a layer: images, groups, filters of a group, weights of a filter, channels of a
    /// group and positions of the result.
    pub(in crate::gpu) fn convolve_layer(layer: &ConvLayer) -> Self {
        let (rows, cols) = layer.output_shape();
        let [channels, filters] = layer.of_group();
        Self(
            CONVOLVE_LAYER,
            [
                layer.batch,
                layer.groups,
                filters,
                layer.depth(),
                channels,
                rows * cols,
            ],
        )
    }
}

#[derive(Default)]
pub(in crate::gpu) struct Choices(Mutex<Vec<(Key, String)>>);

impl Choices {
    fn lock(&self) -> MutexGuard<'_, Vec<(Key, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the fastest kernel, if that was measured. A later version may have none of it.
    pub(in crate::gpu) fn of(&self, key: Key) -> Option<String> {
        let choices = self.lock();
        let found = choices.iter().find(|(other, _)| *other == key);
        found.map(|(_, name)| name.clone())
    }

    pub(in crate::gpu) fn remember(&self, key: Key, name: &str) {
        let mut choices = self.lock();
        choices.retain(|(other, _)| *other != key);
        if choices.len() >= MAX_CHOICES {
            choices.remove(0);
        }
        choices.push((key, name.to_owned()));
    }

    /// A line for each, such as `matmul 512 512 64 0 0 0 matmul_32`.
    pub(in crate::gpu) fn text(&self) -> String {
        let mut text = String::new();
        for (Key(what, sizes), name) in &*self.lock() {
            text += what;
            for size in sizes {
                text += " ";
                text += &size.to_string();
            }
            text += " ";
            text += name;
            text += "\n";
        }
        text
    }

    /// Adds the choices of such a text for shapes without a choice; skips invalid lines.
    pub(in crate::gpu) fn adopt(&self, text: &str) {
        for line in text.lines() {
            if let Some((key, name)) = parsed(line)
                && self.of(key).is_none()
            {
                self.remember(key, name);
            }
        }
    }
}

fn parsed(line: &str) -> Option<(Key, &str)> {
    let mut words = line.split(' ');
    let what = words.next()?;
    let what = KINDS.into_iter().find(|&kind| kind == what)?;
    let mut sizes = [0; 6];
    for size in &mut sizes {
        *size = words.next()?.parse().ok()?;
    }
    Some((Key(what, sizes), words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_round_trip_as_text() {
        let choices = Choices::default();
        let text = "matmul 1 2 3 0 0 0 matmul_128\nsoftmax 4 5 0 0 0 0 softmax_row\n\
                    norm 6 7 0 0 0 0 norm_partial\nconvolve2d 9 8 3 2 7 7 convolve2d_near\n";
        choices.adopt(text);
        assert_eq!(choices.text(), text);
        // What is known already was measured later.
        choices.adopt("softmax 4 5 0 0 0 0 softmax_partial\n");
        let of = |key| choices.of(key).unwrap_or_default();
        assert_eq!(of(Key::softmax([4, 5])), "softmax_row");
        assert_eq!(of(Key(CONVOLVE2D, [9, 8, 3, 2, 7, 7])), "convolve2d_near");
        choices.remember(Key::matmul([1, 2, 3]), "matmul_32");
        assert_eq!(of(Key::matmul([1, 2, 3])), "matmul_32");
        assert_eq!(choices.text().lines().count(), 4);
    }

    #[test]
    fn invalid_lines_are_skipped() {
        let choices = Choices::default();
        choices.adopt(
            "matmul 7 8 9 matmul_32\nmatmul 7 8 9 0 0 0\nmatmul\n\n\
             matmul 7 8 x 0 0 0 matmul_32\nmatmul 7 8 -1 0 0 0 matmul_32\n\
             sum 7 0 0 0 0 0 reduce\nmatmul 9 8 7 0 0 0 matmul_direct\n",
        );
        assert_eq!(choices.text(), "matmul 9 8 7 0 0 0 matmul_direct\n");
    }

    #[test]
    fn oldest_choices_are_replaced() {
        let choices = Choices::default();
        for n in 0..=MAX_CHOICES {
            choices.remember(Key::softmax([1, n]), "softmax_row");
        }
        assert_eq!(choices.of(Key::softmax([1, 0])), None);
        assert!(choices.of(Key::softmax([1, MAX_CHOICES])).is_some());
    }
}
