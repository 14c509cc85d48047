import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { SparseCells } from "./sparse-cells.ts";
import { readStepWindow, type StepWindow, stepWindow, writeStepWindow } from "./windows.ts";
import { WINDOW_BYTES_MAX, WorkflowStats } from "./workflow-stats.ts";

/** After 124 s there are as many folded and recent windows as there ever are. */
const LONGEST_MS = 124_000;

/** Buffers are freed asynchronously, a while after they were found to be garbage. */
const COLLECTIONS = 3;

async function retainedBytes(): Promise<number> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let at = 0; at < COLLECTIONS; at++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { arrayBuffers, heapUsed } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** As it arrives: read from bytes. */
function arrived(calls: number, firstCell: number): StepWindow {
  const cells = Array.from({ length: calls }, (_, at) => firstCell + at * 3);
  const writer = new ByteWriter();
  writeStepWindow(
    writer,
    stepWindow(
      { calls, requests: calls, answers: calls, answeredUs: calls * 2 ** 31 },
      [],
      SparseCells.of(
        cells,
        cells.map(() => 1),
      ),
      SparseCells.EMPTY,
    ),
  );
  const window = readStepWindow(new ByteReader(writer.take()));
  if (window === undefined) throw new Error("what was written is a window");
  return window;
}

it.each([
  // As in a fast run, and as with hundreds of rarely called pages.
  { steps: 50, calls: 20 },
  { steps: 200, calls: 1 },
])(
  "windows of $steps steps with $calls calls each stay within their bound, in real memory",
  async ({ calls, steps }) => {
    const before = await retainedBytes();
    const stats = new WorkflowStats({ errorKinds: 5, corrected: false });
    for (let startMs = 0; startMs < LONGEST_MS; startMs += 100)
      for (let step = 0; step < steps; step++)
        stats.addWindow(step, { startMs, widthMs: 100, content: arrived(calls, step) });
    expect((await retainedBytes()) - before).toBeLessThan(1.25 * WINDOW_BYTES_MAX);
    const listed = stats.windowsOf(0).folded();
    expect(listed.reduce((sum, { content }) => sum + content.calls, 0)).toBe(
      (calls * LONGEST_MS) / 100,
    );
  },
);
