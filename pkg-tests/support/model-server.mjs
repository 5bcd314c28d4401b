// A server of one file, whose behaviour is the first part of a model's path: `/models/BEHAVIOUR/NAME`. Each path has a
// state of its own.

import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';

const RANGE = /^bytes=(\d+)-(\d+)$/;

/** Answers a request for a range, or for everything, as servers with `Accept-Ranges` do. */
function ranges({ file, request, response, etag, validators = etag && { etag } }) {
  const range = RANGE.exec(request.headers.range ?? '');
  const headers = { 'accept-ranges': 'bytes', ...validators };
  if (!range) {
    response.writeHead(200, { ...headers, 'content-length': file.length }).end(file);
    return;
  }
  const [from, to] = [Number(range[1]), Math.min(Number(range[2]), file.length - 1)];
  const part = file.subarray(from, to + 1);
  headers['content-range'] = `bytes ${from}-${to}/${file.length}`;
  response.writeHead(206, { ...headers, 'content-length': part.length }).end(part);
}

/** Closes a connection soon: browsers drop what they have not read when they hear of it. */
const breakOff = (response) => setTimeout(() => response.socket.destroy(), 30);

/** Sends `bytes` of an answer, and closes the connection. */
function truncated(call, bytes) {
  const { response } = call;
  const end = response.end.bind(response);
  response.end = (body) => {
    if (body.length <= bytes) {
      return end(body);
    }
    response.write(body.subarray(0, bytes), () => breakOff(response));
    return response;
  };
  ranges(call);
}

const date = (version) => ({ 'last-modified': `Wed, 25 Nov 2020 10:00:0${version} GMT` });

/** What names version 0 or 1 of a file in its answers, in ways by which a loader can tell them apart. */
export const TELLING = {
  strong: (version) => ({ etag: `"${version}"` }),
  'strong-dated': (version) => ({ etag: `"${version}"`, ...date(0) }),
  dated: (version) => date(version),
  'empty-dated': (version) => ({ etag: '', ...date(version) }),
  'quoted-dated': (version) => ({ etag: '""', ...date(version) }),
  'weak-dated': (version) => ({ etag: 'W/"same"', ...date(version) }),
  'weak-differs': (version) => ({ etag: `W/"${version}"`, ...date(0) }),
  'weaker': (version) => ({ etag: version ? 'W/"same"' : '"same"', ...date(0) }),
  'vanishes': (version) => (version ? {} : { etag: '"same"' }),
  'vanishes-dated': (version) => ({ etag: version ? '' : '"same"', ...date(0) }),
};

/** The same, in ways in which two versions may look alike. */
export const SILENT = {
  none: () => ({}),
  empty: () => ({ etag: '' }),
  quoted: () => ({ etag: '""' }),
  weak: () => ({ etag: 'W/"same"' }),
  'weak-empty': () => ({ etag: 'W/""' }),
  undated: () => ({ 'last-modified': '0' }),
  packed: () => ({ 'last-modified': 'Sat, 26 Oct 1985 08:15:00 GMT' }),
  // The file may change once more in the second of its date.
  now: () => ({ date: date(0)['last-modified'], ...date(0) }),
  'weak-now': () => ({ etag: 'W/"same"', date: date(0)['last-modified'], ...date(0) }),
};

/** Ranges of an older file, and after some requests of the file. */
const renewed = (validators) => (call) => {
  const version = call.count > 8 ? 1 : 0;
  ranges({ ...call, file: version ? call.file : call.older, validators: validators(version) });
};

