// Room for finalizers. The collector does not know of the module's memory, and what it finds is freed between tasks. Loops
// that await nothing but the module would leave everything in memory.

import { allocatedBytes } from './relampago.js';

/** The bytes that calls may allocate before finalizers get their turn. */
const ROOM = 1 << 27;

let most = ROOM;

/** Returns a result, after a task in which finalizers run if much was allocated since the last one. */
export const leavingRoom = async (result) => {
    const value = await result;
    if (allocatedBytes() > most) {
        collect();
        await new Promise((resolve) => setTimeout(resolve));
        most = allocatedBytes() + ROOM;
    }
    return value;
};

/** Has the collector begin: it counts the bytes of buffers, which are not in memory until something is written to them. */
const collect = () => {
    try {
        for (let i = 0; i < 4; i++) {
            new ArrayBuffer(ROOM);
        }
    } catch {} // There is no room for them.
};
