// The module of chat templates and JSON schemas. A trap ends an instance of it: the next call has a new one, since a
// template or a schema must not end a model.

import load, { renew } from '#chat';

let instances = 0;

/** The number of instances before the present one. */
export const generation = () => instances;

/** Replaces an instance that a trap ended by a new one. */
export const replaceInstance = () => {
    renew();
    instances++;
};

export default load;
