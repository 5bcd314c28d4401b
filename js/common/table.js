/**
 * Returns an object that has for each name what `make` makes of it.
 * @template {string} Name
 * @template T
 * @param {readonly Name[]} names
 * @param {(name: Name) => T} make
 * @returns {Record<string, T>}
 */
export const tableOf = (names, make) => Object.fromEntries(names.map((name) => [name, make(name)]));

/**
 * Returns a table with the same names, whose values `make` makes.
 * @template T
 * @template Made
 * @param {Record<string, T>} table
 * @param {(name: string, value: T) => Made} make
 */
export const mapped = (table, make) => tableOf(Object.keys(table), (name) => make(name, table[name]));
