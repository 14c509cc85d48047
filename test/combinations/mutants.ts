/**
 * Planted defects: each breaks one rule of counting in a copy of the sources. The comparison must find
 * every one of them; a mutant that survives is a hole in the model.
 */

import { spawn } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Case } from "./cases.ts";

interface Edit {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

interface Mutant {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** The way of trying a seed that can show it. */
  readonly shownBy: Case;
  /** Metric that must differ: a difference elsewhere does not count as found. */
  readonly differs: RegExp;
}

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const COPIED = ["src", "test/combinations", "package.json", "tsconfig.json"];
const SEED = "mutants";
const COUNT_MAX = 80;

const MUTANTS: readonly Mutant[] = [
  {
    name: "none: the copy as it is",
    edits: [],
    shownBy: "journey",
    differs: /^never$/,
  },
  {
    name: "intended start shifted by set-up",
    edits: [
      {
        file: "src/engine/execution.ts",
        from: "    await this.#besideSteps.setUp(user);\n",
        to:
          "    const setUpAt = clock();\n    await this.#besideSteps.setUp(user);\n" +
          "    user.iteration.dueAt += clock() - setUpAt;\n",
      },
    ],
    shownBy: "layers",
    // Calls due in the warm-up move into the measured time, too.
    differs: /mean latency is|outcomes of arrivals is/,
  },
  {
    name: "window base wrong by 0.5 s",
    edits: [
      {
        file: "src/engine/recorder.ts",
        from: "begin(Math.floor(Math.max(0, this.#host.measuredMs(now)) / WINDOW_MS",
        to: "begin(Math.floor(Math.max(0, this.#host.measuredMs(now) + 500) / WINDOW_MS",
      },
      {
        file: "src/engine/recorder.ts",
        from: "reached = Math.floor(Math.max(0, this.#host.measuredMs(now)) / WINDOW_MS",
        to: "reached = Math.floor(Math.max(0, this.#host.measuredMs(now) + 500) / WINDOW_MS",
      },
    ],
    shownBy: "layers",
    differs: /by window \d+ is/,
  },
  {
    name: "rate over wrong time",
    edits: [
      {
        file: "src/core/load/results/summarise.ts",
        from: "ratePerSecond: perSecond(totals.inside.calls, elapsedSeconds)",
        to: "ratePerSecond: perSecond(totals.inside.calls, elapsedSeconds + 0.1)",
      },
    ],
    shownBy: "layers",
    differs: /add up to/,
  },
  {
    name: "missed arrivals dropped",
    edits: [
      {
        file: "src/core/load/results/workflow-aggregate.ts",
        from: "missed: stats.moment.arrivalsWaiting",
        to: "missed: 0",
      },
    ],
    shownBy: "layers",
    differs: /arrivals is/,
  },
  {
    name: "warm-up counted",
    edits: [
      {
        file: "src/engine/recorder.ts",
        from: "    this.#measureFrom = at - MOMENT_SLACK_MS;\n",
        to: "    this.#measureFrom = at - 1_000;\n",
      },
    ],
    shownBy: "layers",
    differs: /sent is|arrivals is/,
  },
  {
    name: "pause counted as lateness",
    edits: [
      {
        file: "src/engine/iteration.ts",
        from: "    pauses.push(from, now + ms);\n",
        to: "    pauses.push(from, from);\n",
      },
    ],
    shownBy: "journey",
    differs: /latencies of first calls/,
  },
  {
    name: "floating call lost",
    edits: [
      {
        file: "src/engine/flow-runner.ts",
        from: "    else {\n      iteration.answered(record.endedAt);\n",
        to: "    else if (!this.#bodyDone) {\n      iteration.answered(record.endedAt);\n",
      },
    ],
    shownBy: "journey",
    differs: /sent is|results do not/,
  },
  {
    name: "group closed early",
    edits: [
      {
        file: "src/engine/flow-runner.ts",
        from: "      if (group.over) this.#close(group);\n",
        to: "      this.#close(group);\n",
      },
      {
        file: "src/engine/flow-group.ts",
        from: "      if (group.over) close(group);\n",
        to: "      if (group.over && failed && group.dueAt < 0) close(group);\n",
      },
    ],
    shownBy: "journey",
    differs: /durations of group/,
  },
  {
    name: "mix share off by 2 %",
    edits: [
      {
        file: "src/core/load/plan/shares.ts",
        from: "patternOf(wholeNumbers(weights))",
        to:
          "patternOf(wholeNumbers(weights.map((weight, at, all) =>" +
          " weight + (at === 0 ? 0.0204 * all.reduce((sum, one) => sum + one, 0) : 0))))",
      },
    ],
    shownBy: "journey",
    differs: /its share is/,
  },
  {
    name: "histogram cell shifted",
    edits: [
      {
        file: "src/core/load/stats/cell-recorder.ts",
        from: "const cell = cellOf(value);",
        to: "const cell = cellOf(value) + 1;",
      },
    ],
    shownBy: "journey",
    differs: /exact values/,
  },
  {
    name: "calls without an answer dropped",
    edits: [
      {
        file: "src/engine/recorder.ts",
        from: "waitedMs * 1_000 >= this.#typicalLatencyUs(index)",
        to: "waitedMs < 0 && this.#typicalLatencyUs(index) < 0",
      },
    ],
    shownBy: "layers",
    differs: /unanswered is/,
  },
  {
    name: "unanswered calls pass",
    edits: [
      {
        file: "src/core/load/results/gates.ts",
        from: "...(searching ? [] : unansweredGates(workflow, base)),",
        to: "...unansweredGates(workflow, base).slice(9),",
      },
    ],
    shownBy: "layers",
    differs: /never answered, and the run passes/,
  },
  {
    name: "cut-off iterations in durations",
    edits: [
      {
        file: "src/engine/iteration.ts",
        from: 'if (!this.#began || outcome === "interrupted") return;',
        to: "if (!this.#began) return;",
      },
    ],
    shownBy: "journey",
    differs: /durations is/,
  },
  {
    name: "latency of code that threw",
    edits: [
      {
        file: "src/engine/flow-call.ts",
        from: 'errorKind: "exception", error: errorText(error)',
        to: "error: errorText(error)",
      },
    ],
    shownBy: "flow",
    differs: /throws sent is|throws latencies is/,
  },
  {
    name: "step that never succeeded passes",
    edits: [
      {
        file: "src/core/load/results/gates.ts",
        from: "const passed = ok > 0 && broken.length === 0;",
        to: "const passed = ok > 0;",
      },
    ],
    shownBy: "journey",
    differs: /never succeeded passes/,
  },
  {
    name: "refused step settles at once",
    edits: [
      {
        file: "src/engine/refusal.ts",
        from: "    setImmediate(() => reject(end));\n",
        to: "    reject(end);\n",
      },
    ],
    shownBy: "journey",
    differs: /refused at once/,
  },
  {
    name: "a stop is one sample of lag",
    edits: [
      {
        file: "src/engine/recorder.ts",
        from: "const samples = Math.min(LAG_SAMPLES_MAX, 1 + Math.floor(ms / LAG_INTERVAL_MS));",
        to: "const samples = Math.min(LAG_SAMPLES_MAX, 1);",
      },
    ],
    shownBy: "edge",
    differs: /late samples/,
  },
  {
    name: "metrics of a mix go to its first flow",
    edits: [
      {
        file: "src/engine/core.ts",
        from: "setMetricSink(made instanceof MixExecution ? made.metrics : made.recorder);",
        to: "setMetricSink(made instanceof MixExecution ? made.parts[0]?.recorder : made.recorder);",
      },
    ],
    shownBy: "edge",
    differs: /f1: orders is 0/,
  },
  {
    name: "metrics of a mix end with a flow",
    edits: [
      {
        file: "src/engine/mix-metrics.ts",
        from: "    flow?.recorder.add(name, kind, value, tags);\n",
        to: "    if (this.#flows.every(({ users }) => users > 0)) flow?.recorder.add(name, kind, value, tags);\n",
      },
    ],
    shownBy: "edge",
    differs: /orders is \d+, should be/,
  },
  {
    name: "search blames the next load",
    edits: [
      {
        file: "src/core/load/plan/breakpoint.ts",
        from: 'this.#enter(probe.held ? "settling" : "draining", probe.toMs);',
        to: 'this.#enter("settling", probe.toMs);',
      },
    ],
    shownBy: "edge",
    differs: /are in the target while/,
  },
  {
    name: "rows miss calls of other cores",
    edits: [
      {
        file: "src/core/load/stats/known-names.ts",
        from: "if (this.#givenUp === null) return [];",
        to: "if (this.#givenUp !== undefined) return [];",
      },
    ],
    shownBy: "edge",
    differs: /n\d+\/? sent is \d/,
  },
  {
    name: "rows that repeat are leased",
    edits: [
      {
        file: "src/engine/feeds.ts",
        from: 'const isExclusive = feed.order === "once" ||',
        to: 'const isExclusive = feed.order !== "random" ||',
      },
    ],
    shownBy: "edge",
    differs: /rows were asked for that repeat/,
  },
  {
    name: "arrivals that wait for a row vanish",
    edits: [
      {
        file: "src/engine/execution.ts",
        from: "const arrivalsWaiting = missed + this.#waiting.arrivals;",
        to: "const arrivalsWaiting = missed;",
      },
    ],
    shownBy: "edge",
    differs: /arrivals begun and missed are/,
  },
  {
    name: "planned follows a lost core",
    edits: [
      {
        file: "src/core/load/results/workflow-summary.ts",
        from: "loadSeries(load, secondsAt, workflow.planned)",
        to: "loadSeries(load, secondsAt, null)",
      },
    ],
    shownBy: "edge",
    differs: /planned in window/,
  },
  {
    name: "no iteration ended, and it passes",
    edits: [
      {
        file: "src/core/load/results/gates.ts",
        from: "if (iterationsInterrupted < begun || unanswered.iterations === begun) return [];",
        to: "if (iterationsInterrupted <= begun) return [];",
      },
    ],
    shownBy: "edge",
    differs: /the gate says true/,
  },
];

/** Plants each of these and prints what was found of it; true when all were, and nothing in the control. */
export async function findMutants(named: string): Promise<boolean> {
  let all = true;
  for (const mutant of MUTANTS.filter(({ name }) => name.includes(named))) {
    const beganAt = performance.now();
    const lines = await differencesOf(mutant);
    const found = lines.find((line) => mutant.differs.test(line));
    const right = mutant.edits.length === 0 ? lines.length === 0 : found !== undefined;
    all &&= right;
    const seconds = Math.round((performance.now() - beganAt) / 1_000);
    const what = found ?? lines[0] ?? "no difference";
    const verdict = mutant.edits.length === 0 ? "control" : right ? "found" : "NOT FOUND";
    process.stdout.write(
      `${verdict.padEnd(10)} ${mutant.name.padEnd(34)} ${String(seconds).padStart(4)} s  ${what}\n`,
    );
  }
  return all;
}

/** The lines of the first combination that differs from the model, with this defect planted. */
async function differencesOf(mutant: Mutant): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), "hyperscale-mutant-"));
  try {
    for (const path of COPIED) await cp(join(ROOT, path), join(folder, path), { recursive: true });
    await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
    for (const edit of mutant.edits) await plant(folder, edit);
    const count = mutant.edits.length === 0 ? 10 : COUNT_MAX;
    const output = await run(folder, [
      ...["--first", "--only", mutant.shownBy],
      ...["--seed", SEED, "--count", String(count)],
    ]);
    return output.split("\n").flatMap((line) => (line.startsWith("  ") ? [line.trim()] : []));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function plant(folder: string, { file, from, to }: Edit): Promise<void> {
  const path = join(folder, file);
  const text = await readFile(path, "utf8");
  if (text.split(from).length !== 2) throw new Error(`${file} has no single place "${from}"`);
  await writeFile(
    path,
    text.replace(from, () => to),
  );
}

async function run(folder: string, args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, ["--import", "tsx", "test/combinations/main.ts", ...args], {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  if (!output.includes("combinations as")) throw new Error(`a copy ended with ${code}: ${output}`);
  return output;
}
