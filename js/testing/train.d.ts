/** Returns the nodes of gradients, of a loss and nodes of a graph: see `src/js_train.rs`. */
export function differentiate(graph: Float32Array): Float32Array;
/** Returns the nodes of an optimizer's step. */
export function update(words: Float32Array): Float32Array;

export default function load(options: { module_or_path: any }): Promise<unknown>;
