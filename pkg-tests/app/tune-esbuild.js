// With esbuild the page names the modules, as the guide's sample does; those that tune lie beside the bundle.
globalThis.outcome = import('./models.js')
  .then(() => import('./tune-page.js'))
  .then(() => globalThis.outcome);
