let provided;

/** Spares `loadShaders` the import, which service workers refuse. */
export const provideShaders = (shaders) => {
    provided = shaders;
};

/** What shaders are made of, for those who have a GPU. */
export const loadShaders = async () => provided ?? (await import('#shaders')).default;
