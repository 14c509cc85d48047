/** Users that hang before they are measured: in their set-up, or from the warm-up on. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { http } from "../protocols/http1/index.ts";
import { flow } from "../workflow/flow.ts";
import { workflow } from "../workflow/workflow.ts";
import { InProcessRun, until } from "./testing/in-process-run.ts";

let server: Server;
let url: string;
let arrived = 0;
let logins = 0;

beforeAll(async () => {
  server = createServer((request, response) => {
    arrived++;
    if (request.url === "/hangs") return;
    // All but the first hang forever.
    if (request.url === "/login" && ++logins > 1) return;
    response.end("ok");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  arrived = 0;
  logins = 0;
});

/** Rests so that three users are more than 1 % of what the fourth does. */
const closed = { vus: 4, duration: "500ms", gracefulStop: "300ms", pacing: "20ms" } as const;
const warmed = { ...closed, warmup: "200ms" } as const;
const never = (): Promise<void> => new Promise(() => {});

function failed(run: InProcessRun): string[] {
  return run
    .summary()
    .thresholds.filter(({ passed }) => !passed)
    .map(({ actualText, expression }) => `${expression}: ${actualText}`);
}

function summaryOf(run: InProcessRun) {
  const [only] = run.summary().workflows;
  if (only === undefined) throw new Error("nothing ran");
  return only;
}

const loginOfFlow = (load: typeof closed) =>
  flow(
    "w",
    { ...load, userSetup: ({ step }) => step("login", http.get(`${url}/login`)) },
    async ({ step }) => {
      await step("s", http.get(url));
    },
  );
const loginOfWorkflow = (load: typeof closed) =>
  workflow("w", load)
    .userSetup(({ http }) => http.get(`${url}/login`))
    .step("s", http.get(url));

describe("users that hang in their set-up", () => {
  it.each([
    ["flow", loginOfFlow, closed, 3],
    ["workflow", loginOfWorkflow, closed, 3],
    ["flow, from the warm-up on", loginOfFlow, warmed, 0],
  ])("fail the run: %s", async (_, written, load, interrupted) => {
    const run = await InProcessRun.whole(written(load));
    const { aside = [], iterations, totals } = summaryOf(run);
    expect(aside).toMatchObject([
      { requests: 4, ok: 1, failed: 3, errors: { unanswered: 3 }, interrupted: 0, sent: 4 },
    ]);
    expect(iterations).toMatchObject({ interrupted, unresolved: 3 });
    expect(totals?.sent).toBe(arrived);
    expect(failed(run)).toEqual([
      "users.unanswered.rate <= 50%: 75 %, 3 of 4",
      expect.stringMatching(/^iterations\.unresolved\.rate <= 1%: .*, 3 of \d+$/),
    ]);
  });

  it("do not when it is younger than typical ones", async () => {
    const load = {
      stages: [{ duration: "1s", vus: 20 }],
      gracefulStop: 0,
      pacing: "20ms",
    } as const;
    let beganAt = 0;
    let hanging = 0;
    const userSetup = async (): Promise<void> => {
      const now = performance.now();
      if (beganAt === 0) {
        beganAt = now;
        await new Promise((resolve) => setTimeout(resolve, 700));
      } else if (now > beganAt + 600) {
        hanging++;
        await never();
      }
    };
    const run = await InProcessRun.whole(
      flow("w", { ...load, userSetup }, async ({ step }) => {
        await step("s", () => new Promise((resolve) => setTimeout(resolve, 1)));
      }),
    );
    expect(hanging).toBeGreaterThan(0);
    expect(summaryOf(run).iterations.interrupted).toBeGreaterThanOrEqual(hanging);
    expect(summaryOf(run).iterations.unresolved).toBe(0);
  });
});

describe("users that hang from the warm-up on", () => {
  const hanging = flow("w", warmed, async ({ step, user }) => {
    await step("s", http.get(user.id % 4 === 1 ? url : `${url}/hangs`));
  });

  it("fail the run: in a call", async () => {
    const run = await InProcessRun.whole(hanging);
    const { errors, interrupted, ok, requests, totals } = run.step("w", "s");
    expect({ errors, interrupted }).toEqual({ errors: { unanswered: 3 }, interrupted: 0 });
    expect(requests).toBe(ok + 3);
    // Calls that ended in the warm-up stay out.
    expect(requests).toBeLessThan(arrived);
    expect(totals.sent).toBe(arrived);
    expect(totals.latency.max).toBeGreaterThan(600_000);
    expect(failed(run)).toEqual([
      expect.stringMatching(/^unanswered\.rate <= 1%: .*, 3 of \d+$/),
      "users.unanswered.rate <= 50%: 75 %, 3 of 4",
    ]);
  });

  it("fail the run: in their own code, all of them", async () => {
    const written = workflow("w", warmed).step("s", http.get(url)).action("a", never);
    expect(failed(await InProcessRun.whole(written))).toContain(
      "iterations.unresolved.rate <= 1%: 100 %, 4 of 4",
    );
  });

  it("count nowhere when the run is stopped in the warm-up", async () => {
    const run = await InProcessRun.start(
      flow("w", { ...warmed, warmup: "1m" }, async ({ step }) => {
        await step("s", http.get(`${url}/hangs`));
      }),
    );
    await until(() => arrived === 4);
    run.stop();
    await run.done;
    const { errors, interrupted, requests } = run.step("w", "s");
    expect({ errors, interrupted, requests }).toEqual({ errors: {}, interrupted: 0, requests: 0 });
  });
});
