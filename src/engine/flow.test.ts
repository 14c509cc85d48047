/** Flows, driven through the real manager and cores against a server that counts independently. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../demo/server.ts";
import type { HttpTarget } from "../protocols/http/index.ts";
import { http } from "../protocols/http1/index.ts";
import { InProcessRun } from "../runner/testing/in-process-run.ts";
import { feed } from "../workflow/feed.ts";
import { flow } from "../workflow/flow.ts";
import type { FlowContext, UserSetupContext } from "../workflow/flow-context.ts";

let demo: DemoTarget;
let shop: HttpTarget<"http1">;

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
  shop = http.target(demo.url);
});
afterAll(() => demo.close());

const once = { vus: 1, iterations: 1 } as const;
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Iterations by outcome. */
function outcomes(run: InProcessRun) {
  const of = run.workflow("f");
  return {
    completed: of.outcome("completed"),
    ended: of.outcome("ended"),
    failed: of.outcome("failed"),
    interrupted: of.outcome("interrupted"),
  };
}

const none = { completed: 0, ended: 0, failed: 0, interrupted: 0 };

function groupOf(run: InProcessRun, name: string) {
  const found = run
    .workflow("f")
    .data()
    .groups.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no group ${name}`);
  return found.totals;
}

describe("calls of a flow", () => {
  it("are each counted once under the name of their step, on every core", async () => {
    const before = demo.stats().requests;
    const body = async ({ step }: FlowContext): Promise<void> => {
      await step("home", shop.get("/"));
      const login = await step(
        "login",
        shop.post<{ token: string }>("/login", { json: { user: "ada" } }),
      );
      const me = shop.with({ headers: { authorization: `Bearer ${login.json().token}` } });
      for (let page = 1; page <= 2; page++)
        await step("list", me.get("/users", { params: { page } }));
      await step(shop.get("/slow?ms=1"));
    };
    const run = await InProcessRun.whole(flow("f", { vus: 4, iterationsPerVu: 5 }, body), {
      cores: 2,
    });
    const counts = ["home", "login", "list", "GET /slow"].map((name) => run.step("f", name).ok);
    expect(counts).toEqual([20, 20, 40, 20]);
    expect(demo.stats().requests - before).toBe(100);
    expect(outcomes(run)).toEqual({ ...none, completed: 20 });
  });

  it("are named (other) beyond 200 names of addresses, and none is lost", async () => {
    const body = async ({ step, user }: FlowContext): Promise<void> => {
      await step(shop.get(`/users/${user.iteration}`, { expect: () => true }));
    };
    const run = await InProcessRun.whole(flow("f", { vus: 1, iterationsPerVu: 205 }, body));
    expect(run.workflow("f").steps.length).toBe(201);
    expect(run.step("f", "(other)").ok).toBe(5);
    expect(run.step("f", "GET /users/0").ok).toBe(1);
  });

  it("can be any code, with its value", async () => {
    const seen: unknown[] = [];
    const body = async ({ step }: FlowContext): Promise<void> => {
      seen.push((await step("code", async () => 42)).value);
      const failed = await step("broken", () => {
        throw new Error("as planned");
      });
      seen.push(failed.ok, failed.error);
    };
    const run = await InProcessRun.whole(flow("f", once, body));
    expect(seen).toEqual([42, false, "as planned"]);
    expect(run.step("f", "code").ok).toBe(1);
    expect(run.step("f", "broken").errors).toEqual({ exception: 1 });
  });

  it("of one user run in parallel over at most six connections", async () => {
    const before = demo.stats().connections;
    const body = async ({ step }: FlowContext): Promise<void> => {
      const all = Array.from({ length: 10 }, () => step("slow", shop.get("/slow?ms=30")));
      await Promise.all(all);
    };
    const run = await InProcessRun.whole(flow("f", once, body));
    expect(run.step("f", "slow").ok).toBe(10);
    expect(demo.stats().connections - before).toBe(6);
  });

  it("report the line to write when awaited without a step, or when no call at all", async () => {
    const run = await InProcessRun.whole(
      flow("f", once, async () => {
        await (shop.get("/") as unknown as Promise<void>);
      }),
    );
    expect(outcomes(run)).toEqual({ ...none, failed: 1 });
    expect(run.logs.join()).toMatch(/GET \/ is only described.*await step\("name"/);
    const wrong = await InProcessRun.whole(
      flow("f", once, async ({ step }) => {
        await step("x", 7 as never);
      }),
    );
    expect(wrong.logs.join()).toMatch(/step\("x", …\) takes a described call.*got number/);
  });
});

describe("a failed call", () => {
  it("is a value; reading its content ends the iteration because of it, and counts no second error", async () => {
    const seen: unknown[] = [];
    const body = async ({ check, end, step }: FlowContext): Promise<void> => {
      const failed = await step("fails", shop.get("/fail"));
      seen.push(failed.ok, failed.status, failed.errorKind, failed.text().length > 0);
      check("never counted", () => failed.json<{ x: number }>().x === 1);
      end("not reached");
    };
    const run = await InProcessRun.whole(flow("f", { vus: 1, iterations: 3 }, body));
    expect(seen.slice(0, 4)).toEqual([false, 500, "status", true]);
    expect(outcomes(run)).toEqual({ ...none, ended: 3 });
    expect(run.step("f", "fails").errors).toEqual({ status: 3 });
    expect(run.workflow("f").data().checks).toEqual([]);
    expect(run.notes.join()).toContain("3 iterations ended early, by: fails (3)");
    expect(run.summary().thresholds.map(({ expression }) => expression)).not.toContain(
      "no uncaught errors in flow code",
    );
  });

  it("ends at once when required; steps after the end are refused even if the end was caught", async () => {
    const before = demo.stats().requests;
    const seen: string[] = [];
    const body = async ({ step }: FlowContext): Promise<void> => {
      try {
        await step("fails", shop.get("/fail"), { required: true });
        seen.push("went on");
      } catch {
        seen.push("caught");
      }
      try {
        await step("after", shop.get("/"));
      } finally {
        seen.push("finally");
      }
    };
    const run = await InProcessRun.whole(flow("f", once, body));
    expect(seen).toEqual(["caught", "finally"]);
    expect(demo.stats().requests - before).toBe(1);
    expect(run.step("f", "after").requests).toBe(0);
    expect(outcomes(run)).toEqual({ ...none, ended: 1 });
  });

  it("can be required for the whole flow, and not for one step", async () => {
    const body = async ({ step }: FlowContext): Promise<void> => {
      await step("may fail", shop.get("/fail"), { required: false });
      await step("must not", shop.get("/fail"));
      await step("never", shop.get("/"));
    };
    const run = await InProcessRun.whole(flow("f", { ...once, required: true }, body));
    expect(run.step("f", "may fail").failed).toBe(1);
    expect(run.step("f", "must not").failed).toBe(1);
    expect(run.step("f", "never").requests).toBe(0);
    expect(outcomes(run)).toEqual({ ...none, ended: 1 });
  });
});

describe("the outcome of an iteration", () => {
  it("is failed when user code throws: no call, no latency, and the run does not pass", async () => {
    const body = async ({ step }: FlowContext): Promise<void> => {
      await step("home", shop.get("/"));
      throw new Error("as planned");
    };
    const run = await InProcessRun.whole(flow("f", { vus: 1, iterations: 2 }, body));
    expect(outcomes(run)).toEqual({ ...none, failed: 2 });
    expect(run.step("f", "home").ok).toBe(2);
    const gate = run.summary().thresholds.find(({ expression }) => /flow code/.test(expression));
    expect(gate?.actualText).toBe("as planned (2 times)");
    expect(run.summary().verdict).toBe("failed");
  });

  it("waits for calls nobody awaited, counts them and names them", async () => {
    const before = demo.stats().requests;
    const body = async ({ step }: FlowContext): Promise<void> => {
      void step("floating", shop.get("/slow?ms=20"));
      await step("home", shop.get("/"));
    };
    const run = await InProcessRun.whole(flow("f", { vus: 2, iterationsPerVu: 3 }, body));
    expect(run.step("f", "floating").ok).toBe(6);
    expect(demo.stats().requests - before).toBe(12);
    expect(outcomes(run)).toEqual({ ...none, completed: 6 });
    expect(run.notes.join()).toMatch(/6 calls were under way .*: floating \(6\)/);
    // The group lasts until they have settled.
    expect(groupOf(run, "").duration.min).toBeGreaterThan(19_000);
  });

  it("is ended by choice with a reason; code that outlives its iteration begins nothing", async () => {
    const before = demo.stats().requests;
    const late: Promise<unknown>[] = [];
    const body = async ({ end, step }: FlowContext): Promise<void> => {
      late.push(
        wait(30)
          .then(() => step("late", shop.get("/")))
          .catch((error: Error) => error.message),
      );
      end("out of stock");
    };
    const run = await InProcessRun.whole(flow("f", once, body));
    expect(outcomes(run)).toEqual({ ...none, ended: 1 });
    expect(run.notes.join()).toContain("1 iterations ended early, by: out of stock (1)");
    expect(await late[0]).toMatch(/over before this step/);
    expect(demo.stats().requests - before).toBe(0);
  });
});

describe("groups", () => {
  it("nest, last from due to end, exclude pauses from active time, and fail with their calls", async () => {
    const body = async ({ group, pause, step }: FlowContext): Promise<void> => {
      await group("checkout", async () => {
        await step("slow", shop.get("/slow?ms=20"));
        await pause("50ms");
        await group("pay", async ({ step }) => {
          await step("fails", shop.get("/fail"));
        });
      });
      await group("fine", () => step("home", shop.get("/")));
    };
    const run = await InProcessRun.whole(flow("f", { vus: 1, iterations: 4 }, body));
    const [checkout, pay, fine] = ["checkout", "checkout/pay", "fine"].map((at) =>
      groupOf(run, at),
    );
    expect([checkout?.failed, pay?.failed, fine?.failed]).toEqual([4, 4, 0]);
    expect(fine?.ok).toBe(4);
    expect(checkout?.duration.min).toBeGreaterThan(69_000);
    expect(checkout?.active.min).toBeGreaterThan(19_000);
    expect((checkout?.duration.mean ?? 0) - (checkout?.active.mean ?? 0)).toBeGreaterThan(49_000);
    expect((checkout?.duration.mean ?? 0) - (checkout?.active.mean ?? 0)).toBeLessThan(51_000);
  });

  it("side by side use the step they are given; another is noted and counted in none", async () => {
    const fine = await InProcessRun.whole(
      flow("f", once, async ({ group }) => {
        await Promise.all([
          group("a", ({ step }) => step("fails", shop.get("/fail"))),
          group("b", ({ step }) => step("home", shop.get("/"))),
        ]);
      }),
    );
    expect([groupOf(fine, "a").failed, groupOf(fine, "b").failed]).toEqual([1, 0]);
    expect(fine.notes.join()).not.toContain("side by side");
    const unclear = await InProcessRun.whole(
      flow("f", once, async ({ group, step }) => {
        await Promise.all([
          group("a", async () => {
            await wait(1);
            await step("fails", shop.get("/fail"));
          }),
          group("b", async () => {
            await wait(1);
            await step("home", shop.get("/"));
          }),
        ]);
      }),
    );
    expect(unclear.notes.join()).toContain("side by side");
    expect(groupOf(unclear, "a").failed).toBe(0);
  });

  it("exclude only their own pauses from their active time", async () => {
    const run = await InProcessRun.whole(
      flow("f", once, async ({ group }) => {
        await Promise.all([
          group("calls", ({ step }) => step("slow", shop.get("/slow?ms=60"))),
          group("rests", ({ group: inner }) => inner("inside", ({ pause }) => pause(50))),
        ]);
      }),
    );
    const [calls, rests, inside] = ["calls", "rests", "rests/inside"].map((at) => groupOf(run, at));
    expect(calls?.active.min).toBe(calls?.duration.min);
    for (const one of [rests, inside]) {
      const pausedUs = (one?.duration.min ?? 0) - (one?.active.min ?? 0);
      expect(pausedUs).toBeGreaterThan(48_000);
      expect(pausedUs).toBeLessThan(50_010);
    }
  });

  it("end with their calls, including those nobody awaited", async () => {
    const body = async ({ group, step }: FlowContext): Promise<void> => {
      await group("g", async () => {
        void step("slow", shop.get("/slow?ms=40"));
      });
      await step("home", shop.get("/"));
    };
    const run = await InProcessRun.whole(flow("f", once, body));
    expect(groupOf(run, "g").duration.min).toBeGreaterThan(39_000);
  });
});

describe("poll", () => {
  it("counts every attempt as a call and the whole as a group, until the condition is met", async () => {
    let tries = 0;
    const failing = shop.post<{ token: string }>("/fail");
    const body = async ({ check, poll }: FlowContext): Promise<void> => {
      const login = shop.post<{ token: string }>("/login", { json: { user: "ada" } });
      const done = await poll("status", () => (tries++ < 2 ? failing : login), {
        until: (r) => r.json().token.length > 0,
        every: "5ms",
        within: "10s",
      });
      check("met", () => done?.status === 200);
    };
    const run = await InProcessRun.whole(flow("f", once, body));
    expect(run.step("f", "status").requests).toBe(3);
    expect(run.step("f", "status").ok).toBe(1);
    expect(groupOf(run, "status").failed).toBe(1);
    expect(run.workflow("f").data().checks).toEqual([{ name: "met", passed: 1, failed: 0 }]);
    expect(outcomes(run)).toEqual({ ...none, completed: 1 });
  });

  it("returns undefined when not met in time, or ends if required", async () => {
    const seen: unknown[] = [];
    const poll = async ({ poll }: FlowContext, required: boolean): Promise<void> => {
      const options = { until: () => false, every: "10ms", within: "35ms" } as const;
      seen.push(
        await poll("status", () => shop.get("/"), required ? { ...options, required } : options),
      );
    };
    const lenient = await InProcessRun.whole(flow("f", once, (ctx) => poll(ctx, false)));
    expect(seen).toEqual([undefined]);
    expect(outcomes(lenient)).toEqual({ ...none, completed: 1 });
    expect(groupOf(lenient, "status").failed).toBe(1);
    const strict = await InProcessRun.whole(flow("f", once, (ctx) => poll(ctx, true)));
    expect(seen).toEqual([undefined]);
    expect(outcomes(strict)).toEqual({ ...none, ended: 1 });
  });
});

describe("state and data", () => {
  it("pass rows, setup and state to the body; calls outside iterations are counted apart", async () => {
    const before = demo.stats().requests;
    const seen: string[] = [];
    const journey = flow(
      "f",
      {
        vus: 2,
        iterationsPerVu: 2,
        data: { who: feed.rows([{ name: "ada" }, { name: "bob" }]) },
        setup: async ({ step }) => ({ made: (await step("make", shop.get("/"))).status }),
        userSetup: async ({ data, setup, step, user }) => {
          await step("enter", shop.get("/"));
          return { id: user.id, first: data.who.name, made: setup.made, said: 0 };
        },
        teardown: async ({ setup, step }) => {
          await step("clean", shop.get(`/users/${setup.made}`, { expect: () => true }));
        },
      },
      async ({ data, state, step }) => {
        seen.push(`${state.id} ${state.made} ${state.said++} ${data.who.name}`);
        await step("home", shop.get("/"));
      },
    );
    const run = await InProcessRun.whole(journey);
    expect(seen.map((text) => text.slice(0, 7)).sort()).toEqual([
      "0 200 0",
      "0 200 1",
      "1 200 0",
      "1 200 1",
    ]);
    expect(demo.stats().requests - before).toBe(1 + 2 + 4 + 1);
    const { aside, steps } = run.summary().workflows[0] ?? {};
    expect(steps?.map(({ name, requests }) => [name, requests])).toEqual([["home", 4]]);
    expect(aside?.map(({ name, requests, tags }) => [name, requests, tags])).toEqual([
      ["make", 1, { phase: "setup" }],
      ["enter", 2, { phase: "userSetup" }],
      ["clean", 1, { phase: "teardown" }],
    ]);
  });

  it("chance and pick draw from the user's seeded stream", async () => {
    const draw = async (seed: string): Promise<string[]> => {
      const drawn: string[] = [];
      const body = async ({ chance, pick, step }: FlowContext): Promise<void> => {
        drawn.push(`${chance(0.5)} ${pick(["a", "b", "c"])}`);
        await step("x", () => 1);
      };
      await InProcessRun.whole(flow("f", { vus: 1, iterations: 20 }, body), {
        overrides: { seed },
      });
      return drawn;
    };
    const [first, again, other] = [await draw("1"), await draw("1"), await draw("2")];
    expect(again).toEqual(first);
    expect(other).not.toEqual(first);
  });

  it.each<[string, (context: FlowContext) => unknown]>([
    ["chance: 30 is no share from 0 to 1", ({ chance }) => chance(30)],
    ["pick: the list is empty", ({ pick }) => pick([])],
    ["pause: the second time is shorter", ({ pause }) => pause("30ms", "10ms")],
  ])("rejects invalid arguments of a draw: %s", async (message, draw) => {
    const body = async (context: FlowContext): Promise<void> => {
      await context.step("x", () => 1);
      await draw(context);
    };
    const run = await InProcessRun.whole(flow("f", { vus: 1, iterations: 1 }, body));
    expect(run.summary().reasons.join()).toContain(message);
  });
});

describe("at the end of the plan", () => {
  const slow = async ({ step }: FlowContext): Promise<void> => {
    await step("first", shop.get("/slow?ms=300"));
    await step("second", shop.get("/slow?ms=300"));
  };

  it("begins no new call; calls under way may finish, and finally runs", async () => {
    let finished = 0;
    const body = async (ctx: FlowContext): Promise<void> => {
      try {
        await slow(ctx);
      } finally {
        finished++;
      }
    };
    const run = await InProcessRun.whole(flow("f", { vus: 2, duration: "100ms" }, body));
    expect(run.step("f", "first").ok).toBe(2);
    expect(run.step("f", "second").requests).toBe(0);
    expect(outcomes(run)).toEqual({ ...none, interrupted: 2 });
    expect(finished).toBe(2);
  });

  it('completes bodies and their pauses with finish: "iteration"', async () => {
    const body = async ({ pause, step }: FlowContext): Promise<void> => {
      await step("first", shop.get("/slow?ms=150"));
      await pause("50ms");
      await step("second", shop.get("/"));
    };
    const options = { vus: 2, duration: "100ms", finish: "iteration" } as const;
    const run = await InProcessRun.whole(flow("f", options, body));
    expect(run.step("f", "second").ok).toBe(2);
    expect(outcomes(run)).toEqual({ ...none, completed: 2 });
    expect(groupOf(run, "").duration.min).toBeGreaterThan(199_000);
  });

  it("gives a user that is cut off during setup one outcome, without an iteration", async () => {
    const body = async ({ step }: FlowContext): Promise<void> => {
      await step("home", shop.get("/"));
    };
    const userSetup = async ({ step }: UserSetupContext): Promise<void> => {
      await step("slow", shop.get("/slow?ms=3000"));
    };
    const open = { rate: 20, maxVus: 5, duration: "200ms", gracefulStop: "100ms" } as const;
    const run = await InProcessRun.whole(flow("f", { ...open, userSetup }, body));
    expect(outcomes(run)).toEqual({ ...none, interrupted: 4 });
    expect(run.workflow("f").data().arrivals?.started).toBe(4);
    expect(groupOf(run, "").duration.count).toBe(0);
  });

  it("attributes a call that cannot begin to the body, and does not wait for it", async () => {
    const broken = { ...shop.get("/"), prepare: async () => undefined, protocol: "broken" };
    const bind = (): never => {
      throw new TypeError("cannot be bound");
    };
    const run = await InProcessRun.whole(
      flow("f", once, async ({ step }) => {
        await step("broken", { ...broken, bind } as never);
      }),
    );
    expect(outcomes(run)).toEqual({ ...none, failed: 1 });
    expect(run.logs.join()).toContain("cannot be bound");
  });

  it("rejects a call that is cut off once, counts it as unanswered, and its group in nothing", async () => {
    const caught: string[] = [];
    const body = async ({ group, step }: FlowContext): Promise<void> => {
      await group("g", async () => {
        try {
          await step("slow", shop.get("/slow?ms=3000"));
        } catch (error) {
          caught.push((error as Error).message);
          throw error;
        }
      });
    };
    const options = { vus: 2, duration: "100ms", gracefulStop: "100ms" } as const;
    const run = await InProcessRun.whole(flow("f", options, body));
    await wait(5);
    expect(caught).toHaveLength(2);
    expect(run.step("f", "slow").errors).toEqual({ unanswered: 2 });
    expect(outcomes(run)).toEqual({ ...none, interrupted: 2 });
    expect([groupOf(run, "g").ok, groupOf(run, "g").failed]).toEqual([0, 0]);
  });
});

describe("code of a step", () => {
  it("is a failure without a latency when it throws", async () => {
    const body = async ({ step }: FlowContext): Promise<void> => {
      await step("throws", () => {
        throw new Error("no");
      });
      await step("call", shop.get("/slow?ms=30"));
    };
    const run = await InProcessRun.whole(flow("f", { vus: 1, iterations: 3 }, body));
    const { errors, totals } = run.step("f", "throws");
    expect(errors).toEqual({ exception: 3 });
    expect([totals.latency.count, run.step("f", "call").totals.latency.count]).toEqual([0, 3]);
  });

  it("sent nothing when cut off, whatever its user sent before", async () => {
    const body = async ({ step }: FlowContext): Promise<void> => {
      await step("call", shop.get("/"));
      await step("hangs", () => new Promise(() => {}));
    };
    const options = { vus: 2, duration: "100ms", gracefulStop: "50ms" } as const;
    const run = await InProcessRun.whole(flow("f", options, body));
    expect([run.step("f", "call").totals.sent, run.step("f", "hangs").totals.sent]).toEqual([2, 0]);
  });

  it("may throw a value that cannot be printed", async () => {
    const body = async ({ step }: FlowContext): Promise<void> => {
      await step("call", shop.get("/"));
      throw {
        toString() {
          throw new Error("no text");
        },
      };
    };
    const run = await InProcessRun.whole(flow("f", { vus: 1, iterations: 2 }, body));
    expect(outcomes(run)).toEqual({ ...none, failed: 2 });
  });
});

describe("a loop that catches the end of its iteration", () => {
  it("lets the plan end, with what was sent", async () => {
    const before = demo.stats().requests;
    const body = async ({ group, pause, step }: FlowContext): Promise<void> => {
      for (const again of [
        () => step("call", shop.get("/")),
        () => group("g", ({ step }) => step("call", shop.get("/"))),
        () => pause(1),
      ])
        for (let tries = 0; tries < 2_000; tries++) await again().catch(() => undefined);
    };
    const options = { vus: 3, duration: "150ms", gracefulStop: "60s" } as const;
    const run = await InProcessRun.whole(flow("f", options, body));
    expect(outcomes(run)).toEqual({ ...none, interrupted: 3 });
    expect(run.step("f", "call").totals.sent).toBe(demo.stats().requests - before);
    expect(run.notes.join()).toContain('"call" was tried 100 times when its iteration was over');
  });

  it("is abandoned in the middle of a run, without touching later ones", async () => {
    let late: () => void = () => undefined;
    const body = async ({ step, user }: FlowContext): Promise<void> => {
      if (user.iteration > 0) {
        late();
        await step("good", shop.get("/"));
        return;
      }
      const loop = async (): Promise<void> => {
        for (;;) await step("bad", shop.get("/status/500"), { required: true }).catch(() => {});
      };
      // The end of this body must not be mistaken for that of the next iteration.
      await Promise.race([loop(), new Promise<void>((resolve) => (late = resolve))]);
    };
    const run = await InProcessRun.whole(flow("f", { vus: 1, iterations: 3 }, body));
    expect(outcomes(run)).toEqual({ ...none, completed: 2, ended: 1 });
    expect([run.step("f", "bad").failed, run.step("f", "good").ok]).toEqual([1, 2]);
  });
});
