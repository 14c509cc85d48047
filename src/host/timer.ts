/**
 * Timers with an owner: the deadline of one call, the next deadline of one machine. Work that nobody waits for belongs
 * to `Background`, which names it and ends it with the process.
 */

export interface Timer {
  cancel(): void;
}

export function startTimer(ms: number, fire: () => void): Timer {
  const timer = setTimeout(fire, ms);
  return { cancel: () => clearTimeout(timer) };
}

/** Returns the result of `work`, or rejects with `late()` after `ms`; the work itself goes on. */
export async function within<Value>(
  work: Promise<Value>,
  ms: number,
  late: () => Error,
): Promise<Value> {
  let timer: Timer | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = startTimer(ms, () => reject(late()));
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    timer?.cancel();
  }
}
