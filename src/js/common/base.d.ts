/// <reference lib="esnext.disposable" />

/** What is wrong; the same in every release. */
export type ErrorCode =
    | 'ABORTED'
    | 'ALREADY_EXECUTED'
    | 'DEVICE_LOST'
    | 'DISPOSED'
    | 'EMPTY'
    | 'FILE'
    | 'FOREIGN'
    | 'FUNCTION'
    | 'GPU'
    | 'INVALID_ARGUMENT'
    | 'INVALID_KERNEL'
    | 'INVALID_MODEL'
    | 'LENGTH_MISMATCH'
    | 'LIMIT_EXCEEDED'
    | 'NETWORK'
    | 'NOT_EXECUTED'
    | 'NOT_LOADED'
    | 'NO_GPU'
    | 'OUT_OF_MEMORY'
    | 'SHAPE_MISMATCH'
    | 'SHAPE_OVERFLOW'
    | 'UNBOUND'
    | 'UNSUPPORTED'
    | 'WGSL';

/**
 * Every error that relampago throws or rejects with. Each entry point and each copy of the package has a
 * class of its own, but `instanceof` any of them recognises the errors of all, of every realm: they have
 * the property `Symbol.for('relampago.error')`, which is true.
 */
export class RelampagoError extends Error {
    readonly name: 'RelampagoError';
    readonly code: ErrorCode;
    private constructor();
    static [Symbol.hasInstance](value: unknown): value is RelampagoError;
}

/** Where the WebAssembly module may come from. */
export type ModuleSource =
    | string
    | URL
    | Request
    | Response
    | BufferSource
    | WebAssembly.Module;

/**
 * Loads the WebAssembly module; must be awaited before anything else is used. Once it is loaded, later
 * calls do nothing, whatever they are given. In Node `file:` URLs are read from the disk. Whatever else
 * goes wrong is an error with code `NOT_LOADED`, which names the place that the module was looked for at.
 *
 * @param source Needed only where a bundler or a server puts the module somewhere else. By
 * default it is the file beside this one, for the engine's instruction set where there are several:
 * the one that `moduleUrl` names. Another may need instructions that the engine lacks, or that lose
 * NaN there.
 */
export default function init(source?: ModuleSource | Promise<ModuleSource>): Promise<void>;

/** The URL of the module that `init` loads by default. */
export function moduleUrl(): URL;
