/** The functions that differ between hosts; `node.js` sets its own. */
export const host = {
    /** Whether models run in a worker by default: where there is a page to keep responsive. */
    worker: typeof document === 'object' && typeof Worker === 'function',
    /** Starts a worker by the name of its script where workers are not those of browsers. */
    startWorker: undefined,
    /** The threads that run at the same time, where the host knows better than the engine. */
    threads: undefined,
    /** Reads the WebAssembly module where `fetch` cannot. */
    readModule: undefined,
    /** Opens a model by its name where `fetch` cannot. */
    openFile: undefined,
    /**
     * The bytes of a part, the vain attempts for it, the wait after the first one, and how long a connection may be silent.
     * Tests lower these.
     */
    download: { partBytes: 4 << 20, attempts: 5, waitMs: 250, silenceMs: 30_000 },
};
