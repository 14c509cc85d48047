import { describe, expect, it } from "vitest";
import type { CoreEvent } from "../job/core-messages.ts";
import type { WorkflowManifest } from "../job/manifest.ts";
import { manifest } from "../job/testing/manifest.ts";
import { Agreement } from "./agreement.ts";
import type { JointWord, PhasesEffect, PhasesInput, PhasesListener } from "./phase-types.ts";
import { Phases } from "./phases.ts";

/** A datacenter with one core that does what it is told at once. */
class Datacenter {
  readonly told: string[] = [];
  readonly finished: string[] = [];
  now = 0;
  readonly #phases: Phases;
  readonly #agreement: Agreement;
  #execution = 0;

  constructor(joint: WorkflowManifest["joint"]) {
    const manifests = [manifest("shop", { joint })];
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
      ...{ shareJoined: ignore, planMs: () => null },
      workflowFinished: (_, status, error) => this.finished.push(`${status} ${error}`),
    };
    this.#agreement = new Agreement(manifests);
    this.#phases = new Phases(manifests, { slots: [0], pool: 1 }, listener);
    this.step({ kind: "start" });
  }

  get waits(): string {
    return this.#phases.joint.waits.map((one) => one.for).join();
  }

  get deadline(): number | null {
    return this.#phases.nextDeadline();
  }

  step(input: PhasesInput): void {
    for (const effect of this.#phases.step(input, this.now)) this.#perform(effect);
  }

  word(word: JointWord): void {
    this.step({ kind: "joint", word });
  }

  event(event: Partial<CoreEvent> & { readonly kind: CoreEvent["kind"] }): void {
    const whole = { execution: this.#execution, ...event } as CoreEvent;
    this.step({ kind: "event", core: 0, event: whole });
  }

  /** The core has made its load. */
  finish(): void {
    this.event({ kind: "finished", provided: {}, notes: [], counts: [], faults: [] });
  }

  #perform(effect: PhasesEffect): void {
    if (effect.kind === "agree") {
      const step = this.#agreement.agree(effect.step);
      if (step !== null) this.step({ kind: "agreed", step: step as never });
    }
    if (effect.kind !== "send") return;
    const { command } = effect;
    const value = command.kind === "start" ? ` ${JSON.stringify(command.setup)}` : "";
    this.told.push(command.kind + value);
    if (command.kind === "prepare") {
      this.#execution = command.execution;
      this.event({ kind: "prepared" });
    } else if (command.kind === "setup") this.event({ kind: "setupDone", value: { token: 7 } });
    else if (command.kind === "teardown") this.event({ kind: "tornDown", faults: [] });
  }
}

const BEGIN: JointWord = { kind: "begin", workflow: "shop", value: { token: 7 }, inMs: 250 };
const OVER: JointWord = { kind: "over", workflow: "shop", error: null };

describe("a workflow of several datacenters", () => {
  it("is set up in the first, and begins at the instant it is told", () => {
    const first = new Datacenter("first");
    expect([first.told, first.waits]).toEqual([["prepare", "setup"], "begin"]);
    first.word(BEGIN);
    expect([first.told.length, first.waits, first.deadline]).toEqual([2, "", 250]);
    first.now = 250;
    first.step({ kind: "tick" });
    expect(first.told.at(-1)).toBe('start {"token":7}');
  });

  it("has the value of the set-up in the others, which neither set up nor tear down", () => {
    const other = new Datacenter("other");
    expect([other.told, other.waits]).toEqual([["prepare"], "begin"]);
    other.word(BEGIN);
    other.now = 250;
    other.step({ kind: "tick" });
    other.finish();
    expect(other.told).toEqual(["prepare", 'start {"token":7}']);
    expect(other.finished).toEqual(["completed null"]);
  });

  it("is torn down in the first when it is over everywhere", () => {
    const first = new Datacenter("first");
    first.word(BEGIN);
    first.now = 300;
    first.step({ kind: "tick" });
    first.finish();
    expect([first.waits, first.told.includes("teardown")]).toEqual(["over", false]);
    first.word(OVER);
    expect([first.told.at(-1), first.finished]).toEqual(["teardown", ["completed null"]]);
  });

  it("that was over elsewhere while it ran here is torn down when its load is over", () => {
    const first = new Datacenter("first");
    first.word({ ...BEGIN, inMs: 0 });
    first.word(OVER);
    expect(first.told.includes("teardown")).toBe(false);
    first.finish();
    expect(first.told.at(-1)).toBe("teardown");
  });

  it("that fails elsewhere before it begins fails here, and is torn down where it was set up", () => {
    const error = "dc2: no such file";
    const [first, other] = [new Datacenter("first"), new Datacenter("other")];
    for (const one of [first, other]) one.word({ ...OVER, error });
    expect([first.told.at(-1), first.finished]).toEqual(["teardown", [`failed ${error}`]]);
    expect([other.told, other.finished]).toEqual([["prepare"], [`failed ${error}`]]);
  });

  it("does not begin while it is paused, and begins late when it goes on", () => {
    const other = new Datacenter("other");
    other.step({ kind: "pause" });
    other.word(BEGIN);
    other.now = 1_000;
    other.step({ kind: "tick" });
    expect(other.told).toEqual(["prepare"]);
    other.step({ kind: "resume" });
    expect(other.told).toContain('start {"token":7}');
  });

  it("that is stopped while it waits is torn down only where it was set up", () => {
    const [first, other] = [new Datacenter("first"), new Datacenter("other")];
    for (const one of [first, other]) one.step({ kind: "stop" });
    expect([first.told.at(-1), other.told.at(-1)]).toEqual(["teardown", "prepare"]);
  });
});
