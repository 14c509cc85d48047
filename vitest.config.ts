import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: {
    alias: [
      {
        find: /^hyperscale\/queue$/,
        replacement: fileURLToPath(new URL("./src/queue/index.ts", import.meta.url)),
      },
      {
        find: /^hyperscale$/,
        replacement: fileURLToPath(new URL("./src/index.ts", import.meta.url)),
      },
    ],
  },
  test: {
    include: ["src/**/*.test.ts", "sim/**/*.test.ts", "test/**/*.test.ts", "tools/**/*.test.ts"],
    pool: "forks",
    // A ceiling for a hang, not a judgement: tests of real processes must hold at a load of 20.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
