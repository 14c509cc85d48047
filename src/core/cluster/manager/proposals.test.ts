import { expect, it } from "vitest";
import type { GroupId } from "../../ledger/group/messages.ts";
import { Proposals, type Proposed } from "./proposals.ts";
import type { ManagerEffect } from "./types.ts";

const GROUP = "run/a" as GroupId;

class Bench {
  now = 0;
  readonly effects: ManagerEffect[] = [];
  readonly told: string[] = [];
  readonly proposals: Proposals;

  constructor() {
    this.proposals = new Proposals(this, 500);
  }

  emit(effect: ManagerEffect): void {
    this.effects.push(effect);
  }

  propose(by: "leader" | "client", bytes = 1): void {
    const done = ({ kind }: Proposed): unknown => this.told.push(`${by} ${kind}`);
    const data = new Uint8Array(bytes);
    const eventId = `e${this.effects.length}`;
    this.proposals.propose({ group: GROUP, eventId, data, members: [], by, done });
  }
}

it("reserves capacity for leaders, however much clients propose", () => {
  const bench = new Bench();
  for (let at = 0; at < 1_001; at++) bench.propose("client");
  bench.propose("leader");
  expect(bench.effects).toHaveLength(1_001);
  bench.proposals.runCallbacks();
  expect(bench.told).toEqual(["client notNow"]);
});

it("caps the bytes of client proposals", () => {
  const bench = new Bench();
  for (let at = 0; at < 17; at++) bench.propose("client", 1_048_576);
  bench.proposals.runCallbacks();
  expect([bench.effects.length, bench.told]).toEqual([16, ["client notNow"]]);
});

it("defers callbacks while proposing, so that a retry proposes once", () => {
  const bench = new Bench();
  for (let at = 0; at < 1_000; at++) bench.propose("client");
  let asked = 0;
  const again = (): void => {
    asked++;
    const done = ({ kind }: Proposed): void => {
      if (kind === "notNow" && asked < 3) again();
    };
    const entry = { group: GROUP, eventId: "x", data: new Uint8Array(1), members: [] };
    bench.proposals.propose({ ...entry, by: "client", done });
  };
  again();
  expect(asked).toBe(1);
  bench.proposals.runCallbacks();
  expect(asked).toBe(3);
});

it("abandons old client proposals and retries those of leaders", () => {
  const bench = new Bench();
  bench.propose("client");
  bench.propose("leader");
  bench.now = bench.proposals.nextDeadline() ?? 0;
  bench.proposals.onAnswer(2, { kind: "retry", why: "no quorum" });
  bench.proposals.onTick();
  bench.proposals.runCallbacks();
  expect([bench.now, bench.told]).toEqual([30_000, ["client notNow"]]);
  bench.now = bench.proposals.nextDeadline() ?? 0;
  bench.proposals.onTick();
  expect(bench.effects).toHaveLength(3);
});
