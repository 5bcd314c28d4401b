/** A new element with a class and a text. */
export function element(tag, className, textContent = '') {
  return Object.assign(document.createElement(tag), { className, textContent });
}
