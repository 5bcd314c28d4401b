// With esbuild the page names the modules, as the guide's sample does; the worker gets them compiled.
globalThis.outcome = import('./models.js')
  .then(() => import('./llm-page.js'))
  .then(() => globalThis.outcome);
