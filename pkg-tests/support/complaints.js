// The first script of a page whose browser's console the tests cannot hear: keeps what it complains of.

const complaints = [];
globalThis.complaints = complaints;

const { error } = console;
console.error = (...values) => {
  complaints.push(values.map(String).join(' '));
  error.apply(console, values);
};

addEventListener('error', ({ message, target }) => {
  complaints.push(message ?? `${target.src ?? target.href} could not be loaded`);
}, true);
addEventListener('unhandledrejection', ({ reason }) => complaints.push(`unhandled: ${reason}`));
addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
  // The browser asks for that one, not the page.
  blockedURI.endsWith('/favicon.ico') || complaints.push(`the page's policy forbids ${blockedURI}: ${violatedDirective}`);
});
