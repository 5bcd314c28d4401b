const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });

globalThis.outcome = new Promise((resolve, reject) => {
  worker.onmessage = ({ data }) => (data.failure ? reject(new Error(data.failure)) : resolve(data));
  worker.onerror = (event) => reject(new Error(event.message));
});
worker.postMessage(new URLSearchParams(location.search).get('backend'));
