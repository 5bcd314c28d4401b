/** What shaders are made of, for those who have a GPU. */
export const loadShaders = async () => (await import('./shaders.js')).default;
