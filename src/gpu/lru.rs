//! What was made for recent work, for more of the same.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Result;

/// How much is remembered. Few enough to be searched one by one.
const MAX_RECENT: usize = 32;

/// Values by what they were made for, the latest used last.
pub(super) struct Recent<K, V>(Mutex<Vec<(K, V)>>);

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K, V: Clone> Recent<K, V> {
    /// The value whose key is the `same`, or else one that is made now.
    pub(super) fn get(
        &self,
        same: impl Fn(&K) -> bool,
        make: impl FnOnce() -> Result<(K, V)>,
    ) -> Result<V> {
        let mut recent = self.lock();
        let found = recent.iter().position(|(key, _)| same(key));
        let entry = match found {
            Some(place) => recent.remove(place),
            None => make()?,
        };
        if recent.len() == MAX_RECENT {
            recent.remove(0);
        }
        let value = entry.1.clone();
        recent.push(entry);
        Ok(value)
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(K, V)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
