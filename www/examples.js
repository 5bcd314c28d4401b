// The examples of the playground; the landing page has the first one.

const FOLDER = new URL('examples/', import.meta.url);

export const EXAMPLES = [
  { title: 'Tensors: the nearest centre', file: 'tensors.js' },
  { title: 'A program and its plan', file: 'plan.js' },
  { title: 'Training: the exclusive or', file: 'training.js' },
  { title: 'A custom operation', file: 'custom.js' },
  { title: 'A million random points', file: 'pi.js' },
];

/** Returns the code of an example. */
export async function codeOf({ file }) {
  const response = await fetch(new URL(file, FOLDER));
  if (!response.ok) {
    throw new Error(`The example ${file} cannot be loaded: ${response.status}`);
  }
  return response.text();
}
