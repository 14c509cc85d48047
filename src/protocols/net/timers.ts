/**
 * Timers of a core, captured when it is loaded. Workflow code runs in the same process and may replace the global ones,
 * for example with fake timers of a test library; the load is not affected.
 */

export const { clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } = globalThis;
