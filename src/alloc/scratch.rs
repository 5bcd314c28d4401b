//! Scratch memory that each thread caches between calls: new memory must be zeroed, and native systems map it page by
//! page.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use crate::alloc::try_zeros;
use crate::error::Result;

/// The number of blocks that a thread caches.
const MAX_KEPT: usize = 4;

/// The largest number of elements in a cached block: the packed part of a matmul, or in
/// WebAssembly, whose memory never shrinks, a softmax of a million elements.
const MAX_VALUES: usize = (1 << if cfg!(target_arch = "wasm32") { 20 } else { 19 }) + LINE;

thread_local! {
    static KEPT: RefCell<[Vec<f32>; MAX_KEPT]> = const { RefCell::new([const { Vec::new() }; MAX_KEPT]) };
}

/// The number of elements in a cache line.
pub(crate) const LINE: usize = 16;

/// Scratch memory for a number of elements, whose initial contents are arbitrary. It starts at a
/// cache line: an unaligned vector takes twice as long, and `rep movsb`, which browsers copy with,
/// takes fifteen times as long on a Zen 3 if the target starts a few bytes further into its page
/// than the source.
#[derive(Default)]
pub(crate) struct Scratch {
    values: Vec<f32>,
    start: usize,
    end: usize,
}

/// Returns the number of elements before the next start of a cache line.
pub(crate) fn to_line(values: &[f32]) -> usize {
    let line = LINE * size_of::<f32>();
    values.as_ptr().align_offset(line).min(LINE)
}

impl Scratch {
    /// # Errors
    /// `OutOfMemory` if there is no memory for `len` elements.
    pub(crate) fn new(len: usize) -> Result<Self> {
        // Nothing needs none of what is kept.
        if len == 0 {
            return Ok(Self::default());
        }
        let needed = len.saturating_add(LINE);
        let kept = KEPT.with_borrow_mut(|kept| {
            let fitting = kept.iter_mut().filter(|values| values.len() >= needed);
            fitting
                .min_by_key(|values| values.len())
                .map(std::mem::take)
        });
        let values = match kept {
            Some(values) => values,
            None => try_zeros(needed)?,
        };
        let start = to_line(&values);
        let end = start + len;
        Ok(Self { values, start, end })
    }
}

impl Deref for Scratch {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[self.start..self.end]
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[self.start..self.end]
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.values.len() > MAX_VALUES {
            return;
        }
        // A thread that ends keeps nothing.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            let shortest = kept.iter_mut().min_by_key(|values| values.len());
            if let Some(shortest) = shortest.filter(|other| other.len() < self.values.len()) {
                std::mem::swap(shortest, &mut self.values);
            }
        });
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::{LINE, MAX_KEPT, MAX_VALUES, Scratch};

    fn place(len: usize) -> *const f32 {
        Scratch::new(len).unwrap().as_ptr()
    }

    /// Returns the addresses of blocks that are alive at the same time.
    fn places(lens: &[usize]) -> Vec<*const f32> {
        let spares: Vec<Scratch> = lens.iter().map(|&len| Scratch::new(len).unwrap()).collect();
        spares.iter().map(|spare| spare.as_ptr()).collect()
    }

    #[test]
    fn smallest_fitting_block_is_reused() {
        let [small, large] = places(&[100, 10_000])[..] else {
            unreachable!()
        };
        assert_eq!(place(9_000), large);
        assert_eq!(place(10), small, "the smallest that fits");
        assert_eq!(Scratch::new(10).unwrap().len(), 10);
        assert_ne!(places(&[10_000, 10_000])[1], large, "no two at one place");
        let nothing = Scratch::new(0).unwrap();
        assert!(nothing.is_empty());
        assert_eq!(place(10), small, "nothing takes no memory");
    }

    #[test]
    fn cached_blocks_are_aligned_to_cache_lines() {
        let odd = |place: &*const f32| !place.addr().is_multiple_of(LINE * size_of::<f32>());
        let lens = [1, 3, 100, 4_097, 1_000_000];
        assert!(!places(&lens).iter().any(odd));
        assert!(!places(&lens).iter().any(odd), "again");
    }

    #[test]
    fn thread_cache_is_bounded() {
        let most = MAX_VALUES - LINE;
        drop(Scratch::new(most + 1).unwrap());
        let lens = [most; MAX_KEPT + 1];
        places(&lens);
        let kept = super::KEPT.with_borrow(|kept| kept.iter().map(Vec::len).collect::<Vec<_>>());
        assert_eq!(kept, [MAX_VALUES; MAX_KEPT]);
    }
}
