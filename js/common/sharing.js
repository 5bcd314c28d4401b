// What a worker does that shares the module's memory with others: one leads, and the others take parts of its work.

/**
 * Returns the methods of such a worker.
 * @param {(options: { module_or_path: WebAssembly.Module, memory: WebAssembly.Memory }) => Promise<unknown>} load
 * @param {() => void} runThread
 * @param {(count: number) => void} startThreads
 */
export const sharing = (load, runThread, startThreads) => ({
    /**
     * Has the module run in a memory.
     * @param {WebAssembly.Module} module
     * @param {WebAssembly.Memory} memory
     */
    async share(module, memory) {
        await load({ module_or_path: module, memory });
    },

    /** Takes parts of the leader's work from the next task on, and answers no more. */
    follow() {
        setTimeout(runThread);
    },

    /** Makes this worker the leader of `count` workers: it divides its work among them and itself. */
    lead: startThreads,
});
