import { describe, expect, it } from "vitest";
import { World } from "./testing/world.ts";

describe("a manually drained worker", () => {
  it("finishes its work and gets no more", () => {
    const world = new World({ workers: 2, cores: 1, loadMs: 3_000 });
    const job = world.submit();
    world.run(500);
    expect(world.ask({ kind: "drain", node: "w1" })).toEqual({ kind: "controlled" });
    world.run(1_000);
    expect(world.ask({ kind: "nodes" })).toMatchObject({
      nodes: [
        {},
        { name: "w0", status: "alive" },
        { name: "w1", status: "draining", coresUsed: 1 },
      ],
    });
    expect(world.end(job)).toMatchObject({ status: "COMPLETED", summary: { lost: [] } });
    const next = world.submit({ timeoutMs: 60_000 }, "next");
    expect(world.end(next).status).toBe("COMPLETED");
    expect(world.worker(1).opened).toHaveLength(1);
    expect(world.worker(0).opened).toHaveLength(2);
  });

  it("must exist, and a manager without peers continues", () => {
    const world = new World();
    expect(world.ask({ kind: "drain", node: "w7" })).toMatchObject({
      ...{ reason: "invalid", message: "there is no node w7" },
    });
    expect(world.ask({ kind: "drain", node: "n0" })).toMatchObject({
      ...{ reason: "invalid", message: "nobody could take over: n0 reaches no other manager" },
    });
  });
});

describe("a removed worker", () => {
  it("is no longer listed, and cannot be removed while it is alive", () => {
    const world = new World({ workers: 2 });
    const names = (): unknown => {
      const answer = world.ask({ kind: "nodes" });
      return answer.kind === "nodes" ? answer.nodes.map(({ name }) => name) : answer;
    };
    world.run(1_000);
    expect(world.ask({ kind: "removeNode", node: "w1" })).toMatchObject({ reason: "invalid" });
    world.worker(1).alive = false;
    world.run(5_000);
    expect(world.ask({ kind: "removeNode", node: "w1" })).toEqual({ kind: "controlled" });
    expect(names()).toEqual(["n0", "w0"]);
    world.worker(1).restart();
    world.run(1_000);
    expect(names()).toEqual(["n0", "w0", "w1"]);
  });
});

describe("the node list of a manager", () => {
  it("shows a full disk of its own or of a peer until there is space again", () => {
    const world = new World({ managers: 2 });
    const problems = (): unknown => {
      const answer = world.ask({ kind: "nodes" });
      if (answer.kind !== "nodes") throw new Error(JSON.stringify(answer));
      return answer.nodes.flatMap((one) => (one.role === "manager" ? [one.diskProblem] : []));
    };
    expect(problems()).toEqual(["", ""]);
    world.diskProblem(0, "n0", "no space");
    world.diskProblem(0, "n1", "no room");
    expect(problems()).toEqual(["no space", "no room"]);
    world.diskProblem(0, "n0", "");
    expect(problems()).toEqual(["", "no room"]);
  });

  it("shows the user that job code runs as on each worker", () => {
    const world = new World({ workers: 3 });
    const rights = [
      { jobCodeRights: "executorUser", executorUser: "nobody" },
      { jobCodeRights: "worker" },
    ] as const;
    for (const [at, worker] of world.workers.entries()) worker.rights = rights[at] ?? {};
    world.run(1_000);
    const answer = world.ask({ kind: "nodes" });
    const nodes = answer.kind === "nodes" ? answer.nodes : [];
    const shown = nodes.flatMap(({ executorUser, jobCodeRights, role }) =>
      role === "worker" ? [[jobCodeRights, executorUser]] : [],
    );
    expect(shown).toEqual([
      ["executorUser", "nobody"],
      ["worker", ""],
      ["", ""],
    ]);
  });
});
