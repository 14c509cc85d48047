import { describe, expect, it } from "vitest";
import { millis } from "../../core/base/brand.ts";
import { walConfig } from "../../core/ledger/log/limits.ts";
import { ANY_IDENTITY } from "../../core/ledger/log/segment.ts";
import { FRESH } from "../../core/ledger/log/testing/bench.ts";
import { WalWriter } from "../../core/ledger/log/writer.ts";
import { Intake } from "./intake.ts";
import { Waiters } from "./waiters.ts";

const entry = { type: 64, payload: new Uint8Array(1), wall: 1, logical: 0 };

function full(): { readonly writer: WalWriter; readonly intake: Intake } {
  const config = walConfig({ queueEntriesMax: 100 });
  const writer = new WalWriter({ config, identity: ANY_IDENTITY, position: FRESH });
  const intake = new Intake(writer, new Waiters(() => {}));
  for (let i = 0; i < 100; i++) intake.enter(entry, 1);
  return { writer, intake };
}

describe("a full queue", () => {
  it("makes entries stand in line until there is room, and refuses what the line cannot hold", () => {
    const { writer, intake } = full();
    for (let i = 0; i < 100_000; i++) expect(intake.enter(entry, 1)).toBe(null);
    expect(intake.enter(entry, 1)?.code).toBe("QUEUE_FULL");
    intake.admit();
    expect([intake.waiting, writer.snapshot().lastTicket]).toEqual([100_000, 100]);
    writer.step({ kind: "tick" }, millis(0));
    writer.step({ kind: "created", segmentId: 1 }, millis(0));
    intake.admit();
    expect([intake.waiting, writer.snapshot().lastTicket]).toEqual([99_900, 200]);
  });

  it("calls back when those in line have passed, though others came after them (SW-5)", () => {
    const { writer, intake } = full();
    for (let i = 0; i < 50; i++) intake.enter(entry, 1);
    let passed = false;
    intake.whenAdmitted(() => {
      passed = true;
    });
    for (let i = 0; i < 5_000; i++) intake.enter(entry, 1);
    writer.step({ kind: "tick" }, millis(0));
    writer.step({ kind: "created", segmentId: 1 }, millis(0));
    intake.admit();
    expect([passed, intake.waiting]).toEqual([true, 4_950]);
  });
});
