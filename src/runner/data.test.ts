/** Data of users: rows, frozen values, counters and queues, over one core and several. */

import { setTimeout } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { measure } from "../workflow/custom-result.ts";
import { feed } from "../workflow/feed.ts";
import { flow } from "../workflow/flow.ts";
import { mix } from "../workflow/mix.ts";
import type { WorkflowOptions } from "../workflow/options.ts";
import { shared } from "../workflow/shared.ts";
import { workflow } from "../workflow/workflow.ts";
import { InProcessRun } from "./testing/in-process-run.ts";

const one = () => measure(() => 1);
const wait = (ms: number) => measure(() => setTimeout(ms));
const rows = Array.from({ length: 10 }, (_, id) => ({ id, tags: [`t${id}`] }));

describe("rows per user", () => {
  it.each<[string, WorkflowOptions]>([
    ["closed with warm-up", { vus: 4, duration: "300ms", warmup: "100ms", think: "10ms" }],
    ["open", { rate: 60, duration: "300ms", maxVus: 4 }],
    ["counted", { vus: 4, iterationsPerVu: 5 }],
  ])("stay with the user in all iterations, userSetup and userTeardown: %s", async (_, load) => {
    const seen = new Map<number, Set<number>>();
    const see = (user: number, row: number) =>
      seen.set(user, (seen.get(user) ?? new Set()).add(row));
    const each: number[] = [];
    const flow = workflow("w", load)
      .data("account", feed.rows(rows, { per: "user" }))
      .data(
        "n",
        feed.generate((index) => index),
      )
      .userSetup(({ data, user }) => see(user.id, data.account.id))
      .step("s", ({ data, user }) => {
        see(user.id, data.account.id);
        each.push(data.n);
        return one();
      })
      .userTeardown(({ data, user }) => see(user.id, data.account.id));
    const run = await InProcessRun.whole(flow, { cores: 2 });
    expect(run.ended).toEqual([["w", "completed", null]]);
    expect(seen.size).toBeGreaterThan(1);
    for (const [user, ids] of seen) expect([...ids]).toEqual([user]);
    expect(new Set(each).size).toBe(each.length);
  });

  it("once each start no user without a row", async () => {
    const seen = new Set<string>();
    const flow = workflow("w", { vus: 5, iterationsPerVu: 2 })
      .data("account", feed.rows(rows.slice(0, 3), { per: "user", order: "once", shuffle: true }))
      .step("s", ({ data, user }) => {
        seen.add(`${user.id} ${data.account.id}`);
        return one();
      });
    const run = await InProcessRun.whole(flow);
    expect(seen.size).toBe(3);
    expect(run.step("w", "s").ok).toBe(6);
    expect(run.notes.join()).toContain("ran out of rows");
  });
});

it("count arrivals without a row as not begun", async () => {
  const flow = workflow("w", { rate: 200, duration: "2s", maxVus: 50 })
    .data("row", feed.rows(rows.slice(0, 3), { order: "once" }))
    .step("s", one);
  const run = await InProcessRun.whole(flow);
  expect(run.workflow("w").data().arrivals?.started).toBe(3);
  expect(run.step("w", "s").ok).toBe(3);
});

describe("shuffled rows", () => {
  const drawn = async (seed: string, cores: number, order: "sequential" | "once") => {
    const taken: number[] = [];
    const flow = workflow("w", { vus: 3, iterations: order === "once" ? 100 : 20 })
      .data("row", feed.rows(rows, { order, shuffle: true }))
      .step("s", ({ data }) => {
        taken.push(data.row.id);
        return one();
      });
    await InProcessRun.whole(flow, { cores, overrides: { seed } });
    return taken;
  };

  it("come once per round, in an order of the seed that differs between rounds", async () => {
    const [one, again, other] = [
      await drawn("a", 1, "sequential"),
      await drawn("a", 1, "sequential"),
      await drawn("b", 1, "sequential"),
    ];
    expect(one).toEqual(again);
    expect(one).not.toEqual(other);
    const rounds = [one.slice(0, 10), one.slice(10)];
    for (const round of rounds)
      expect(round.toSorted((x, y) => x - y)).toEqual(rows.map(({ id }) => id));
    expect(rounds[0]).not.toEqual(rounds[1]);
  });

  it("of order once are used once over several cores", async () => {
    const taken = await drawn("a", 3, "once");
    expect(taken.toSorted((x, y) => x - y)).toEqual(rows.map(({ id }) => id));
  });

  it("are rejected where they mean nothing", () => {
    expect(() => feed.rows(rows, { order: "random", shuffle: true })).toThrow("cannot be shuffled");
    const per = "thread" as "user";
    expect(() => feed.rows(rows, { per })).toThrow('per is "thread"');
  });
});

describe("as many rows of order once as iterations", () => {
  const each = (count: number) =>
    feed.rows(
      Array.from({ length: count }, (_, id) => ({ id })),
      { order: "once" },
    );
  /** One core runs ahead of the others, which would leave them without rows. */
  const uneven = (user: number) => wait(user === 1 ? 0 : 3);

  it.each([
    ["shared", { vus: 4, iterations: 23 }, 23],
    ["per user", { vus: 5, iterationsPerVu: 5 }, 25],
  ] as const)("are all used, %s", async (_, load, count) => {
    const flow = workflow("w", load)
      .data("row", each(count))
      .step("s", ({ user }) => uneven(user.id));
    const run = await InProcessRun.whole(flow, { cores: 3 });
    expect(run.step("w", "s").ok).toBe(count);
    expect(run.notes).toEqual([]);
  });

  it("suffice for a mix, whichever core begins the iterations", async () => {
    const buy = flow("buy", { data: { row: each(15) } }, async ({ step, user }) => {
      await step("x", () => uneven(user.id));
    });
    const look = flow("look", async ({ step }) => {
      await step("x", () => wait(1));
    });
    const both = mix([buy.weight(1), look.weight(1)], { vus: 6, iterations: 24 });
    const run = await InProcessRun.whole(both, { cores: 3 });
    expect(run.step("buy", "x").ok + run.step("look", "x").ok).toBe(24);
    expect(run.notes).toEqual([]);
  });
});

