let channel;

/** Resolves in another task: meanwhile this thread hears messages, and runs finalizers. Timers would be late in hidden tabs. */
export const pause = () => {
    if (globalThis.setImmediate) {
        return new Promise(setImmediate);
    }
    channel ??= new MessageChannel();
    return new Promise((resolve) => {
        channel.port1.onmessage = resolve;
        channel.port2.postMessage(undefined);
    });
};
