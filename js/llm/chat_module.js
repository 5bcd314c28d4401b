// The module of chat templates and JSON schemas. A trap ends an instance of it: the next call has a new one, since a
// template or a schema must not end a model.

import load, { renew } from '#chat';

let instances = 0;

/** The number of instances before the present one. */
export const generation = () => instances;

/** Takes a new instance in place of one that a trap ended. */
export const replaceInstance = () => {
    renew();
    instances++;
};

export default load;
