//! The arguments of a call, as `js/numeric/arguments.js` writes them.

use crate::js_graph::Words;
use crate::lazy::recording::Recording;
use crate::lazy::{Axes, Tensor, Tensors};

/// A call with the arguments that were not read yet.
pub(super) struct Call<'a> {
    recording: &'a Recording,
    words: Words<'a>,
}

/// A type of arguments.
pub(super) trait Argument: Sized {
    /// The name of the type in `js/numeric/arguments.js`.
    const TYPE: &'static str;

    fn read(words: &mut Words<'_>, recording: &Recording) -> Self;
}

/// A number, or a list of numbers.
pub(super) struct Sizes(pub(super) Vec<usize>);

/// A tensor of indices, whose elements are known if the host has them.
pub(super) struct Indices(pub(super) Tensor);

impl<'a> Call<'a> {
    pub(super) fn new(recording: &'a Recording, words: Words<'a>) -> Self {
        Self { recording, words }
    }

    pub(super) fn tensors(&self) -> &Tensors {
        self.recording.tensors()
    }

    /// Returns the tensor whose method was called.
    pub(super) fn own(&self) -> Tensor {
        self.recording.input(0)
    }

    /// Reads an argument that the scripts require.
    pub(super) fn required<T: Argument>(&mut self) -> T {
        let (_, mut words) = self.next();
        T::read(&mut words, self.recording)
    }

    /// Reads an argument; returns `default` if the caller did not give it.
    pub(super) fn optional<T: Argument>(&mut self, default: T) -> T {
        match self.next() {
            (true, mut words) => T::read(&mut words, self.recording),
            (false, _) => default,
        }
    }

    /// Returns whether the next argument was given, and its words.
    fn next(&mut self) -> (bool, Words<'a>) {
        (self.words.whole() == 1, self.words.list())
    }
}

impl<T: Argument> Argument for Option<T> {
    const TYPE: &'static str = T::TYPE;

    fn read(words: &mut Words<'_>, recording: &Recording) -> Self {
        Some(T::read(words, recording))
    }
}

impl Argument for f64 {
    const TYPE: &'static str = "number";

    fn read(words: &mut Words<'_>, _: &Recording) -> Self {
        Self::from_bits(whole_64(words))
    }
}

impl Argument for f32 {
    const TYPE: &'static str = f64::TYPE;

    fn read(words: &mut Words<'_>, recording: &Recording) -> Self {
        f64::read(words, recording) as Self
    }
}

impl Argument for usize {
    const TYPE: &'static str = "size";

    fn read(words: &mut Words<'_>, _: &Recording) -> Self {
        words.whole()
    }
}

impl Argument for isize {
    const TYPE: &'static str = "integer";

    fn read(words: &mut Words<'_>, _: &Recording) -> Self {
        words.signed()
    }
}

impl Argument for bool {
    const TYPE: &'static str = "boolean";

    fn read(words: &mut Words<'_>, _: &Recording) -> Self {
        words.whole() == 1
    }
}

impl Argument for u64 {
    const TYPE: &'static str = "seed";

    fn read(words: &mut Words<'_>, _: &Recording) -> Self {
        whole_64(words)
    }
}

impl Argument for String {
    const TYPE: &'static str = "text";

    fn read(words: &mut Words<'_>, _: &Recording) -> Self {
        let codes = words.wholes().into_iter();
        let letters = codes.map(|code| char::from_u32(code as u32).unwrap_or('\u{fffd}'));
        letters.collect()
    }
}

impl Argument for Vec<usize> {
    const TYPE: &'static str = "list";

    fn read(words: &mut Words<'_>, _: &Recording) -> Self {
        words.wholes()
    }
}

impl Argument for Sizes {
    const TYPE: &'static str = "sizes";

    fn read(words: &mut Words<'_>, _: &Recording) -> Self {
        Self(words.wholes())
    }
}

impl Argument for Vec<[usize; 2]> {
    const TYPE: &'static str = "pairs";

    fn read(words: &mut Words<'_>, _: &Recording) -> Self {
        let numbers = words.wholes();
        numbers
            .chunks_exact(2)
            .map(|pair| [pair[0], pair[1]])
            .collect()
    }
}

impl Argument for Axes {
    const TYPE: &'static str = "axes";

    fn read(words: &mut Words<'_>, _: &Recording) -> Self {
        let numbers = words.wholes();
        let axes = numbers.into_iter().map(|axis| axis as i32 as isize);
        Self::from(&axes.collect::<Vec<isize>>()[..])
    }
}

impl Argument for Tensor {
    const TYPE: &'static str = "tensor";

    fn read(words: &mut Words<'_>, recording: &Recording) -> Self {
        recording.input(words.whole())
    }
}

impl Argument for Indices {
    const TYPE: &'static str = "indices";

    fn read(words: &mut Words<'_>, recording: &Recording) -> Self {
        Self(Tensor::read(words, recording))
    }
}

impl Argument for Vec<Tensor> {
    const TYPE: &'static str = "tensors";

    fn read(words: &mut Words<'_>, recording: &Recording) -> Self {
        let indices = words.wholes().into_iter();
        indices.map(|index| recording.input(index)).collect()
    }
}

/// Reads 64 bits, the lower half first.
fn whole_64(words: &mut Words<'_>) -> u64 {
    let [low, high] = [words.whole(), words.whole()];
    high as u64 * (1 << 32) + low as u64
}
