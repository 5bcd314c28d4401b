//! A cache of recently used objects.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Result;

/// The number of cached objects; small enough for a linear search.
const MAX_RECENT: usize = 32;

/// Objects by key, the most recently used last.
pub(super) struct Recent<K, V>(Mutex<Vec<(K, V)>>);

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K, V: Clone> Recent<K, V> {
    /// Returns the object for whose key `same` returns true, or makes one.
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

    /// Clears the cache.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(K, V)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
