const { script, backend } = Object.fromEntries(new URLSearchParams(location.search));

async function run() {
  const registration = await navigator.serviceWorker.register(`./${script}`, { type: 'module' });
  const worker = registration.installing ?? registration.waiting ?? registration.active;
  const { port1, port2 } = new MessageChannel();
  const answer = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)));
  worker.postMessage(backend, [port2]);
  const result = await answer;
  await registration.unregister();
  return result;
}

globalThis.outcome = run();
