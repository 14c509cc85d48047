import { expect, it } from "vitest";
import { manifest } from "../job/testing/manifest.ts";
import { Agreement } from "./agreement.ts";
import type { PhasesEffect, PhasesInput, PhasesListener } from "./phase-types.ts";
import { Phases } from "./phases.ts";

const HOUR_MS = 3_600_000;

const ignore = (): void => undefined;
const listener: PhasesListener = {
  ...{ workflowBusy: ignore, workflowStarted: ignore, coreFinished: ignore, note: ignore },
  ...{ workflowSkipped: ignore, countedNote: ignore, fault: ignore },
  ...{ shareJoined: ignore, planMs: () => null, workflowFinished: ignore },
  ...{ frame: () => 0, figures: () => 0 },
};

/** A workflow on one core, up to its setup; later steps wait for agreement. */
function settingUp() {
  const manifests = [manifest("shop", {})];
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

it("declares a core stuck whose setup exceeds its limit", () => {
  expect(settingUp().phases.running.stuckCores(HOUR_MS)).toEqual([0]);
});

it("does not declare a core stuck whose setup is over and waits for a majority (T10)", () => {
  const { phases, setUp } = settingUp();
  setUp();
  expect(phases.running.stuckCores(HOUR_MS)).toEqual([]);
});

/** A workflow that generates load on two cores, driven only by agreed steps. */
function loading(): Phases {
  const phases = new Phases([manifest("shop", {})], { slots: [0, 1], pool: 2 }, listener);
  const log: readonly PhasesInput[] = [
    { kind: "start" },
    { kind: "agreed", step: { kind: "place", workflow: "shop", cores: [0, 1], execution: 1 } },
    { kind: "event", core: 0, event: { kind: "prepared", execution: 1 } },
    { kind: "event", core: 1, event: { kind: "prepared", execution: 1 } },
    { kind: "agreed", step: { kind: "setup", workflow: "shop", core: 0 } },
    { kind: "agreed", step: { kind: "setupDone", workflow: "shop", value: 7 } },
  ];
  for (const input of log) phases.step(input, 0);
  return phases;
}

const over = { execution: 1, provided: {}, notes: [], counts: [], faults: [] };
const finished = { kind: "finished", ...over } as const;

it("expects nothing from a finished core while its end waits for a majority (T10, 1000454)", () => {
  const phases = loading();
  expect(phases.running.loadingCores()).toEqual([0, 1]);
  phases.step({ kind: "event", core: 0, event: finished }, 500);
  expect([phases.running.loadingCores(), phases.running.stoppedCores()]).toEqual([[1], [1]]);
});

it("agrees once to the end of a core that reports it twice before the commit", () => {
  const phases = loading();
  const effects = [0, 1].flatMap(() => [
    ...phases.step({ kind: "event", core: 0, event: finished }, 500),
  ]);
  expect(effects.filter(({ kind }) => kind === "agree")).toHaveLength(1);
});

it("keeps a share whose next core is lost before the share was assigned to it", () => {
  const phases = loading();
  const workflow = "shop";
  const log: readonly PhasesInput[] = [
    { kind: "coreLost", core: 1, awaited: true },
    { kind: "coreJoined", core: 2, instead: 1 },
    { kind: "coreLost", core: 2, awaited: true },
    { kind: "agreed", step: { kind: "deal", workflow, core: 2, instead: 1, execution: 2 } },
  ];
  for (const input of log) phases.step(input, 500);
  expect(phases.running.loadingCores()).toEqual([0]);
  expect(phases.vacancies.isOfUse(2, 500)).toBe(true);
  phases.step({ kind: "coreJoined", core: 3, instead: 2 }, 600);
  const deal = { kind: "deal", workflow, core: 3, instead: 2, execution: 3 } as const;
  const effects = phases.step({ kind: "agreed", step: deal }, 600);
  const share = { index: 1, count: 2 };
  expect(effects).toMatchObject([{ core: 3, command: { kind: "prepare", share } }]);
});

it("tears down what the log tore down, though a share seems to be kept (900097)", () => {
  const phases = loading();
  const workflow = "shop";
  const log: readonly (readonly [number, PhasesInput])[] = [
    [500, { kind: "coreLost", core: 1, awaited: true }],
    // Decided before the plan was over, and committed after it: its leader assigned nothing to it.
    [999, { kind: "coreJoined", core: 2, instead: 1 }],
    [1_100, { kind: "agreed", step: { kind: "finished", workflow, core: 0, finished } }],
    [1_101, { kind: "agreed", step: { kind: "teardown", workflow, core: 0 } }],
  ];
  const effects = log.flatMap(([at, input]) => [...phases.step(input, at)]);
  const sent = effects.flatMap((one) =>
    one.kind === "send" ? [[one.core, one.command.kind]] : [],
  );
  expect(sent).toContainEqual([0, "teardown"]);
});

it("keeps a share that the log assigned, though the plan seems to be over by then (1003427)", () => {
  const phases = loading();
  const workflow = "shop";
  const log: readonly (readonly [number, PhasesInput])[] = [
    [500, { kind: "coreLost", core: 1, awaited: true }],
    // A pause that was longer than the log shows is behind it.
    [5_000, { kind: "coreJoined", core: 2, instead: 1, dealt: [workflow] }],
    [
      5_001,
      { kind: "agreed", step: { kind: "deal", workflow, core: 2, instead: 1, execution: 2 } },
    ],
  ];
  const effects = log.flatMap(([at, input]) => [...phases.step(input, at)]);
  expect(effects).toContainEqual(expect.objectContaining({ kind: "send", core: 2 }));
  expect(phases.running.loadingCores()).toEqual([0, 2]);
});

it("shows a mistake reported by several cores once, and every line of user code", () => {
  const phases = loading();
  const linesOf = (isComplaint: boolean): number =>
    [0, 1].flatMap((core) => {
      const event = { kind: "log", line: "the body threw: no", isComplaint } as const;
      return phases.step({ kind: "event", core, event }, 0);
    }).length;
  expect([linesOf(true), linesOf(false)]).toEqual([1, 2]);
});
