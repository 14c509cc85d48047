/** Time limits on code outside the steps, its notification, and aborts requested by code. */

import { describe, expect, it } from "vitest";
import { measure } from "../workflow/custom-result.ts";
import type { WorkflowOptions } from "../workflow/options.ts";
import { workflow } from "../workflow/workflow.ts";
import { InProcessRun, until } from "./testing/in-process-run.ts";

const one = () => measure(() => 1);
const never = (): Promise<void> => new Promise(() => {});
const once = { vus: 1, iterations: 1 } as const;

/** Resolves with the reason of the signal. */
function reasonOf(signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve((signal.reason as Error).message));
  });
}

function reasonsOf(run: InProcessRun): string {
  return run.summary().reasons.join("\n");
}

describe("a limit", () => {
  it("of the setup fails the workflow, after notifying its code", async () => {
    let reason = "";
    const flow = workflow("w", { ...once, limits: { setup: "200ms" } })
      .setup(async ({ signal }) => {
        reason = await reasonOf(signal);
        await never();
      })
      .step("s", one);
    const other = workflow("other", once).step("s", one);
    const run = await InProcessRun.whole([flow, other], { cores: 1 });
    expect(reason).toBe("setup has 40ms left of its 200ms");
    const byName = new Map(run.ended.map(([name, status, why]) => [name, [status, why]]));
    expect(byName.get("w")).toEqual(["failed", "setup took longer than 200ms, its limit"]);
    expect(byName.get("other")?.[0]).toBe("completed");
  });

  it("that is met changes nothing, and the signal stays quiet", async () => {
    let aborted = true;
    const flow = workflow("w", { ...once, limits: { setup: "30s" } })
      .setup(({ signal }) => {
        aborted = signal.aborted;
        return 7;
      })
      .step("s", ({ setup }) => measure(() => setup));
    const run = await InProcessRun.whole(flow);
    expect([aborted, reasonsOf(run)]).toEqual([false, ""]);
  });

  it("of the teardown ends it, and the run does not pass", async () => {
    let reason = "";
    const flow = workflow("w", { vus: 2, duration: "100ms", limits: { teardown: "100ms" } })
      .step("s", one)
      .teardown(async ({ signal }) => {
        reason = await reasonOf(signal);
        await never();
      });
    const run = await InProcessRun.whole(flow, { cores: 2 });
    expect(run.ended).toEqual([["w", "completed", null]]);
    expect(reason).toBe("teardown has 20ms left of its 100ms");
    expect(reasonsOf(run)).toContain("teardown took longer than 100ms");
  });

  it.each<[string, WorkflowOptions]>([
    ["closed", { vus: 2, duration: "1s" }],
    ["open", { rate: 10, duration: "1s", maxVus: 2, thresholds: ["arrivals.missed <= 100"] }],
    ["open with warm-up", { rate: 10, duration: "1s", warmup: "100ms", maxVus: 2 }],
    ["counted", { vus: 2, iterationsPerVu: 2 }],
    ["shared", { vus: 2, iterations: 4 }],
  ])("of userSetup and userTeardown ends them: %s", async (_, load) => {
    const reasons = new Set<string>();
    const flow = workflow("w", { ...load, limits: { userSetup: "50ms", userTeardown: "50ms" } })
      .userSetup(async ({ signal }) => {
        reasons.add(await reasonOf(signal));
        await never();
      })
      .step("s", one)
      .userTeardown(async ({ signal }) => {
        reasons.add(await reasonOf(signal));
        await never();
      });
    const run = await InProcessRun.whole(flow);
    expect([...reasons].sort()).toEqual([
      "userSetup has 10ms left of its 50ms",
      "userTeardown has 10ms left of its 50ms",
    ]);
    expect(run.step("w", "s").ok).toBeGreaterThan(0);
    expect(reasonsOf(run)).toMatch(/userSetup took longer than 50ms, its limit/);
    expect(reasonsOf(run)).toContain("userTeardown took longer than 50ms");
  });

  it("of the graceful stop notifies steps and a userSetup under way", async () => {
    const reasons: string[] = [];
    const flow = workflow("w", { vus: 1, duration: "100ms", gracefulStop: "200ms" })
      .userSetup(async ({ signal, user }) => {
        if (user.id === 0) return;
        reasons.push(await reasonOf(signal));
        await never();
      })
      .step("s", async ({ signal }) => {
        reasons.push(await reasonOf(signal));
        return one();
      });
    const run = await InProcessRun.whole(flow);
    expect(reasons).toEqual(["the graceful stop has 40ms left of its 200ms"]);
    // The step saved its result before it was cut off, so it counts.
    expect(run.step("w", "s")).toMatchObject({ ok: 1, interrupted: 0 });
  });

  it("is rejected when invalid", () => {
    const limits: object = { setpu: "1s" };
    expect(() => workflow("w", { ...once, limits })).toThrow(
      'there is no limit "setpu"; did you mean "setup"?',
    );
    expect(() => workflow("w", { ...once, limits: { setup: 0 } })).toThrow(
      "limits.setup must be more than zero",
    );
  });
});

