// Node's workers, as the scripts of this package use those of browsers.

import { Worker } from 'node:worker_threads';

/** What runs in the worker before its script, which finds the names that browsers have there. */
const PREPARE = `
    const { parentPort, workerData } = require('node:worker_threads');
    globalThis.onmessage = undefined;
    globalThis.postMessage = (message, transfer) => parentPort.postMessage(message, transfer);
    import(workerData).then(() => parentPort.on('message', (data) => globalThis.onmessage({ data })));
`;

/** A worker that keeps the process alive only while it owes an answer: each message gets one, but for pieces before it. */
export class NodeWorker {
    #worker;
    #owed = new Set();

    /** @param {URL} script */
    constructor(script) {
        this.#worker = new Worker(PREPARE, { eval: true, workerData: script.href });
        this.#worker.unref();
    }

    /** @param {(event: { data: any }) => void} listener */
    set onmessage(listener) {
        this.#worker.on('message', (data) => {
            this.#settle(data);
            listener({ data });
        });
    }

    /** @param {(event: { message: string, preventDefault(): void }) => void} listener */
    set onerror(listener) {
        this.#worker.on('error', ({ message }) => listener({ message, preventDefault() {} }));
    }

    /** @param {(event: { message: string, preventDefault(): void }) => void} listener */
    set onmessageerror(listener) {
        this.#worker.on('messageerror', ({ message }) => listener({ message, preventDefault() {} }));
    }

    /**
     * @param {any} message
     * @param {any[]} transfer
     */
    postMessage(message, transfer) {
        this.#worker.postMessage(message, transfer);
        this.#owed.add(message[0]);
        this.#worker.ref();
    }

    terminate() {
        this.#worker.terminate();
    }

    /**
     * Notes an answer. A list's fourth value is a piece of one, if it has neither a result nor an error.
     * @param {any[]} answer
     */
    #settle([call, value, error, piece]) {
        if (value !== undefined || error !== undefined || piece === undefined || Array.isArray(piece)) {
            this.#owed.delete(call);
        }
        this.#owed.size === 0 && this.#worker.unref();
    }
}
