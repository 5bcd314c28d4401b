/** @type {MessagePort | undefined} */
let channel;
/**
 * The functions that resolve waiting promises, in the order of their messages.
 * @type {((value?: unknown) => void)[]}
 */
const waiting = [];

const open = () => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => waiting.shift()?.();
    return port2;
};

/** Resolves in another task: meanwhile this thread hears messages, and runs finalizers. Timers would be late in hidden tabs. */
export const pause = () => {
    if (typeof setImmediate === 'function') {
        return new Promise((resolve) => void setImmediate(resolve));
    }
    const port = (channel ??= open());
    return new Promise((resolve) => {
        waiting.push(resolve);
        port.postMessage(undefined);
    });
};
