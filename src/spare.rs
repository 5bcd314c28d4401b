//! Memory for values on their way, which each thread keeps from one call to the next: new memory must be
//! made zero, and natively comes page by page.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use crate::error::{Result, try_zeros};

/// How many pieces of memory a thread keeps.
const MAX_KEPT: usize = 4;

/// Values in each of them at most: as a product packs at a time, and in WebAssembly, whose memory never shrinks, as a
/// softmax of a million holds.
const MAX_VALUES: usize = (1 << if cfg!(target_arch = "wasm32") { 20 } else { 19 }) + 64;

thread_local! {
    /// The shortest first.
    static KEPT: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Memory for a number of values, which are arbitrary at first.
pub(crate) struct Spare {
    values: Vec<f32>,
    len: usize,
}

impl Spare {
    /// For no values.
    pub(crate) const NONE: Self = Self {
        values: Vec::new(),
        len: 0,
    };

    /// # Errors
    /// `OutOfMemory` where there is no memory for so many.
    #[cfg_attr(relampago_package, optimize(size))]
    pub(crate) fn new(len: usize) -> Result<Self> {
        let kept = KEPT.with_borrow_mut(|kept| {
            // Nothing needs none of them.
            let fits = |values: &Vec<f32>| len > 0 && values.len() >= len;
            let place = kept.iter().position(fits)?;
            Some(kept.remove(place))
        });
        let values = match kept {
            Some(values) => values,
            None => try_zeros(len)?,
        };
        Ok(Self { values, len })
    }
}

impl Deref for Spare {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[..self.len]
    }
}

impl DerefMut for Spare {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[..self.len]
    }
}

impl Drop for Spare {
    #[cfg_attr(relampago_package, optimize(size))]
    fn drop(&mut self) {
        if !(1..=MAX_VALUES).contains(&self.values.len()) {
            return;
        }
        let values = std::mem::take(&mut self.values);
        // A thread that ends keeps nothing.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            let shorter = |other: &&Vec<f32>| other.len() < values.len();
            let place = kept.iter().take_while(shorter).count();
            kept.insert(place, values);
            if kept.len() > MAX_KEPT {
                kept.remove(0);
            }
        });
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::{MAX_KEPT, MAX_VALUES, Spare};

    fn place(len: usize) -> *const f32 {
        Spare::new(len).unwrap().as_ptr()
    }

    /// The places of what lives at the same time.
    fn places(lens: &[usize]) -> Vec<*const f32> {
        let spares: Vec<Spare> = lens.iter().map(|&len| Spare::new(len).unwrap()).collect();
        spares.iter().map(|spare| spare.as_ptr()).collect()
    }

    #[test]
    fn what_was_given_back_is_the_next_that_fits() {
        let [small, large] = places(&[100, 10_000])[..] else {
            unreachable!()
        };
        assert_eq!(place(9_000), large);
        assert_eq!(place(10), small, "the smallest that fits");
        assert_eq!(Spare::new(10).unwrap().len(), 10);
        assert_ne!(places(&[10_000, 10_000])[1], large, "no two at one place");
        let nothing = Spare::new(0).unwrap();
        assert!(nothing.is_empty());
        assert_eq!(place(10), small, "nothing takes no memory");
    }

    #[test]
    fn no_thread_keeps_much() {
        drop(Spare::new(MAX_VALUES + 1).unwrap());
        let lens = [MAX_VALUES; MAX_KEPT + 1];
        places(&lens);
        let kept = super::KEPT.with_borrow(|kept| kept.iter().map(Vec::len).collect::<Vec<_>>());
        assert_eq!(kept, [MAX_VALUES; MAX_KEPT]);
    }
}
