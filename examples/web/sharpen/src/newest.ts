/**
 * Returns a function that runs `task`, one run at a time. Arguments that come during a run wait for its end, and the
 * newest of them replaces the others.
 */
export function newest<T extends object>(task: (argument: T) => Promise<void>): (argument: T) => Promise<void> {
  const waiting: T[] = [];
  let isBusy = false;
  return async (argument) => {
    waiting[0] = argument;
    if (isBusy) {
      return;
    }
    isBusy = true;
    try {
      for (let next = waiting.pop(); next; next = waiting.pop()) {
        await task(next);
      }
    } finally {
      isBusy = false;
    }
  };
}
