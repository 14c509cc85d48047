import { expect, it } from "vitest";
import type { HeldStart } from "./held-start.ts";
import { decodeRunEntry, encodeRunEntry, type RunEntry } from "./run-entries.ts";
import { RunLog } from "./run-log.ts";
import { RunState } from "./run-state.ts";
import { RunTimeouts } from "./run-timeouts.ts";
import { encodeSubmission } from "./submission.ts";
import { contextOf } from "./testing/context.ts";
import { submission } from "./testing/world.ts";

const NOBODY = {
  onSettled: () => undefined,
  onEndedBefore: () => undefined,
  onProblem: () => undefined,
};
const STUCK_MS = 120_000;

it("does not declare a job stuck whose log turns out to be old at adoption", () => {
  const context = contextOf();
  const state = new RunState();
  const apply = (entry: RunEntry): unknown =>
    state.apply({ seq: 0, view: 2, eventId: "e", data: encodeRunEntry(entry) });
  const begun = { submission: encodeSubmission(submission()), grants: [], waitedMs: 0 };
  apply({ kind: "begin", createdAt: 0, ...begun });
  apply({ kind: "adopt", view: 1, at: 1_000 });
  let receivedBeganAt = 0;
  const log = new RunLog({ job: "job", view: 2 }, state, context, () => receivedBeganAt, NOBODY);
  const held = { isWaiting: false } as HeldStart;
  const led = { job: "job", view: 2, held, machine: null, isAdopting: true };
  const timeouts = new RunTimeouts(led, state, context, log);
  const timedOutBy = (ms: number): boolean => {
    context.setTime(ms, ms);
    timeouts.onTick();
    timeouts.onTick();
    return context.takeEffects().some((effect) => {
      if (effect.kind !== "propose" || effect.request.kind !== "propose") return false;
      const entry = decodeRunEntry(effect.request.data);
      return entry?.kind === "control" && entry.control.kind === "timeOut";
    });
  };
  // The job had no leader for five minutes, which only its last entries reveal.
  context.setTime(5_000, 5_000);
  receivedBeganAt = -300_000;
  log.adopted();
  led.isAdopting = false;
  expect(timedOutBy(5_001)).toBe(false);
  expect(timedOutBy(20_000)).toBe(false);
  // The full threshold has passed without progress.
  expect(timedOutBy(5_000 + STUCK_MS)).toBe(true);
});
