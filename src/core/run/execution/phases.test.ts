import { expect, it } from "vitest";
import { manifest } from "../job/testing/manifest.ts";
import { Agreement } from "./agreement.ts";
import type { PhasesEffect, PhasesInput, PhasesListener } from "./phase-types.ts";
import { Phases } from "./phases.ts";

const HOUR_MS = 3_600_000;

/** A workflow on one core, up to its set-up; what it then wants to be agreed waits. */
function settingUp() {
  const manifests = [manifest("shop", {})];
  const ignore = (): void => undefined;
  const listener: PhasesListener = {
    ...{ workflowBusy: ignore, workflowStarted: ignore, coreFinished: ignore, note: ignore },
    ...{
      workflowSkipped: ignore,
      countedNote: ignore,
      fault: ignore,
      frame: () => 0,
      figures: () => 0,
    },
    ...{ shareJoined: ignore, planMs: () => null, workflowFinished: ignore },
  };
  const agreement = new Agreement(manifests);
  const phases = new Phases(manifests, { slots: [0], pool: 1 }, listener);
  let execution = 0;
  const perform = (effect: PhasesEffect): void => {
    if (effect.kind === "agree" && effect.step.kind !== "setupDone") {
      const step = agreement.agree(effect.step);
      if (step !== null) take({ kind: "agreed", step: step as never });
    }
    if (effect.kind === "send" && effect.command.kind === "prepare") {
      execution = effect.command.execution;
      take({ kind: "event", core: 0, event: { kind: "prepared", execution } });
    }
  };
  const take = (input: PhasesInput): void => phases.step(input, 0).forEach(perform);
  take({ kind: "start" });
  const over = { kind: "setupDone", execution, value: 7 } as const;
  return { phases, setUp: () => take({ kind: "event", core: 0, event: over }) };
}

it("takes a core for stuck whose set-up does not end at its limit", () => {
  expect(settingUp().phases.running.stuckCores(HOUR_MS)).toEqual([0]);
});

it("takes none for stuck whose set-up is over and waits for a majority (T10)", () => {
  const { phases, setUp } = settingUp();
  setUp();
  expect(phases.running.stuckCores(HOUR_MS)).toEqual([]);
});
