/**
 * A file of the host: its size, and its pieces.
 * @typedef {{ size: number, pieces: AsyncGenerator<Uint8Array<ArrayBuffer>> }} LocalFile
 */

/**
 * A worker as browsers have it, or a stand-in for one of Node.
 * @typedef {{
 *     onmessage: any, onerror: any, onmessageerror: any,
 *     postMessage(message: any, transfer: any[]): void,
 *     terminate(): void,
 * }} AnyWorker
 */

/** The functions that differ between hosts; `node.js` sets its own. */
export const host = {
    /** Whether models run in a worker by default: where there is a page to keep responsive. */
    worker: typeof document === 'object' && typeof Worker === 'function',
    /** Starts a worker by the name of its script where workers are not those of browsers. */
    startWorker: /** @type {((name: string) => AnyWorker) | undefined} */ (undefined),
    /** The threads that run at the same time, where the host knows better than the engine. */
    threads: /** @type {number | undefined} */ (undefined),
    /** Reads the WebAssembly module where `fetch` cannot. */
    readModule: /** @type {((source: any) => unknown) | undefined} */ (undefined),
    /** Opens a model by its name where `fetch` cannot. */
    openFile: /** @type {((source: any) => Promise<LocalFile | undefined>) | undefined} */ (undefined),
    /**
     * The bytes of a part, the vain attempts for it, the wait after the first one, and how long a connection may be silent.
     * Tests lower these.
     */
    download: { partBytes: 4 << 20, attempts: 5, waitMs: 250, silenceMs: 30_000 },
};
