/** The pieces of shaders' text by their names. */
declare const shaders: Record<string, string>;
export default shaders;
