import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import SlowFirst from "./tools/slow-first.ts";

/** Run by `npm run test:full` only: more than 10 s of test time on a quiet machine (tools/test-verdict.mjs). */
const SLOW = ["{src,sim,test,tools}/**/*.slow.test.ts"];

const ALL = ["src/**/*.test.ts", "sim/**/*.test.ts", "test/**/*.test.ts", "tools/**/*.test.ts"];

/**
 * Tests that start processes, open sockets or databases, or wait for real time. Everything else is a unit
 * test, so a new file beside its source is one unless it stands in a folder named here.
 */
const SYSTEM = [
  "src/{audit,cli,demo,engine,host,ledger,protocols,queue,runner,nodes}/**/*.test.ts",
  // Memory is measured in a process of its own: what other tests have done to the heap counts, too.
  "src/core/load/stats/workflow-stats.test.ts",
  // Reporters against servers on this machine.
  "src/reporters/**/*.system.test.ts",
  // The terminal of a real process, and pages in a real browser.
  "src/ui/exit-paths.test.ts",
  "test/web/*-page.test.ts",
  "sim/**/*.test.ts",
  "test/{combinations,doors,e2e,processes}/**/*.test.ts",
  "test/*.test.ts",
];

export default defineConfig({
  resolve: {
    alias: [
      {
        find: /^hyperscalejs\/queue$/,
        replacement: fileURLToPath(new URL("./src/queue/index.ts", import.meta.url)),
      },
      {
        find: /^hyperscalejs\/([a-z0-9]+)$/,
        replacement: fileURLToPath(new URL("./src/protocols/$1/index.ts", import.meta.url)),
      },
      {
        find: /^hyperscalejs$/,
        replacement: fileURLToPath(new URL("./src/index.ts", import.meta.url)),
      },
    ],
  },
  test: {
    pool: "forks",
    // Commands under test judge by thresholds alone, also on a busy CI machine: --require-trusted is tested by name.
    env: { CI: "" },
    sequence: { sequencer: SlowFirst },
    // A ceiling for a hang, not a judgement: tests of real processes must hold at a load of 20.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 240_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ALL,
          exclude: [...SYSTEM, ...SLOW],
          isolate: false,
          maxWorkers: 2,
        },
      },
      // These wait for processes more than they compute: four of them keep two cores busy.
      {
        extends: true,
        test: {
          name: "system",
          include: SYSTEM,
          exclude: SLOW,
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: "slow", include: SLOW, maxWorkers: 6, sequence: { groupOrder: 2 } },
      },
    ],
  },
});
