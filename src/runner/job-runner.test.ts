/** Jobs of several workflows on several cores: setup, context, data, and the cost of a lost core. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../demo/server.ts";
import { http } from "../protocols/http1/index.ts";
import { measure } from "../workflow/custom-result.ts";
import { feed } from "../workflow/feed.ts";
import { workflow } from "../workflow/workflow.ts";
import { InProcessRun, until } from "./testing/in-process-run.ts";

let demo: DemoTarget;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
});
afterAll(() => demo.close());

const once = { vus: 1, iterations: 1 } as const;
const one = () => measure(() => 1);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe("setup and teardown", () => {
  it("run once per workflow, around everything, with the value in every function", async () => {
    const log: string[] = [];
    const flow = workflow("w", { vus: 4, iterationsPerVu: 2 })
      .setup(async ({ http }) => {
        log.push("setup");
        return { status: (await http.get(demo.url)).status };
      })
      .step("s", ({ setup }) => {
        log.push(`step ${setup.status}`);
        return one();
      })
      .teardown(async ({ http, setup }) => {
        await http.get(demo.url);
        log.push(`teardown ${setup.status}`);
      });
    await InProcessRun.whole(flow, { cores: 2 });
    expect(log).toEqual(["setup", ...Array(8).fill("step 200"), "teardown 200"]);
  });

  it("run once per user, and the run waits for the last of them", async () => {
    const log: string[] = [];
    const flow = workflow("w", { vus: 3, iterationsPerVu: 2 })
      .userSetup(async ({ user, vars }) => {
        await pause(5);
        vars["token"] = `t${user.id}`;
        log.push(`up ${user.id}`);
      })
      .step("s", ({ user, vars }) => {
        log.push(`${user.id} ${String(vars["token"])}`);
        return one();
      })
      .userTeardown(async ({ http, user }) => {
        const { status } = await http.get(`${demo.url}/slow?ms=30`);
        log.push(`down ${user.id} ${status}`);
      });
    await InProcessRun.whole(flow);
    for (const id of [0, 1, 2]) {
      const own = log.filter((line) => line.split(" ").includes(String(id)));
      expect(own).toEqual([`up ${id}`, `${id} t${id}`, `${id} t${id}`, `down ${id} 200`]);
    }
  });

  it("of a user run without the other half too, also when time ends the run", async () => {
    let down = 0;
    const flow = workflow("w", { vus: 5, duration: "100ms" })
      .step("s", async () => {
        await pause(10);
        return one();
      })
      .userTeardown(() => {
        down++;
      });
    await InProcessRun.whole(flow, { cores: 2 });
    expect(down).toBe(5);
  });

  it("end the workflow before any user starts when they throw, or are reported at its end", async () => {
    let ran = 0;
    const step = () => {
      ran++;
      return one();
    };
    const bad = workflow("bad", once)
      .setup(() => {
        throw new Error("no database");
      })
      .step("s", step);
    const run = await InProcessRun.whole(bad);
    expect(run.ended).toEqual([
      ["bad", "failed", expect.stringContaining("setup threw: no database")],
    ]);
    expect(ran).toBe(0);
    const untidy = workflow("untidy", once)
      .step("s", step)
      .teardown(() => {
        throw new Error("cannot clean");
      });
    const second = await InProcessRun.whole(untidy);
    expect(second.ended).toEqual([["untidy", "completed", null]]);
    expect(second.summary().reasons).toEqual([
      'no code beside the steps threw did not hold in workflow "untidy": teardown threw: cannot clean',
    ]);
  });

  it("report a value that cannot be sent instead of hanging", async () => {
    const flow = workflow("w", once)
      .setup(() => ({ connection: () => 1 }))
      .step("s", one);
    const run = await InProcessRun.whole(flow);
    expect(run.ended[0]?.slice(0, 2)).toEqual(["w", "failed"]);
    expect(run.ended[0]?.[2]).toMatch(/could not be cloned/);
  });
});

describe("context between workflows (CTX-3)", () => {
  const provider = (to: string[]) =>
    workflow("auth", once)
      .step("login", http.post(`${demo.url}/login`, { json: { user: "ada" } }))
      .provide("token", { to }, ({ last }) => last.login?.json<{ token: string }>().token);

  async function seenWith(to: string[], from: string[], depends: boolean): Promise<unknown> {
    const seen: unknown[] = [];
    const consumer = workflow("data", { vus: 4, iterationsPerVu: 1 })
      .use("auth", { from, keys: { token: "none" } })
      .step("s", ({ http, used }) => {
        seen.push(used.auth.token);
        return http.get(`${demo.url}/users/1`, {
          headers: { authorization: `Bearer ${used.auth.token}` },
        });
      });
    if (depends) consumer.dependsOn("auth");
    const run = await InProcessRun.whole([provider(to), consumer], { cores: 2 });
    expect(run.ended).toHaveLength(2);
    return seen[0];
  }

  it("passes values when both sides name each other and one depends on the other (CTX-7)", async () => {
    expect(await seenWith(["data"], ["auth"], true)).toMatch(/^\w+\.[\w-]+$/);
  });
  it.each([
    ["the consumer names another workflow", ["data"], ["other"], true],
    ["the consumer names no workflow", ["data"], [], true],
    ["the provider names another workflow", ["other"], ["auth"], true],
    ["there is no dependency", ["data"], ["auth"], false],
  ])("gives the default when %s", async (_name, to, from, depends) => {
    expect(await seenWith(to, from, depends)).toBe("none");
  });

  it("drops only a value that cannot be sent, with a note", async () => {
    const seen: unknown[] = [];
    const giver = workflow("giver", once)
      .step("s", one)
      .provide("good", { to: ["taker"] }, () => 42)
      .provide("bad", { to: ["taker"] }, () => () => 1)
      .provide("throws", { to: ["taker"] }, () => {
        throw new Error("nothing to give");
      });
    const taker = workflow("taker", once)
      .dependsOn(giver)
      .use("all", { from: ["giver"], keys: { good: 0, bad: "default", throws: "default" } })
      .step("s", ({ used }) => {
        seen.push(used.all);
        return one();
      });
    const run = await InProcessRun.whole([giver, taker]);
    expect(seen).toEqual([{ good: 42, bad: "default", throws: "default" }]);
    expect(run.logs.join("\n")).toMatch(
      /provide "bad" threw[\s\S]*provide "throws" threw: nothing to give/,
    );
  });
});

describe("layers of workflows", () => {
  it("run one after the other; a workflow that measures nothing runs once, on one core", async () => {
    const log: string[] = [];
    const seed = workflow("seed", { vus: 50, duration: "10s" }).action("insert", async () => {
      await pause(20);
      log.push("seed");
    });
    const load = workflow("load", { vus: 2, iterationsPerVu: 2 })
      .dependsOn(seed)
      .step("s", () => {
        log.push("load");
        return one();
      });
    const report = workflow("report", {})
      .dependsOn(load)
      .action("write", () => {
        log.push("report");
      });
    const run = await InProcessRun.whole([report, load, seed], { cores: 2 });
    expect(log).toEqual(["seed", "load", "load", "load", "load", "report"]);
    expect(run.workflow("seed").cores).toHaveLength(1);
    expect(run.ended.map(([name, status]) => [name, status])).toEqual([
      ["seed", "completed"],
      ["load", "completed"],
      ["report", "completed"],
    ]);
  });

  it("skip dependants of a failed one, and nothing else (LAYER-7)", async () => {
    const log: string[] = [];
    const step = (name: string) => () => {
      log.push(name);
      return one();
    };
    const seed = workflow("seed", {}).action("insert", () => {
      throw new Error("table is missing");
    });
    const child = workflow("child", once).dependsOn(seed).step("s", step("child"));
    const grandchild = workflow("grandchild", once).dependsOn(child).step("s", step("grandchild"));
    const other = workflow("other", once).step("s", step("other"));
    const run = await InProcessRun.whole([seed, child, grandchild, other], { cores: 2 });
    expect(log).toEqual(["other"]);
    const byName = Object.fromEntries(
      run.ended.map(([name, status, why]) => [name, [status, why]]),
    );
    expect(byName["seed"]).toEqual([
      "failed",
      expect.stringContaining('action "insert" threw: table is missing'),
    ]);
    expect(byName["child"]).toEqual(["not run", "seed"]);
    expect(byName["grandchild"]).toEqual(["not run", "seed"]);
    expect(byName["other"]?.[0]).toBe("completed");
  });
});

describe("data", () => {
  it("of order once reaches every user and core exactly once, then the run ends with a note", async () => {
    const rows = Array.from({ length: 200 }, (_, id) => ({ id }));
    const taken: number[] = [];
    const flow = workflow("w", { vus: 12, duration: "20s" })
      .data("row", feed.rows(rows, { order: "once" }))
      .data("other", feed.rows(["x"], { order: "random" }))
      .data(
        "third",
        feed.generate((index) => index),
      )
      .step("s", async ({ data }) => {
        taken.push(data.row.id);
        await pause(1);
        return one();
      });
    const run = await InProcessRun.whole(flow, { cores: 3 });
    expect(taken.sort((a, b) => a - b)).toEqual(rows.map(({ id }) => id));
    expect(run.step("w", "s").ok).toBe(200);
    expect(run.notes.join()).toMatch(/"once" ran out of rows/);
    expect(run.ended).toEqual([["w", "completed", null]]);
  });

  it("in sequence never gives two cores the same index", async () => {
    const taken: number[] = [];
    const flow = workflow("w", { vus: 6, iterations: 300 })
      .data(
        "n",
        feed.generate((index) => index),
      )
      .step("s", ({ data }) => {
        taken.push(data.n);
        return one();
      });
    await InProcessRun.whole(flow, { cores: 3 });
    expect(taken).toHaveLength(300);
    expect(new Set(taken).size).toBe(300);
  });

  it("fails the workflow with the file's name when it cannot be read", async () => {
    const flow = workflow("w", once).data("u", feed.csv("no-such-users.csv")).step("s", one);
    const run = await InProcessRun.whole(flow);
    expect(run.ended[0]?.[2]).toMatch(/cannot read the data file .*no-such-users\.csv/);
  });
});

describe("a lost core", () => {
  it("costs its users; the others go on and its counts are kept", async () => {
    const flow = workflow("w", { vus: 8, duration: "2s" }).step("home", http.get(demo.url));
    const run = await InProcessRun.start(flow, { cores: 2 });
    await until(
      () => run.events.filter(({ core, event }) => core === 1 && event.kind === "frame").length > 2,
    );
    run.lose(1);
    const kept = run.step("w", "home").ok;
    await run.done;
    expect(run.ended).toEqual([["w", "completed", null]]);
    expect(run.step("w", "home").ok).toBeGreaterThan(kept);
  });

  it("during setup fails the workflow with a clear error, and the next one still runs", async () => {
    let setups = 0;
    const flow = workflow("w", { vus: 4, duration: "100ms" })
      .setup(async () => {
        setups++;
        await pause(100_000);
      })
      .step("s", one);
    const next = workflow("next", { ...once, priority: "low" }).step("s", one);
    const run = await InProcessRun.start([flow, next], { cores: 4 });
    await until(() => setups === 1);
    const [core] = run.workflow("w").cores.length > 0 ? run.workflow("w").cores : [0];
    run.lose(core ?? 0);
    await run.done;
    const byName = Object.fromEntries(
      run.ended.map(([name, status, why]) => [name, [status, why]]),
    );
    expect(byName["w"]).toEqual(["failed", expect.stringContaining("set-up was lost")]);
    expect(byName["next"]?.[0]).toBe("completed");
  });

  it("during teardown does not hang the run", async () => {
    let torn = 0;
    const flow = workflow("w", once)
      .step("s", one)
      .teardown(async () => {
        torn++;
        await pause(100_000);
      });
    const run = await InProcessRun.start(flow, { cores: 1 });
    await until(() => torn === 1);
    run.lose(0);
    await run.done;
    expect(run.ended).toHaveLength(1);
  });
});

it("ends at once when stopped before anything began", async () => {
  const flow = workflow("w", { vus: 1, duration: "10s" }).step("s", one);
  const after = workflow("after", once).dependsOn(flow).step("s", one);
  const run = await InProcessRun.start([flow, after]);
  run.stop();
  await run.done;
  expect(run.ended.map(([name, status]) => [name, status]).sort()).toEqual([
    ["after", "not run"],
    ["w", "interrupted"],
  ]);
});

// OPT-9
it("reports a prepared address without a listener before any user starts", async () => {
  const gone = await startDemoTarget({ port: 0 });
  await gone.close();
  const run = await InProcessRun.whole(workflow("w", once).step("s", http.get(gone.url)));
  expect(run.ended[0]?.[2]).toMatch(
    /nothing listens at 127\.0\.0\.1:\d+: the connection was refused/,
  );
});
