/** Returns a line for each function: see `src/js_numeric/table.rs`. */
export function signatures(): string;
/** Returns the nodes of a function's results, by its number and its arguments. */
export function record(number: number, words: Float32Array): Float32Array;

export default function load(options: { module_or_path: any }): Promise<unknown>;
