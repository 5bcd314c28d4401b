// For service workers, which refuse to import scripts later: the shaders come with the package.

import init, { provideShaders } from './index.js';
import shaders from '#shaders';

provideShaders(shaders);

export * from './index.js';
export default init;
