import { expect, it } from "vitest";
import { Random } from "../../base/random.ts";
import { SparseCells } from "./sparse-cells.ts";
import { WINDOW_MS, WindowStore } from "./window-store.ts";
import { STEP_RULES, type StepWindow, stepWindow } from "./windows.ts";

const PARTS = 50;
const WINDOWS = 90;

function partWindow(random: Random): StepWindow {
  const cells = [...new Set(Array.from({ length: 5 }, () => random.below(300)))].toSorted(
    (a, b) => a - b,
  );
  const counts = cells.map(() => 1 + random.below(4));
  const calls = counts.reduce((sum, count) => sum + count, 0);
  const latency = SparseCells.of(cells, counts);
  return stepWindow({ calls, requests: calls }, [random.below(2)], latency, SparseCells.EMPTY);
}

it("merges many parts of a window the same whether or not it is read in between", () => {
  const random = new Random("parts of windows");
  const [looked, unseen] = [new WindowStore(STEP_RULES), new WindowStore(STEP_RULES)];
  let calls = 0;
  for (let index = 0; index < WINDOWS; index++) {
    for (let part = 0; part < PARTS; part++) {
      const content = partWindow(random);
      calls += content.calls;
      // Some parts are behind by a few windows.
      const startMs = Math.max(0, index - random.below(4)) * WINDOW_MS;
      for (const store of [looked, unseen]) store.add({ startMs, widthMs: WINDOW_MS, content });
      if (random.chance(0.1)) looked.list(Math.max(0, startMs - 500));
    }
  }
  const seen = (store: WindowStore<StepWindow>) =>
    store.list().map(({ content, startMs }) => ({
      ...{ startMs, calls: content.calls, kinds: content.kinds },
      ...{ cells: [...content.latency.cells()], counts: [...content.latency.counts()] },
    }));
  const windows = seen(unseen);
  expect(windows).toEqual(seen(looked));
  expect(windows.reduce((sum, one) => sum + one.calls, 0)).toBe(calls);
  for (const { calls: expected, counts } of windows)
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(expected);
  const folded = (store: WindowStore<StepWindow>) =>
    store.folded().map(({ content }) => content.calls);
  expect(folded(unseen)).toEqual(folded(looked));
  expect(unseen.bytes).toBe(looked.bytes);
});
