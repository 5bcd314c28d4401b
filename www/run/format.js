// Values as text, as a console shows them.

/** The most elements of an array, and fields of an object, that are shown. */
const MOST = 100;
/** The depth to which arrays and objects in others are shown. */
const DEEPEST = 4;

/** Returns a value as text; a string as it is, unless it stands in another value. */
export function format(value, depth = 0) {
  if (typeof value === 'string') {
    return depth ? JSON.stringify(value) : value;
  }
  if (typeof value === 'function') {
    return `[function ${value.name}]`;
  }
  if (Object(value) !== value) {
    return typeof value === 'bigint' ? `${value}n` : String(value);
  }
  if (value instanceof Error) {
    return String(value);
  }
  if (depth === DEEPEST) {
    return '…';
  }
  if (Array.isArray(value)) {
    return listed(value, depth);
  }
  if (ArrayBuffer.isView(value) && value.length !== undefined) {
    return `${value.constructor.name}(${value.length}) ${listed(value, depth)}`;
  }
  return fields(value, depth);
}

/** Returns the elements of an array; those after the first hundred as their number. */
function listed(values, depth) {
  const shown = Array.from(values.slice(0, MOST), (value) => format(value, depth + 1));
  return `[${[...shown, ...rest(values.length)].join(', ')}]`;
}

function fields(object, depth) {
  const entries = Object.entries(object);
  const shown = entries.slice(0, MOST).map(([name, value]) => `${name}: ${format(value, depth + 1)}`);
  return shown.length ? `{ ${[...shown, ...rest(entries.length)].join(', ')} }` : '{}';
}

const rest = (length) => (length > MOST ? [`… ${length - MOST} more`] : []);
