import { describe, expect, it } from "vitest";
import { event, JOB } from "../core/ledger/job/testing/events.ts";
import type { LedgerAnswer, LedgerRequest } from "../core/ledger/node/messages.ts";
import { streamEntry, writeEntry } from "./audit-entries.ts";

const requester = { kind: "operator", name: "", credential: "token:1", address: "" } as const;
const retry = { kind: "retry", why: "nobody leads" } as LedgerAnswer;
const append = (kind: "JobCompleted" | "JobAborted"): LedgerRequest => ({
  ...{ kind: "append", event: event(kind), durability: "LOCAL" },
});

describe("the audit entries of a ledger node", () => {
  it("record who submits a job, by its id or, without one, by its key", () => {
    const submit = { kind: "submit", key: "k1", spec: new Uint8Array(3), assignedDcs: [] } as const;
    const answer = {
      kind: "accepted",
      jobId: JOB,
      ack: new Uint8Array(),
      duplicate: false,
    } as const;
    const accepted = { kind: "submitted", answer } as const;
    expect(writeEntry(submit, accepted, requester)).toEqual({
      ...{ kind: "job.submitted", subject: JOB, requester },
      detail: { bytes: 3, outcome: "submitted" },
    });
    expect(writeEntry(submit, retry, requester)).toMatchObject({ subject: "k1" });
  });

  it("record who writes the end of a job, and leave cancels to their own entry", () => {
    expect(writeEntry(append("JobCompleted"), retry, requester)).toMatchObject({
      ...{ kind: "job.event", subject: JOB, requester },
      detail: { event: "JobCompleted", outcome: "retry" },
    });
    expect(writeEntry(append("JobAborted"), retry, requester)).toBeNull();
  });

  it("count what a stream wrote, and leave out streams that only read", () => {
    const written = { submits: 2, events: 7 };
    expect(streamEntry("n1", written, requester)).toEqual({
      ...{ kind: "ledger.written", subject: "n1", requester, detail: written },
    });
    expect(streamEntry("n1", { submits: 0, events: 0 }, requester)).toBeNull();
  });
});