describe("a stop", () => {
  it("notifies a setup under way, which may clean up, and nothing begins", async () => {
    const log: string[] = [];
    const flow = workflow("w", once)
      .setup(async ({ signal }) => {
        log.push("begun");
        log.push(await reasonOf(signal));
        throw new Error("cleaned up");
      })
      .step("s", () => {
        log.push("step");
        return one();
      });
    const run = await InProcessRun.start(flow);
    await until(() => log.length === 1);
    run.stop();
    await run.done;
    expect(log).toEqual(["begun", "the run was stopped"]);
    expect(run.ended).toEqual([["w", "interrupted", null]]);
  });

  it.each([
    ["iterations", once],
    ["users", { vus: 3, duration: "1h" }],
    ["a rate", { rate: 100, duration: "1h" }],
  ] as const)(
    "tears down a setup that finishes within its notice, and no user begins: %s",
    async (...the) => {
      const log: string[] = [];
      const flow = workflow("w", the[1])
        .setup(async ({ signal }) => {
          log.push("begun");
          await reasonOf(signal);
          return "database";
        })
        .userSetup(() => log.push("a user begins"))
        .step("s", one)
        .userTeardown(() => log.push("a user ends"))
        .teardown(({ setup }) => log.push(`dropped ${setup}`));
      const run = await InProcessRun.start(flow, { cores: 2 });
      await until(() => log.length === 1);
      run.stop();
      await run.done;
      expect(log).toEqual(["begun", "dropped database"]);
      expect(run.ended).toEqual([["w", "interrupted", null]]);
    },
  );
});

describe("abort(reason)", () => {
  it("in a step ends every workflow gracefully, with results, and the run does not pass", async () => {
    const a = workflow("a", { rate: 50, duration: "1h" }).step("s", ({ abort, user }) => {
      if (user.iteration === 2) abort("the shop is closed");
      return one();
    });
    const b = workflow("b", { vus: 1, duration: "1h" }).step("s", async ({ sleep }) => {
      await sleep(5);
      return one();
    });
    const after = workflow("after", once).dependsOn(a).step("s", one);
    const run = await InProcessRun.whole([a, b, after], { cores: 1 });
    expect(run.ended.map(([name, status]) => `${name} ${status}`).sort()).toEqual([
      "a interrupted",
      "after not run",
      "b interrupted",
    ]);
    expect(run.step("a", "s").ok).toBeGreaterThan(2);
    expect(run.summary().verdict).toBe("failed");
    expect(reasonsOf(run)).toContain(
      'no code asked for the end did not hold in workflow "a": the shop is closed',
    );
  });

  it("in setup and in userSetup does the same", async () => {
    const early = workflow("early", { vus: 1, duration: "1h" })
      .setup(({ abort }) => abort("no licence"))
      .step("s", one);
    const first = await InProcessRun.whole(early);
    expect(first.ended).toEqual([["early", "interrupted", null]]);
    expect(reasonsOf(first)).toContain("no licence");
    const user = workflow("user", { vus: 3, duration: "1h", warmup: "1h" })
      .userSetup(({ abort }) => abort("no account"))
      .step("s", one);
    const second = await InProcessRun.whole(user, { cores: 2 });
    expect(second.ended).toEqual([["user", "interrupted", null]]);
    expect(reasonsOf(second)).toContain("no account");
  });
});

it("shows activity outside the load in the live summary", async () => {
  let begun = 0;
  let finish = (): void => {};
  const waiting = (): Promise<void> =>
    new Promise((resolve) => {
      begun++;
      finish = resolve;
    });
  const flow = workflow("w", once).setup(waiting).step("s", one).teardown(waiting);
  const run = await InProcessRun.start(flow);
  const doing = () => run.live().workflows[0]?.doing ?? null;
  await until(() => begun === 1 && doing() !== null);
  expect([run.live().phase, doing()]).toEqual([
    "setting up",
    expect.stringMatching(/^setting up for \d+ s$/),
  ]);
  finish();
  await until(() => begun === 2 && doing()?.startsWith("tearing down") === true);
  expect(run.live().phase).toBe("tearing down");
  finish();
  await run.done;
  expect(doing()).toBeNull();
});
