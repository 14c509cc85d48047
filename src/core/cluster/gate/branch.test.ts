import { expect, it } from "vitest";
import { nodeId } from "../../base/ids.ts";
import type { Observed } from "../gate-messages.ts";
import { submission } from "../manager/testing/world.ts";
import { Branch, UNWANTED, type Wanted } from "./branch.ts";
import { GateContext } from "./context.ts";
import { GATE_DEFAULTS, type ManagerAnswer, type ManagerMessage } from "./types.ts";

const WANTED: Wanted = {
  ...{
    startAtMs: 0,
    paused: false,
    factor: 1,
    cancel: null,
    timeOut: null,
    live: "none",
    joint: [],
  },
};

/** A branch in a datacenter with one manager, whose answers the test sets. */
class Followed {
  now = 0;
  readonly asked: string[] = [];
  readonly context = new GateContext(
    {
      ...{ self: nodeId("g1"), gates: [nodeId("g1")], boot: "b", version: "1.0.0" },
      ...{ errorKinds: [], addresses: {}, config: GATE_DEFAULTS },
      datacenters: [{ name: "dc1", managers: ["m1"] }],
    },
    { job: () => null, jobs: () => [], openJobs: () => [], knows: () => false },
  );
  readonly branch: Branch;
  readonly #answer: (kind: string) => ManagerAnswer;

  constructor(answer: (kind: string) => ManagerAnswer) {
    this.#answer = answer;
    this.context.calls.onLink("dc1", "m1", true);
    const place = { datacenter: "dc1", key: "job/dc1/1" };
    const ports = {
      ...{ held: () => null, onReport: () => undefined, onNews: () => undefined },
      ...{ isLed: () => true, onLine: () => undefined },
    };
    this.branch = new Branch(this.context, place, submission(), WANTED, ports);
  }

  run(ms: number): void {
    for (const end = this.now + ms; this.now < end; this.now += 50) {
      this.context.setTime(this.now, this.now);
      this.branch.step();
      for (const effect of this.context.takeEffects()) {
        if (effect.kind === "readPart") this.context.onPartRead(effect.id, null, 0);
        if (effect.kind !== "ask") continue;
        const kind = kindOf(effect.message);
        this.asked.push(kind);
        this.context.calls.onAnswered(effect.id, this.#answer(kind));
      }
      for (const answer of this.context.calls.takeAnswers()) answer();
    }
  }
}

function kindOf(message: ManagerMessage): string {
  return message.kind === "client" || message.kind === "gate" ? message.request.kind : message.kind;
}

function observed(status: Observed["status"]): Observed {
  return {
    ...{ kind: "observed", status, reason: null, prepared: false, factor: 1, workers: 1 },
    ...{ cores: 1, lines: [], nextLine: 0, live: null, result: null, requests: 0, failed: 0 },
    ...{ told: null, view: 1 },
  };
}

it("polls a job that finished just before it was asked to stop", () => {
  let status: Observed["status"] = "RUNNING";
  const followed = new Followed((kind) => {
    if (kind === "submit") return { kind: "accepted", job: "j1", duplicate: false };
    if (kind !== "control") return observed(status);
    status = "CANCELLED";
    return { kind: "refused", reason: "invalid", message: "j1 has ended: CANCELLED" };
  });
  followed.run(500);
  followed.branch.want({ ...WANTED, cancel: "enough" });
  followed.run(2_000);
  expect(followed.asked.filter((kind) => kind === "control")).toHaveLength(1);
  expect([followed.branch.status, followed.branch.isOver]).toEqual(["CANCELLED", true]);
});

it("reports a lasting hindrance, but not during an election and not after the end", () => {
  const retry = { kind: "refused", reason: "retry", message: "nobody leads the job" } as const;
  let leads = false;
  const followed = new Followed((kind) => {
    if (!leads) return retry;
    return kind === "submit"
      ? { kind: "accepted", job: "j1", duplicate: false }
      : observed("RUNNING");
  });
  followed.run(2_000);
  expect(followed.branch.hindrance).toBeNull();
  followed.run(2_000);
  expect(followed.branch.hindrance).toBe("nobody leads the job");
  leads = true;
  followed.run(1_000);
  expect(followed.branch.hindrance).toBeNull();
});

it("polls a long-queued job rarely, and still stops it at once", () => {
  const followed = new Followed((kind) => {
    if (kind === "submit") return { kind: "accepted", job: "j1", duplicate: false };
    return kind === "control" ? { kind: "controlled" } : observed("QUEUED");
  });
  const observes = (): number => followed.asked.filter((kind) => kind === "observe").length;
  followed.run(2_000);
  expect(observes()).toBeGreaterThan(6);
  followed.run(58_000);
  const before = observes();
  followed.run(60_000);
  expect(observes() - before).toBe(120);
  followed.branch.want({ ...WANTED, cancel: "enough" });
  followed.run(50);
  expect(followed.asked.at(-1)).toBe("control");
});

it("comes back when asked to", () => {
  const full = { kind: "refused", reason: "retry", message: "the queue is full" } as const;
  const followed = new Followed(() => ({ ...full, retryAfterMs: 2_000 }));
  followed.run(10_000);
  expect(followed.asked).toHaveLength(5);
});

it("ends when its files are missing everywhere and the job runs elsewhere", () => {
  const followed = new Followed(() => ({ kind: "missing", hashes: ["ab".repeat(32)] }));
  followed.run(2_000);
  expect(followed.asked.length).toBeGreaterThan(2);
  expect(followed.branch.isOver).toBe(false);
  followed.branch.want({ ...UNWANTED, cancel: "it runs elsewhere" });
  followed.run(1_000);
  expect(followed.branch.isOver).toBe(true);
  const { length } = followed.asked;
  followed.run(2_000);
  expect(followed.asked).toHaveLength(length);
});

it("counts no silence before its first request, however long its turn takes", () => {
  const followed = new Followed(() => ({ kind: "refused", reason: "retry", message: "not now" }));
  const { branch } = followed;
  const moments = (): readonly number[] => [
    branch.silentMs(followed.now),
    branch.unansweredMs(followed.now),
  ];
  followed.now = 60_000;
  expect([branch.wasAsked, ...moments()]).toEqual([false, 60_000, 0]);
  followed.run(1_000);
  expect([branch.wasAsked, ...moments()]).toEqual([true, 61_000, 1_000]);
});
