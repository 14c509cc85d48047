import { describe, expect, it } from "vitest";
import { millis } from "../../core/base/brand.ts";
import { walConfig } from "../../core/ledger/log/limits.ts";
import { ANY_IDENTITY } from "../../core/ledger/log/segment.ts";
import { FRESH } from "../../core/ledger/log/testing/bench.ts";
import { WalWriter } from "../../core/ledger/log/writer.ts";
import { Intake } from "./intake.ts";
import { type PromiseWaiter, Waiters } from "./waiters.ts";

const entry = { type: 64, payload: new Uint8Array(1), wall: 1, logical: 0 };

function full(): { readonly writer: WalWriter; readonly intake: Intake } {
  const config = walConfig({ queueEntriesMax: 100, controlReserve: 0 });
  const writer = new WalWriter({ config, identity: ANY_IDENTITY, position: FRESH });
  const intake = new Intake(writer, new Waiters(() => {}));
  for (let i = 0; i < 100; i++) intake.enter(entry, null, 0);
  return { writer, intake };
}

function waiter(): { readonly waiter: PromiseWaiter; readonly answer: Promise<string> } {
  let made: PromiseWaiter | null = null;
  const answer = new Promise<string>((resolve) => {
    made = {
      mode: "NONE",
      wall: 1,
      logical: 0,
      lsn: null,
      resolve: () => resolve("taken"),
      reject: (error) => resolve(error.message),
    };
  });
  if (made === null) throw new Error("a promise runs its function at once");
  return { waiter: made, answer };
}

describe("a full queue", () => {
  it("refuses at once whoever does not wait", () => {
    expect(full().intake.enter(entry, null, 0)?.code).toBe("QUEUE_FULL");
  });

  it("refuses whoever has waited long enough, and never writes that entry (SW-7)", async () => {
    const { writer, intake } = full();
    const { waiter: impatient, answer } = waiter();
    expect(intake.enter(entry, impatient, 1)).toBe(null);
    expect(await answer).toContain("no room in the log's queue for 1 ms");
    writer.step({ kind: "tick" }, millis(0));
    writer.step({ kind: "created", segmentId: 1 }, millis(0));
    intake.admit();
    expect(writer.snapshot().lastTicket).toBe(100);
  });

  it("lets the patient in when there is room, in their order", async () => {
    const { writer, intake } = full();
    const { waiter: patient, answer } = waiter();
    intake.enter(entry, patient, Number.POSITIVE_INFINITY);
    intake.admit();
    expect(intake.waiting).toBe(1);
    writer.step({ kind: "tick" }, millis(0));
    writer.step({ kind: "created", segmentId: 1 }, millis(0));
    intake.admit();
    expect([await answer, intake.waiting, writer.snapshot().lastTicket]).toEqual(["taken", 0, 101]);
  });

  it("calls back when those in line have passed, though others came after them (SW-5)", () => {
    const { writer, intake } = full();
    for (let i = 0; i < 50; i++) intake.enter(entry, null, Number.POSITIVE_INFINITY);
    let passed = false;
    intake.whenAdmitted(() => {
      passed = true;
    });
    for (let i = 0; i < 5_000; i++) intake.enter(entry, null, Number.POSITIVE_INFINITY);
    writer.step({ kind: "tick" }, millis(0));
    writer.step({ kind: "created", segmentId: 1 }, millis(0));
    intake.admit();
    expect([passed, intake.waiting]).toEqual([true, 4_950]);
  });
});
