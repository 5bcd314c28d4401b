/// <reference lib="esnext.disposable" />

/** The codes of errors, which are the same in every release. */
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
    | 'NO_GRADIENT'
    | 'OUT_OF_MEMORY'
    | 'SHAPE_MISMATCH'
    | 'SHAPE_OVERFLOW'
    | 'UNBOUND'
    | 'UNSUPPORTED'
    | 'WGSL';

/**
 * An error that relampago throws or rejects with. Each entry point and each copy of the package has its own class, but
 * `instanceof` with any of them recognises the errors of all of them, also from other realms, by the property
 * `Symbol.for('relampago.error')`, which is true.
 */
export class RelampagoError extends Error {
    readonly name: 'RelampagoError';
    readonly code: ErrorCode;
    private constructor();
    static [Symbol.hasInstance](value: unknown): value is RelampagoError;
}

/** The location or the content of the WebAssembly module. */
export type ModuleSource =
    | string
    | URL
    | Request
    | Response
    | BufferSource
    | WebAssembly.Module;

/**
 * Loads the WebAssembly module; await it before you use anything else. Later calls do nothing. In Node, `file:` URLs are
 * read from the disk. Rejects with `NOT_LOADED`, whose message has the module's address.
 *
 * @param source Needed only if a bundler or a server puts the module somewhere else. By default it is the address that
 * `moduleUrl` returns: the file beside this one for the engine's instruction set. Another module may need instructions
 * that this engine lacks, or may return numbers where NaN is the result.
 */
export default function init(source?: ModuleSource | Promise<ModuleSource>): Promise<void>;

/** The URL of the module that `init` loads by default. */
export function moduleUrl(): URL;
