// What only pages have, not their workers, lies over this in the full edition.
