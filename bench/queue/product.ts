/** The queue as users have it: built. Run from source it would carry the names that the loader gives every function. */

type Product = typeof import("../../src/queue/index.ts");

const built = new URL("../../dist/queue/index.js", import.meta.url).href;

export const { QueueClient, QueueNode, defaultSettings, isolateExecutors, silentLog }: Product =
  await import(built);
