import { describe, expect, it } from "vitest";
import { type ErrorCode, QueueError } from "../../core/queue/errors.ts";
import { Background } from "../../host/background.ts";
import { silentLog } from "../../host/ports/log.ts";
import type { Report } from "../api/types.ts";
import { ReportSender } from "./report-sender.ts";

const report = (id: number, result = "1"): Report => ({
  task_id: String(id),
  lease_token: `token-${id}`,
  attempt_id: 1,
  status: "completed",
  result,
  error: null,
  elapsed_ms: 1,
  start_noted: true,
});

/** Sends reports to a leader that rejects those `refuse` names; resolves with the accepted ones. */
async function sendAll(
  reports: readonly Report[],
  refuse: (report: Report) => ErrorCode | undefined,
): Promise<{ readonly taken: readonly Report[]; readonly calls: number }> {
  const background = new Background((_, error) => {
    throw error;
  });
  const taken: Report[] = [];
  let calls = 0;
  let left = reports.length;
  await new Promise<void>((resolve) => {
    const sender = new ReportSender({
      send: async (batch) => {
        calls++;
        for (const one of batch) {
          const code = refuse(one);
          if (code !== undefined) throw new QueueError(code, `no ${one.task_id}`);
        }
        taken.push(...batch);
        return [];
      },
      onSent: (sent) => {
        left -= sent.length;
        if (left === 0) resolve();
      },
      onUnanswered: () => undefined,
      stopped: () => false,
      log: silentLog,
      background,
    });
    for (const one of reports) sender.add(one);
  });
  await background.stop(0);
  return { taken, calls };
}

describe("ReportSender", () => {
  it("fails the one task whose result is rejected, with the reason, and sends all others", async () => {
    const bad = "7";
    const { taken } = await sendAll(
      Array.from({ length: 20 }, (_, i) => report(i)),
      (one) => (one.task_id === bad && one.status === "completed" ? "TOO_LARGE" : undefined),
    );
    expect(taken).toHaveLength(20);
    expect(taken.filter((one) => one.status === "failed")).toMatchObject([
      {
        task_id: bad,
        result: null,
        error: { message: "the leader cannot take the result: no 7", retryable: false },
      },
    ]);
  });

  it("abandons a report that is rejected in every form, so that nothing is blocked behind it", async () => {
    const { taken } = await sendAll([report(1), report(2), report(3)], ({ task_id: id }) =>
      id === "2" ? "INVALID_PARAMS" : undefined,
    );
    expect(taken.map(({ task_id }) => task_id)).toEqual(["1", "3"]);
  });

  it("retries while the leader is unavailable, and a bounded number of times where it fails", async () => {
    let away = 3;
    const again = await sendAll([report(1)], () => (away-- > 0 ? "NOT_LEADER" : undefined));
    expect(again).toMatchObject({ calls: 4, taken: [{ status: "completed" }] });
    const fails = await sendAll([report(1)], (one) =>
      one.status === "completed" ? "INTERNAL" : undefined,
    );
    expect(fails).toMatchObject({ calls: 6, taken: [{ status: "failed" }] });
  });

  it("splits by bytes, so that a message stays below the leader's limit", async () => {
    const large = Array.from({ length: 16 }, (_, i) => report(i, "x".repeat(1_000_000)));
    const { taken, calls } = await sendAll(large, () => undefined);
    expect(taken).toHaveLength(16);
    expect(calls).toBe(8);
  });
});
