// The frames of a page while it works.

/** Collects the times between frames in `globalThis.gaps`, if a page calls it. */
export function countFrames() {
  globalThis.gaps = [];
  let before;
  const frame = (now) => {
    before !== undefined && globalThis.gaps.push(now - before);
    before = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}