const BEHAVIOURS = {
  ranges,

  ...Object.fromEntries(Object.entries({ ...TELLING, ...SILENT }).map(([name, validators]) => [`renewed-${name}`, renewed(validators)])),

  /** A longer file is replaced under the same ETag. */
  shrinking(call) {
    ranges(call.count > 5 ? call : { ...call, file: Buffer.concat([call.file, Buffer.alloc(100)]) });
  },

  /** Weak ETags all the time. */
  weak: (call) => ranges({ ...call, validators: { etag: 'W/"same"' } }),

  /** Compresses whatever it sends, ranges too, whose numbers are those of the compressed file then. */
  compressing(call) {
    const file = gzipSync(call.file);
    call.response.setHeader('content-encoding', 'gzip');
    ranges({ ...call, file });
  },

  /** Compresses ranges from the second on. */
  'compressing-late'(call) {
    if (call.count === 1) {
      ranges(call);
      return;
    }
    call.response.setHeader('content-encoding', 'gzip');
    const { file, request: { headers }, response, etag } = call;
    const [, from, to] = RANGE.exec(headers.range).map(Number);
    response.writeHead(206, { etag, 'content-range': `bytes ${from}-${to}/${file.length}` }).end(gzipSync(file.subarray(from, to + 1)));
  },

  /** Does not say how long the file is, in ranges from the second on. */
  lengthless(call) {
    if (call.count === 1) {
      ranges(call);
      return;
    }
    const { file, request: { headers }, response, etag } = call;
    const [, from, to] = RANGE.exec(headers.range).map(Number);
    response.writeHead(206, { etag, 'content-range': `bytes ${from}-${to}/*` }).end(file.subarray(from, to + 1));
  },

  /** Sends another range than the one that it was asked for. */
  shifted(call) {
    if (call.count === 1) {
      ranges(call);
      return;
    }
    call.request.headers.range = call.request.headers.range.replace(/\d+/, (from) => Number(from) + 1);
    ranges(call);
  },

  /** Answers take a while. */
  slow(call) {
    waiting.most = Math.max(waiting.most, ++waiting.now);
    setTimeout(() => {
      waiting.now--;
      ranges(call);
    }, 30);
  },

  /** One answer with everything. */
  plain({ file, response, etag }) {
    response.writeHead(200, { etag, 'content-length': file.length }).end(file);
  },

  /** One answer of unknown length. */
  chunked({ file, response, etag }) {
    response.writeHead(200, { etag }).write(file.subarray(0, 1000));
    response.end(file.subarray(1000));
  },

  /** No ETag, only a date. */
  dated(call) {
    ranges({ ...call, validators: date(0) });
  },

  /** Nothing that names the version. */
  unnamed: (call) => ranges({ ...call, validators: {} }),

  /** Breaks each connection after a number of bytes, so that a part takes two attempts. */
  breaking: (call) => truncated(call, 40_000),

  /** Each connection breaks after so few bytes that no number of attempts is enough. */
  broken: (call) => truncated(call, 100),

  /** The one answer breaks. */
  halved({ file, response, etag }) {
    response.writeHead(200, { etag, 'content-length': file.length });
    response.write(file.subarray(0, file.length >> 1), () => breakOff(response));
  },

  /** The first answer for each part is an error that passes. */
  busy(call) {
    const { request, response, times } = call;
    request.headers.range !== 'bytes=0-0' && times === 1 ? response.writeHead(503).end() : ranges(call);
  },

  /** The file is there, and later the server is out of order. */
  failing(call) {
    call.isFreed ? call.response.writeHead(503).end() : ranges(call);
  },

  /** Other sites may read everything. */
  shared(call) {
    call.response.setHeader('access-control-allow-origin', '*');
    call.response.setHeader('access-control-expose-headers', 'content-range, etag');
    ranges(call);
  },

  /** Other sites may read the file, but neither its ranges nor its version. */
  hiding(call) {
    call.response.setHeader('access-control-allow-origin', '*');
    ranges(call);
  },

  /** The file is said to be larger than any memory. */
  endless({ response, etag }) {
    response.writeHead(206, { etag, 'content-range': 'bytes 0-0/1000000000000000', 'content-length': 1 }).end('G');
  },

  /** The file is elsewhere, as signed URLs of a content network are. */
  moved({ response, path }) {
    response.writeHead(302, { location: path.replace('moved', 'ranges') }).end();
  },

  missing: ({ response }) => response.writeHead(404).end(),

  /** The file is removed in mid-download. */
  lost(call) {
    call.count > 5 ? call.response.writeHead(404).end() : ranges(call);
  },

  /** The file is replaced once in mid-download. */
  replaced: (call) => ranges({ ...call, etag: call.count > 5 ? '"new"' : '"old"' }),

  /** The file changes all the time. */
  changing: (call) => ranges({ ...call, etag: `"${call.count >> 2}"` }),

  /** The answer to a range is everything, after the first one. */
  forgetful(call) {
    call.count > 3 ? BEHAVIOURS.plain(call) : ranges(call);
  },

  /** The one answer stops. */
  mute({ file, response, etag }) {
    response.writeHead(200, { etag, 'content-length': file.length }).write(file.subarray(0, 1000));
  },

  /** The first answer for each part never comes, or stops after 1000 bytes. */
  silent(call) {
    const { request, response, file, etag, times } = call;
    const from = Number(/=(\d+)/.exec(request.headers.range)[1]);
    if (request.headers.range === 'bytes=0-0' || times > 1 || from % 65_536 !== 0) {
      ranges(call);
    } else if ((from / 65_536) % 2 === 0) {
      const to = Math.min(from + 65_536, file.length) - 1;
      response.writeHead(206, { etag, 'content-range': `bytes ${from}-${to}/${file.length}`, 'content-length': to + 1 - from });
      response.write(file.subarray(from, from + 1000));
    }
  },

  /** Parts after the first ones never arrive. */
  stuck(call) {
    if (call.count <= 5 || call.isFreed) {
      ranges(call);
    }
  },
};

/** Requests that wait for `slow`, and the most that there were at a time. */
export const waiting = { now: 0, most: 0 };

/** Returns a handler of requests that serves `file`, or `older` of the same length, and what tests can ask and change. */
export function modelServer(file, older) {
  const etag = `"${createHash('sha256').update(file).digest('hex').slice(0, 16)}"`;
  const requests = new Map();
  const state = { down: false, freed: new Set() };
  const of = (path) => requests.get(path) ?? [];
  const answer = (request, response, { pathname }) => {
    const [, models, behaviour] = pathname.split('/');
    if (models !== 'models') {
      return false;
    }
    requests.set(pathname, [...of(pathname), request.headers.range]);
    if (state.down) {
      request.socket.destroy();
      return true;
    }
    response.setHeader('cross-origin-resource-policy', 'same-origin');
    const calls = of(pathname);
    const times = calls.filter((range) => range === request.headers.range).length;
    BEHAVIOURS[behaviour]({ path: pathname, file, older, request, response, etag, count: calls.length, times, isFreed: state.freed.has(pathname) });
    return true;
  };
  return {
    answer,
    state,
    requestsTo: of,
    forget: (path) => requests.delete(path),
  };
}
