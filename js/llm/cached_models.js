// Lists and removes cached models.

import { lockModel, modelsFolder, nameOf, readFolder, sizeOf } from './opfs.js';

/** Lists the models that are cached, in whole or in part. */
export async function cachedModels() {
    const models = await modelsFolder();
    const found = [];
    for await (const entry of models?.values() ?? []) {
        const folder = /** @type {FileSystemDirectoryHandle} */ (entry);
        const read = await readFolder(folder).catch(() => {}); // Another tab may have removed it.
        if (read) {
            const { url, size } = read.description;
            const bytes = sizeOf(read.parts);
            found.push({ url, bytes, total: size || undefined, complete: bytes === size });
        }
    }
    return found;
}

/**
 * Removes a model when no load of it is running. Returns whether there was one.
 * @param {string} url
 */
export async function evict(url) {
    const models = await modelsFolder();
    if (!models) {
        return false;
    }
    const name = await nameOf(url);
    const unlock = await lockModel(name);
    try {
        await models.removeEntry(name, { recursive: true });
        return true;
    } catch (/** @type {any} */ error) {
        if (error.name === 'NotFoundError') {
            return false;
        }
        throw error;
    } finally {
        unlock();
    }
}
