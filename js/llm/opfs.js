// Folders of models in the Origin Private File System (OPFS), which all tabs of an origin share.
//
// Each model is a folder with a description and a file for each part. A part is written as a whole or not at all, so
// the parts of a download that breaks off, or whose tab ends, are always usable.

import { lock } from './lock.js';

/**
 * @typedef {{ url: string, size: number, version?: string, partBytes: number }} Description of the file of a model
 * @typedef {Map<number, File>} Parts the files of a model's parts by their index
 */

const FOLDER = 'relampago-models';
const DESCRIPTION = 'model.json';

/**
 * The folder of all models; undefined if there is none, or if only workers may write files.
 * @param {{ create: boolean }} [options]
 */
export async function modelsFolder(options) {
    if (!globalThis.FileSystemFileHandle?.prototype.createWritable) {
        return undefined;
    }
    try {
        const origin = await navigator.storage.getDirectory();
        return await origin.getDirectoryHandle(FOLDER, options);
    } catch {
        return undefined; // Windows may be private, and nothing may have been cached yet.
    }
}

/**
 * The name of a URL's folder.
 * @param {string} url
 */
export async function nameOf(url) {
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(url));
    return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/**
 * Waits until no other tab uses a model; returns the function that ends its use.
 * @param {string} name
 * @param {AbortSignal} [signal]
 */
export const lockModel = (name, signal) => lock(`${FOLDER}/${name}`, signal);

/**
 * @param {FileSystemDirectoryHandle} folder
 * @param {string} name
 * @param {FileSystemWriteChunkType} content
 */
async function write(folder, name, content) {
    const file = await folder.getFileHandle(name, { create: true });
    const writable = await file.createWritable();
    try {
        await writable.write(content);
        await writable.close();
    } catch (error) {
        await writable.abort().catch(() => {});
        throw error;
    }
    return file.getFile();
}

/**
 * @param {FileSystemDirectoryHandle} folder
 * @param {number} index
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
export const writePart = (folder, index, bytes) => write(folder, String(index), bytes);

/**
 * @param {FileSystemDirectoryHandle} folder
 * @param {Description} description
 */
export const writeDescription = (folder, description) => write(folder, DESCRIPTION, JSON.stringify(description));

/**
 * @param {FileSystemDirectoryHandle} folder
 * @returns {Promise<Description>}
 */
async function readDescription(folder) {
    const file = await (await folder.getFileHandle(DESCRIPTION)).getFile();
    const description = JSON.parse(await file.text());
    if (!(description.partBytes > 0)) {
        throw new Error(`the description of a model has ${description.partBytes} bytes a part`);
    }
    return description;
}

/**
 * Reads a model's folder: its description, and the files of its parts by their index.
 * @param {FileSystemDirectoryHandle} folder
 * @returns {Promise<{ description: Description, parts: Parts }>}
 */
export async function readFolder(folder) {
    const description = await readDescription(folder);
    /** @type {Parts} */
    const parts = new Map();
    for await (const [name, handle] of folder.entries()) {
        if (/^\d+$/.test(name)) {
            parts.set(Number(name), await /** @type {FileSystemFileHandle} */ (handle).getFile());
        }
    }
    return { description, parts };
}

/** @param {Parts} parts */
export const sizeOf = (parts) => [...parts.values()].reduce((sum, { size }) => sum + size, 0);

/**
 * Whether the origin may store this number of further bytes, as far as the browser reports.
 * @param {number} bytes
 */
export async function hasRoom(bytes) {
    const { quota = Infinity, usage = 0 } = (await navigator.storage.estimate?.().catch(() => undefined)) ?? {};
    return usage + bytes <= quota;
}
