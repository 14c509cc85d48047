import { expect, it, vi } from "vitest";
import { Delivery } from "./delivery.ts";

it("bounds the cost of a back-end that is dead for a whole run to its queue", async () => {
  const said: string[] = [];
  const delivery = new Delivery({
    transport: {
      send: () => Promise.reject(new Error("nobody is there")),
      close: async () => {},
    },
    joins: true,
    scrub: (text) => text,
    onProblem: (problem) => said.push(problem),
    closeMs: 1,
    queue: { entriesMax: 50, bytesMax: 5_000 },
  });
  for (let frame = 0; frame < 1_000; frame++) {
    delivery.offer({ body: new Uint8Array(200), points: 3 });
    expect(delivery.waitingBytes).toBeLessThanOrEqual(5_000);
    await Promise.resolve();
  }
  await Promise.all([delivery.close(), delivery.close()]);
  delivery.offer({ body: new Uint8Array(200), points: 3 });
  expect(delivery.counts()).toMatchObject({ sent: 0, dropped: 3_003 });
  expect(said).toHaveLength(1);
});

it("gives an unresponsive back-end only a short grace period when hurried", async () => {
  vi.useFakeTimers();
  try {
    const delivery = new Delivery({
      transport: {
        send: (_, signal) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason), { once: true });
          }),
        close: async () => {},
      },
      ...{ joins: false, scrub: (text: string) => text, onProblem: () => {}, closeMs: 10_000 },
    });
    delivery.offer({ body: new Uint8Array(1), points: 3 });
    const closed = vi.fn();
    void delivery.close().then(closed);
    await vi.advanceTimersByTimeAsync(1_000);
    delivery.hurry();
    await vi.advanceTimersByTimeAsync(500);
    expect(closed).toHaveBeenCalledOnce();
    const problem = "it did not take everything within 0.5 s";
    expect(delivery.counts()).toEqual({ sent: 0, dropped: 3, problem });
  } finally {
    vi.useRealTimers();
  }
});
