/**
 * The timers of a core, taken when it is loaded. Code of workflows runs in the same process and may replace the
 * global ones, such as with fake timers of a test library; the load goes on as planned.
 */

export const { clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } = globalThis;
