import { describe, expect, it } from "vitest";
import type { CoreEvent } from "../job/core-messages.ts";
import type { WorkflowManifest } from "../job/manifest.ts";
import { manifest } from "../job/testing/manifest.ts";
import { Agreement } from "./agreement.ts";
import type { JointWord, PhasesEffect, PhasesInput, PhasesListener } from "./phase-types.ts";
import { Phases } from "./phases.ts";

/** A datacenter with one core that obeys every command at once. */
class Datacenter {
  readonly commands: string[] = [];
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

  /** Finishes the load of the core. */
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
    this.commands.push(command.kind + value);
    if (command.kind === "prepare") {
      this.#execution = command.execution;
      this.event({ kind: "prepared" });
    } else if (command.kind === "setup") this.event({ kind: "setupDone", value: { token: 7 } });
    else if (command.kind === "teardown") this.event({ kind: "tornDown", faults: [] });
  }
}

const BEGIN: JointWord = { kind: "begin", workflow: "shop", value: { token: 7 }, inMs: 250 };
const OVER: JointWord = { kind: "over", workflow: "shop", error: null };

describe("a workflow over several datacenters", () => {
  it("is set up in the first, and begins at the given instant", () => {
    const first = new Datacenter("first");
    expect([first.commands, first.waits]).toEqual([["prepare", "setup"], "begin"]);
    first.word(BEGIN);
    expect([first.commands.length, first.waits, first.deadline]).toEqual([2, "", 250]);
    first.now = 250;
    first.step({ kind: "tick" });
    expect(first.commands.at(-1)).toBe('start {"token":7}');
  });

  it("receives the setup value in the others, which neither set up nor tear down", () => {
    const other = new Datacenter("other");
    expect([other.commands, other.waits]).toEqual([["prepare"], "begin"]);
    other.word(BEGIN);
    other.now = 250;
    other.step({ kind: "tick" });
    other.finish();
    expect(other.commands).toEqual(["prepare", 'start {"token":7}']);
    expect(other.finished).toEqual(["completed null"]);
  });

  it("is torn down in the first when it is over everywhere", () => {
    const first = new Datacenter("first");
    first.word(BEGIN);
    first.now = 300;
    first.step({ kind: "tick" });
    first.finish();
    expect([first.waits, first.commands.includes("teardown")]).toEqual(["over", false]);
    first.word(OVER);
    expect([first.commands.at(-1), first.finished]).toEqual(["teardown", ["completed null"]]);
  });

  it("is torn down when its load is over, if it was over elsewhere while it ran here", () => {
    const first = new Datacenter("first");
    first.word({ ...BEGIN, inMs: 0 });
    first.word(OVER);
    expect(first.commands.includes("teardown")).toBe(false);
    first.finish();
    expect(first.commands.at(-1)).toBe("teardown");
  });

  it("fails here when it fails elsewhere before it begins, and is torn down where it was set up", () => {
    const error = "dc2: no such file";
    const [first, other] = [new Datacenter("first"), new Datacenter("other")];
    for (const one of [first, other]) one.word({ ...OVER, error });
    expect([first.commands.at(-1), first.finished]).toEqual(["teardown", [`failed ${error}`]]);
    expect([other.commands, other.finished]).toEqual([["prepare"], [`failed ${error}`]]);
  });

  it("does not begin while paused, and begins late after the resume", () => {
    const other = new Datacenter("other");
    other.step({ kind: "pause" });
    other.word(BEGIN);
    other.now = 1_000;
    other.step({ kind: "tick" });
    expect(other.commands).toEqual(["prepare"]);
    other.step({ kind: "resume" });
    expect(other.commands).toContain('start {"token":7}');
  });

  it("is torn down only where it was set up when it is stopped while it waits", () => {
    const [first, other] = [new Datacenter("first"), new Datacenter("other")];
    for (const one of [first, other]) one.step({ kind: "stop" });
    expect([first.commands.at(-1), other.commands.at(-1)]).toEqual(["teardown", "prepare"]);
  });
});
