//! Memory sharing among results that are not alive at the same time.

/// The slot of each result.
pub(crate) struct Shared {
    /// The slot of each value.
    pub(crate) slots: Vec<usize>,
    /// The length of each slot: that of its longest result.
    pub(crate) capacities: Vec<usize>,
}

/// Assigns slots to results, given in the order of computation: `lens` has their lengths, and
/// `last_uses` the index of the last reader of each. A computation never writes a slot that it
/// reads.
pub(crate) fn share(lens: &[usize], last_uses: &[usize]) -> Shared {
    let mut shared = Shared {
        slots: Vec::with_capacity(lens.len()),
        capacities: Vec::new(),
    };
    // The place from which on a slot is free.
    let mut free_after: Vec<usize> = Vec::new();
    for (place, &len) in lens.iter().enumerate() {
        let slot = best(&free_after, &shared.capacities, place, len);
        if slot == free_after.len() {
            shared.capacities.push(0);
            free_after.push(0);
        }
        shared.capacities[slot] = shared.capacities[slot].max(len);
        free_after[slot] = last_uses[place];
        shared.slots.push(slot);
    }
    shared
}

/// Returns the best free slot: the smallest that is long enough, else the longest; a new slot if
/// none is free. A result shorter than half a slot gets another slot.
fn best(free_after: &[usize], capacities: &[usize], place: usize, len: usize) -> usize {
    let mut best = (capacities.len(), (true, usize::MAX));
    for (slot, &capacity) in capacities.iter().enumerate() {
        let rank = (capacity < len, capacity.abs_diff(len));
        if free_after[slot] < place && capacity / 2 <= len && rank < best.1 {
            best = (slot, rank);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_chain_needs_two_slots() {
        let last_uses: Vec<usize> = (1..=100).collect();
        let shared = share(&[1_000; 100], &last_uses);
        assert_eq!(shared.capacities, [1_000, 1_000]);
    }

    #[test]
    fn live_results_do_not_share_slots() {
        // The first is read by the last.
        let shared = share(&[8, 8, 8, 8], &[3, 2, 3, usize::MAX]);
        let slots = &shared.slots;
        assert_eq!(slots[1], slots[3]);
        assert!(slots[0] != slots[1] && slots[2] != slots[1] && slots[0] != slots[2]);
    }

    #[test]
    fn small_results_do_not_take_large_slots() {
        let shared = share(&[1_000, 1_000, 4, 1_000], &[1, 2, 3, usize::MAX]);
        assert_eq!(shared.capacities.iter().sum::<usize>(), 2_004);
    }
}
