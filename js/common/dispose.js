/** The name of the method that `using` calls; an engine without it has a method that nobody calls. */
export const DISPOSE = Symbol.dispose ?? Symbol('dispose');
