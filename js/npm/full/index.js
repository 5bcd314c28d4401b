// The name of this entry in versions 0.0 and 0.1; everything is in `relampago` now.
export * from '../index.js';
export { default } from '../index.js';
