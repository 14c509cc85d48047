import { expect, it } from "vitest";
import type { Proposed } from "./proposals.ts";
import { encodeRunEntry, type RunEntry } from "./run-entries.ts";
import { RunLog } from "./run-log.ts";
import { RunState } from "./run-state.ts";
import { encodeSubmission } from "./submission.ts";
import { contextOf } from "./testing/context.ts";
import { submission } from "./testing/world.ts";

const NOBODY = {
  onSettled: () => undefined,
  onEndedBefore: () => undefined,
  onProblem: () => undefined,
};

function applied(state: RunState, entry: RunEntry, view: number): void {
  const data = encodeRunEntry(entry);
  expect(state.apply({ seq: 0, view, eventId: "e", data }).outcome).not.toBe("rejected");
}

it("is not behind decisions of earlier leaders that arrive late", () => {
  const context = contextOf();
  const state = new RunState();
  const begun = { submission: encodeSubmission(submission()), grants: [], waitedMs: 0 };
  applied(state, { kind: "begin", createdAt: 0, ...begun }, 1);
  applied(state, { kind: "adopt", view: 1, at: 9_000 }, 1);
  context.setTime(70_000, 70_000);
  const log = new RunLog({ job: "job", view: 2 }, state, context, () => 61_000, NOBODY);
  expect(log.at).toBe(9_000);
  // A decision that only the previous leader had is committed together with this leader's first entry.
  applied(state, { kind: "start", view: 1, at: 44_000 }, 1);
  applied(state, { kind: "adopt", view: 2, at: 9_000 }, 2);
  log.adopted();
  context.setTime(71_000, 71_000);
  expect([log.at, context.now - log.beganAt]).toEqual([45_000, 45_000]);
});

it.each([
  ["is taken back", false, null],
  ["stays where it has stopped load", true, "enough"],
])("a cancel that its log rejects %s", (_, hasStopped, cancelling) => {
  const context = contextOf();
  const state = new RunState();
  const log = new RunLog({ job: "job", view: 1 }, state, context, () => null, NOBODY);
  const answers: Proposed[] = [];
  const cancel = { kind: "cancel", reason: "enough" } as const;
  const answer = (proposed: Proposed): unknown => answers.push(proposed);
  log.proposeControl(cancel, { by: "gate" }, answer, () => hasStopped);
  expect(log.cancelling).toBe("enough");
  const [effect] = context.takeEffects();
  if (effect?.kind !== "propose" || effect.request.kind !== "propose") throw new Error("no entry");
  const { data, eventId } = effect.request;
  // The group of the job exists, and its first entry does not.
  const { outcome, reason } = state.apply({ seq: 0, view: 1, eventId, data });
  const committed = { kind: "committed", jobId: "", eventId, seq: 0, duplicate: false } as const;
  const durable = { level: "LOCAL", required: "LOCAL", view: 1 } as const;
  context.proposals.onAnswer(effect.token, { ...committed, outcome, reason, ...durable });
  context.proposals.runCallbacks();
  expect(answers).toEqual([{ kind: "committed", outcome: "rejected", reason: "NOT_BEGUN" }]);
  expect(log.cancelling).toBe(cancelling);
});
