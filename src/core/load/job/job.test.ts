import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ExecutionOutcome, Job, type JobEffect } from "./job.ts";
import type { WorkflowManifest } from "./manifest.ts";
import { PRIORITIES } from "./partition.ts";
import { slotsOf } from "./slots.ts";
import { manifest } from "./testing/manifest.ts";

const users = (n: number) => ({
  load: { kind: "vus", stages: [{ durationMs: 1_000, from: n, to: n }] } as const,
});
const cores = (n: number) => Array.from({ length: n }, (_, core) => core);

/** One readable line per effect. */
function tell(effects: readonly JobEffect[]): string[] {
  return effects.map(line);
}

function line(effect: JobEffect): string {
  switch (effect.kind) {
    case "dispatch":
      return `dispatch ${effect.workflow} on ${effect.cores.join(",")} users ${effect.users.join(",")}`;
    case "stopWorkflow":
      return `stop ${effect.workflow} on ${effect.cores.join(",")}`;
    case "finishWorkflow":
      return `${effect.workflow} ${effect.status}${effect.error === null ? "" : `: ${effect.error}`}`;
    case "skip":
      return `skip ${effect.workflow} because of ${effect.becauseOf}`;
    case "jobDone":
      return `done ${effect.status}`;
  }
}

class Script {
  readonly #job: Job;
  now = 0;
  constructor(manifests: readonly WorkflowManifest[], slots: number, pool = slots) {
    this.#job = new Job(manifests, cores(slots), pool);
  }
  get job(): Job {
    return this.#job;
  }
  start = () => tell(this.#job.step({ kind: "start" }, this.now++));
  at(now: number, kind: "tick" | "pause" | "resume"): string[] {
    return tell(this.#job.step({ kind }, now));
  }
  stop = () => tell(this.#job.step({ kind: "stop" }, this.now++));
  lose = (core: number) => tell(this.#job.step({ kind: "coreLost", core }, this.now++));
  finish(workflow: string, core: number, contextUpdates: Record<string, unknown> = {}): string[] {
    return this.#report(workflow, core, { ok: true, contextUpdates });
  }
  fail(workflow: string, core: number, error: string): string[] {
    return this.#report(workflow, core, { ok: false, error });
  }
  #report(workflow: string, core: number, outcome: ExecutionOutcome): string[] {
    return tell(this.#job.step({ kind: "executionFinished", workflow, core, outcome }, this.now++));
  }
}

describe("layers", () => {
  // LAYER-2, C30-6
  it("run one after the other, and a workflow is complete when all its cores are", () => {
    const s = new Script([manifest("b", { dependsOn: ["a"] }), manifest("a", users(5))], 2);
    expect(s.start()).toEqual(["dispatch a on 0,1 users 2,3"]);
    expect(s.finish("a", 0)).toEqual([]);
    expect(s.finish("a", 1)).toEqual(["a completed", "dispatch b on 0,1 users 2,2"]);
    expect(s.finish("b", 1)).toEqual([]);
    expect(s.finish("b", 0)).toEqual(["b completed", "done completed"]);
  });

  // CTX-1, CTX-2
  it("pass on the context both sides named, independent of which core reported last", () => {
    const list = [
      manifest("auth", {
        ...users(2),
        provides: [
          { key: "token", to: ["load"] },
          { key: "other", to: [] },
        ],
      }),
      manifest("load", {
        dependsOn: ["auth"],
        uses: [{ name: "s", from: ["auth"], keys: ["token"] }],
      }),
    ];
    for (const order of [
      [0, 1],
      [1, 0],
    ]) {
      const job = new Job(list, cores(2));
      job.step({ kind: "start" }, 0);
      const effects = order.flatMap((core) => {
        const outcome = { ok: true, contextUpdates: { token: `t${core}`, other: 1 } } as const;
        return job.step({ kind: "executionFinished", workflow: "auth", core, outcome }, 1);
      });
      expect(effects.find(({ kind }) => kind === "dispatch")).toMatchObject({
        workflow: "load",
        context: { auth: { token: "t1" } },
      });
    }
  });

  it("skip only the descendants of a failed workflow (LAYER-7, RES-5)", () => {
    const s = new Script(
      [
        manifest("auth", { isTest: false }),
        manifest("ping", { isTest: false }),
        manifest("load", { dependsOn: ["auth"] }),
        manifest("report", { dependsOn: ["load"], isTest: false }),
        manifest("probe", { dependsOn: ["ping"], isTest: false }),
      ],
      2,
    );
    expect(s.start()).toEqual(["dispatch auth on 0 users 1", "dispatch ping on 1 users 1"]);
    expect(s.fail("auth", 0, "no token")).toEqual([
      "auth failed: no token",
      "skip load because of auth",
      "skip report because of auth",
    ]);
    expect(s.finish("ping", 1)).toEqual(["ping completed", "dispatch probe on 0 users 1"]);
    expect(s.finish("probe", 0)).toEqual(["probe completed", "done partial"]);
  });

  it("end the job as failed when nothing completed", () => {
    const s = new Script([manifest("a"), manifest("b", { dependsOn: ["a"] })], 1);
    s.start();
    expect(s.fail("a", 0, "boom")).toEqual([
      "a failed: boom",
      "skip b because of a",
      "done failed",
    ]);
  });
});

describe("cores", () => {
  // C30-22
  it("go to workflows that measure nothing first; a test takes fewer, but not below its minimum", () => {
    const s = new Script(
      [
        manifest("big", { ...users(1_000), priority: "high" }),
        manifest("small", { ...users(1_000), priority: "low" }),
        manifest("setup", { isTest: false }),
      ],
      24,
    );
    expect(s.start().map((text) => text.replace(/ users.*/, ""))).toEqual([
      "dispatch setup on 0",
      "dispatch big on 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18",
      "dispatch small on 19,20,21,22,23",
    ]);
  });

  it("are not reduced below the minimum: the test waits for the setup to end", () => {
    const s = new Script([manifest("load"), manifest("setup", { isTest: false })], 1);
    expect(s.start()).toEqual(["dispatch setup on 0 users 1"]);
    expect(s.finish("setup", 0)).toEqual(["setup completed", "dispatch load on 0 users 4"]);
  });

  it("serve one batch after the other", () => {
    const high = { ...users(8), priority: "high" } as const;
    const s = new Script([manifest("a", high), manifest("b", high)], 4);
    expect(s.start()).toEqual(["dispatch a on 0,1,2,3 users 2,2,2,2"]);
    for (const core of [0, 1, 2]) expect(s.finish("a", core)).toEqual([]);
    expect(s.finish("a", 3)).toEqual(["a completed", "dispatch b on 0,1,2,3 users 2,2,2,2"]);
  });

  it("are all free before an exclusive workflow begins", () => {
    const s = new Script(
      [manifest("setup", { isTest: false }), manifest("x", { priority: "exclusive" })],
      2,
    );
    expect(s.start()).toEqual(["dispatch setup on 0 users 1"]);
    expect(s.finish("setup", 0)).toEqual(["setup completed", "dispatch x on 0,1 users 2,2"]);
  });

  it("are no more than there are users (PROV-4)", () => {
    const s = new Script([manifest("a", users(2))], 8);
    expect(s.start()).toEqual(["dispatch a on 0,1 users 1,1"]);
  });
});

describe("slots beyond the cores of the machine", () => {
  const three = ["a", "b", "c"].map((name) => manifest(name, users(4)));

  it("are as many as the widest layer needs, and no more than there are users", () => {
    expect(slotsOf(three, 2)).toBe(3);
    expect(slotsOf(three, 8)).toBe(8);
    expect(slotsOf([manifest("a", users(2)), manifest("setup", { isTest: false })], 8)).toBe(3);
    const alone = manifest("x", { ...users(8), priority: "exclusive" });
    expect(slotsOf([...three, alone], 4)).toBe(4);
    const chained = [manifest("a"), manifest("b", { dependsOn: ["a"] })];
    expect(slotsOf(chained, 1)).toBe(1);
  });

  it("let all workflows of a layer run at the same time on one core", () => {
    const s = new Script(three, 3, 1);
    expect(s.start()).toEqual([
      "dispatch a on 0 users 4",
      "dispatch b on 1 users 4",
      "dispatch c on 2 users 4",
    ]);
  });

  it("still leave an exclusive workflow alone, with the cores of the machine", () => {
    const alone = manifest("x", { ...users(8), priority: "exclusive" });
    const s = new Script([...three, alone], 3, 2);
    expect(s.start()).toEqual(["dispatch x on 0,1 users 4,4"]);
    expect(s.finish("x", 0)).toEqual([]);
    expect(s.finish("x", 1)).toEqual([
      "x completed",
      "dispatch a on 0 users 4",
      "dispatch b on 1 users 4",
      "dispatch c on 2 users 4",
    ]);
  });
});

describe("a delay", () => {
  const late = (startAfterMs: number) => ({ ...users(2), startAfterMs });

  it("counts from the beginning of the layer, and delays no other workflow", () => {
    const list = [manifest("a", late(500)), manifest("b", users(2)), manifest("c", late(900))];
    const s = new Script([...list, manifest("d", { dependsOn: ["b"], ...late(100) })], 3, 1);
    expect(s.start()).toEqual(["dispatch b on 0 users 2"]);
    expect(s.job.nextDeadline()).toBe(500);
    expect(s.at(499, "tick")).toEqual([]);
    expect(s.at(500, "tick")).toEqual(["dispatch a on 1 users 2"]);
    expect(s.job.nextDeadline()).toBe(900);
    s.now = 600;
    expect([...s.finish("a", 1), ...s.finish("b", 0)]).toEqual(["a completed", "b completed"]);
    expect(s.at(900, "tick")).toEqual(["dispatch c on 0 users 2"]);
    s.now = 1_000;
    expect(s.finish("c", 0)).toEqual(["c completed"]);
    expect(s.job.nextDeadline()).toBe(1_100);
    expect(s.at(1_100, "tick")).toEqual(["dispatch d on 0 users 2"]);
    expect(s.job.nextDeadline()).toBeNull();
  });

  it("stands still while the job is paused, and nothing begins then", () => {
    const list = [manifest("a", users(1)), manifest("b", late(500))];
    const s = new Script([...list, manifest("c", { ...users(1), dependsOn: ["b"] })], 2, 1);
    s.start();
    s.at(100, "pause");
    expect(s.job.nextDeadline()).toBeNull();
    expect(s.at(700, "tick")).toEqual([]);
    expect(s.at(1_000, "resume")).toEqual([]);
    expect(s.job.nextDeadline()).toBe(1_400);
    s.at(1_400, "tick");
    s.at(1_500, "pause");
    s.now = 1_600;
    expect([...s.finish("a", 0), ...s.finish("b", 1)]).toEqual(["a completed", "b completed"]);
    expect(s.at(1_700, "resume")).toEqual(["dispatch c on 0 users 1"]);
  });

  it("ends with the job", () => {
    const s = new Script([manifest("a", late(500))], 1);
    expect(s.start()).toEqual([]);
    expect(s.stop()).toEqual(["skip a because of null", "done interrupted"]);
    expect(s.job.nextDeadline()).toBeNull();
  });

  it("runs with fewer cores when one is lost meanwhile", () => {
    const s = new Script([manifest("a", users(1)), manifest("b", late(500))], 3, 3);
    s.start();
    s.lose(2);
    expect(s.at(500, "tick")).toEqual(["dispatch b on 1 users 2"]);
  });
});

describe("a lost core", () => {
  it("leaves the workflow to the others", () => {
    const s = new Script([manifest("a"), manifest("b", { dependsOn: ["a"] })], 3);
    s.start();
    expect(s.lose(1)).toEqual([]);
    expect(s.finish("a", 0)).toEqual([]);
    expect(s.finish("a", 2)).toEqual(["a completed", "dispatch b on 0,2 users 2,2"]);
    expect(s.job.snapshot()[0]).toMatchObject({ status: "completed", lostCores: [1] });
  });

  it("fails the workflow when it was the last that could report", () => {
    const s = new Script([manifest("a")], 2);
    s.start();
    expect(s.lose(0)).toEqual([]);
    expect(s.lose(1)).toEqual([
      "a failed: all executor cores that ran it (0, 1) were lost",
      "done failed",
    ]);
  });

  it("keeps the result of the others when it is lost after they reported", () => {
    const s = new Script([manifest("a")], 2);
    s.start();
    s.finish("a", 0);
    expect(s.lose(1)).toEqual(["a completed", "done completed"]);
  });

  it("fails waiting workflows when it was the last of the pool", () => {
    const s = new Script(
      [
        manifest("a", { priority: "high" }),
        manifest("b", { priority: "high" }),
        manifest("c", { dependsOn: ["b"] }),
      ],
      1,
    );
    s.start();
    expect(s.lose(0)).toEqual([
      "a failed: executor core 0, which ran it, was lost",
      "b failed: no executor core is left to run it",
      "skip c because of b",
      "done failed",
    ]);
  });

  it("only shrinks the pool when it was unused, and a second notice changes nothing", () => {
    const s = new Script([manifest("a", users(1)), manifest("b", { dependsOn: ["a"] })], 2);
    s.start();
    expect(s.lose(1)).toEqual([]);
    expect(s.lose(1)).toEqual([]);
    expect(s.finish("a", 0)).toEqual(["a completed", "dispatch b on 0 users 4"]);
  });
});

describe("stop", () => {
  it("ends what runs, skips what waits and reports the job interrupted", () => {
    const s = new Script([manifest("a"), manifest("b", { dependsOn: ["a"] })], 2);
    s.start();
    s.finish("a", 0);
    expect(s.stop()).toEqual(["stop a on 1", "skip b because of null"]);
    expect(s.stop()).toEqual([]);
    expect(s.finish("a", 1)).toEqual(["a interrupted", "done interrupted"]);
    expect(s.finish("a", 1)).toEqual([]);
  });

  it("leaves nothing to do before the start", () => {
    const s = new Script([manifest("a")], 1);
    expect(s.stop()).toEqual(["skip a because of null", "done interrupted"]);
    expect(s.start()).toEqual([]);
  });
});

describe("any sequence of events", () => {
  const job = fc.array(
    fc.record({
      priority: fc.constantFrom(...PRIORITIES),
      isTest: fc.boolean(),
      vus: fc.integer({ min: 1, max: 20 }),
      startAfterMs: fc.constantFrom(0, 0, 3, 7),
      edges: fc.array(fc.nat(20), { maxLength: 3 }),
    }),
    { minLength: 1, maxLength: 8 },
  );
  it("uses a core for one thing at a time and finalises every workflow once", () => {
    fc.assert(
      fc.property(
        job,
        fc.integer({ min: 1, max: 8 }),
        fc.infiniteStream(fc.nat()),
        (list, pool, dice) => {
          const roll = () => dice.next().value ?? 0;
          const manifests = list.map(({ priority, isTest, vus, startAfterMs, edges }, at) => {
            const dependsOn = at === 0 ? [] : [...new Set(edges.map((edge) => `w${edge % at}`))];
            const options = { priority, isTest, dependsOn, startAfterMs };
            return manifest(`w${at}`, { ...users(vus), ...options });
          });
          const slots = roll() % 2 === 0 ? pool : slotsOf(manifests, pool);
          const machine = new Job(manifests, cores(slots), pool);
          const busy = new Map<number, string>();
          const final = new Map<string, string>();
          let done = 0;
          const take = (effects: readonly JobEffect[]): void => {
            for (const effect of effects) {
              expect(done).toBe(0);
              if (effect.kind === "dispatch") {
                const { dependsOn } = manifests.find(({ name }) => name === effect.workflow) ?? {
                  dependsOn: [],
                };
                for (const name of dependsOn) expect(final.get(name)).toBe("completed");
                for (const core of effect.cores) {
                  expect(busy.has(core)).toBe(false);
                  busy.set(core, effect.workflow);
                }
                expect(effect.users.length).toBe(effect.cores.length);
              } else if (effect.kind === "jobDone") {
                done++;
              } else if (effect.kind !== "stopWorkflow") {
                expect(final.has(effect.workflow)).toBe(false);
                final.set(effect.workflow, effect.kind === "skip" ? "skipped" : effect.status);
              }
            }
          };
          take(machine.step({ kind: "start" }, 0));
          for (let turn = 1; turn < 200 && done === 0; turn++) {
            const running = [...busy.entries()];
            const [core, workflow] = running[roll() % running.length] ?? [0, ""];
            const event = roll() % 20;
            if (event === 3) take(machine.step({ kind: "pause" }, turn));
            if (event >= 4 && event < 10) take(machine.step({ kind: "resume" }, turn));
            if (event === 0) take(machine.step({ kind: "stop" }, turn));
            if (event === 1) {
              busy.delete(core);
              take(machine.step({ kind: "coreLost", core }, turn));
            } else {
              busy.delete(core);
              const outcome: ExecutionOutcome =
                event === 2 ? { ok: false, error: "boom" } : { ok: true, contextUpdates: {} };
              take(machine.step({ kind: "executionFinished", workflow, core, outcome }, turn));
            }
          }
          expect(done).toBe(1);
          expect(final.size).toBe(manifests.length);
        },
      ),
    );
  });
});
