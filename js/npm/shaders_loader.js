/** @type {Record<string, string> | undefined} */
let provided;

/**
 * Spares `loadShaders` the import, which service workers refuse.
 * @param {Record<string, string>} shaders
 */
export const provideShaders = (shaders) => {
    provided = shaders;
};

/** The pieces of shaders' text, which only hosts with a GPU load. */
export const loadShaders = async () => provided ?? (await import('#shaders')).default;
