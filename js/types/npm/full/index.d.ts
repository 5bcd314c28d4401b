/**
 * @deprecated Import `relampago`: it has all that `relampago/full` had. This entry goes with the next version.
 */
export * from '../index.js';
export { default } from '../index.js';