it("begins as many arrivals as iterations with a feed of order once in an open model", async () => {
  const flow = workflow("w", { rate: 100, duration: "2s" })
    .data("row", feed.rows(rows, { order: "once" }))
    .step("s", one);
  const run = await InProcessRun.whole(flow, { cores: 2 });
  const { arrivals, iterations } = run.workflow("w").data();
  expect([arrivals?.started, iterations]).toEqual([10, 10]);
});

// VUC-7
it("freezes values passed to users deeply", async () => {
  const problems: string[] = [];
  const attempt = (change: () => void) => {
    try {
      change();
      problems.push("nothing was thrown");
    } catch (error) {
      problems.push((error as Error).name);
    }
  };
  const giver = workflow("giver", { vus: 1, iterations: 1 })
    .step("s", one)
    .provide("list", { to: ["taker"] }, () => ({ ids: [1, 2] }));
  const taker = workflow("taker", { vus: 1, iterations: 2 })
    .dependsOn(giver)
    .use("given", { from: ["giver"], keys: { list: { ids: [0] } } })
    .setup(() => ({ deep: { list: [1] } }))
    .data("row", feed.rows([{ tags: ["a"] }]))
    .step("s", ({ data, setup, used }) => {
      attempt(() => setup.deep.list.push(2));
      attempt(() => used.given.list.ids.push(3));
      attempt(() => data.row.tags.push("b"));
      attempt(() => Object.assign(data, { row: 1 }));
      return measure(() => [setup.deep.list, used.given.list.ids, data.row.tags]);
    });
  const run = await InProcessRun.whole([giver, taker]);
  expect(run.ended.map(([, status]) => status)).toEqual(["completed", "completed"]);
  expect(problems).toEqual(Array(8).fill("TypeError"));
});

// CTX-11
it("rejects a value too large to pass on, and the message names its largest part", async () => {
  const giver = workflow("giver", { vus: 1, iterations: 1 })
    .step("s", one)
    .provide("big", { to: ["taker"] }, () => ({
      ids: [1, 2, 3],
      pages: [{ title: "a" }, { title: "b", body: "x".repeat(2_000_000) }],
    }))
    .provide("small", { to: ["taker"] }, () => 7);
  const taker = workflow("taker", { vus: 1, iterations: 1 })
    .dependsOn(giver)
    .use("given", { from: ["giver"], keys: { big: null, small: 0 } })
    .step("s", ({ used }) => measure(() => used.given));
  const run = await InProcessRun.whole([giver, taker]);
  expect(run.summary().reasons.join()).toMatch(
    /provide "big" threw: the value takes 2000\d+ bytes, most of it at pages\[1\]\.body; at most 1048576/,
  );
});

describe("names", () => {
  // API-3
  it("are unique over steps, actions, checks and metrics", () => {
    const made = () => workflow("w", { vus: 1, iterations: 1 }).step("a", one);
    const message = (what: string) => `"a" is the name of a step already, so no ${what} can`;
    expect(() => made().check("a", () => true)).toThrow(message("check"));
    expect(() => made().metric("a", "trend", () => 1)).toThrow(message("metric"));
    const checked = workflow("w", { vus: 1, iterations: 1 }).check("c", () => true);
    expect(() => checked.step("c", one)).toThrow('"c" is the name of a check already');
  });
});

describe("shared values", () => {
  it("of a counter are given once each, over cores and workflows", async () => {
    const ids = shared.counter("ids");
    const taken: number[] = [];
    const make = (name: string) =>
      workflow(name, { vus: 5, iterations: 100 }).step("s", async () => {
        taken.push(await ids.next());
        return one();
      });
    await InProcessRun.whole([make("a"), make("b")], { cores: 2 });
    expect(taken).toHaveLength(200);
    expect(new Set(taken).size).toBe(200);
  });

  it("of a queue come out in order, once each, from one workflow to another", async () => {
    const orders = shared.queue<{ readonly id: number }>("orders");
    const got: number[] = [];
    let made = 0;
    const buyers = workflow("buyers", { vus: 3, iterations: 40 }).step("s", async () => {
      expect(await orders.push({ id: made++ })).toBe(true);
      return one();
    });
    const packers = workflow("packers", { vus: 3, iterations: 60 })
      .dependsOn(buyers)
      .step("s", async () => {
        const order = await orders.take();
        if (order !== undefined) got.push(order.id);
        return one();
      });
    const run = await InProcessRun.whole([buyers, packers], { cores: 2 });
    expect(run.summary().reasons).toEqual([]);
    expect(got.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, id) => id));
  });

  it("of one core need no message, and other values are rejected", async () => {
    const own = shared.queue<number>("own", { scope: "core" });
    expect(await own.take()).toBeUndefined();
    expect(await own.push(1)).toBe(true);
    expect([await own.take(), await own.take()]).toEqual([1, undefined]);
    const count = shared.counter("own", { scope: "core" });
    expect([await count.next(), await count.next()]).toEqual([0, 1]);
    await expect(own.push(["x".repeat(2e6)] as unknown as number)).rejects.toThrow(
      "at most 1048576",
    );
    expect(() => shared.counter("own")).toThrow('two shared counters named "own"');
    expect(() => shared.queue("")).toThrow("needs a name");
    expect(() => shared.queue("q", { scope: "world" as "run" })).toThrow('"run" or "core"');
  });
});
