/** Leaders among real agents: one at a time, replaced when killed, undisturbed by returning members. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentCluster, type AgentProcess, freshNet, until } from "../../../bench/swim/agents.ts";
import { PATIENCE_MS } from "../../patience.ts";

interface Election {
  readonly state: string;
  readonly term: number;
  readonly leader: string | null;
}

async function electionOf(agent: AgentProcess): Promise<Election> {
  const response = await agent.ask("/v1/status");
  return ((await response.json()) as { election: Election }).election;
}

describe("three managers that vote", () => {
  const voters = ["--role", "manager", "--voters", "n1,n2,n3"];
  const cluster = new AgentCluster({ net: freshNet(), size: 3, profile: "dc", args: voters });
  beforeAll(() => cluster.startAll());
  afterAll(() => cluster.stop());

  /** The one that leads, once all running voters name the same. */
  async function agreedLeader(): Promise<{ leader: AgentProcess; term: number }> {
    let found: { leader: AgentProcess; term: number } | null = null;
    await until(
      async () => {
        const running = cluster.agents.filter((agent) => agent.running);
        const views = await Promise.all(running.map(electionOf));
        const [first] = views;
        const leader = running.find(({ name }) => name === first?.leader);
        const same = views.every(
          ({ leader: at, term }) => at === first?.leader && term === first.term,
        );
        if (!same || leader === undefined || first === undefined) return false;
        found = { leader, term: first.term };
        return views.filter(({ state }) => state === "leader").length === 1;
      },
      PATIENCE_MS,
      "the voters agree on a leader",
    );
    return found as unknown as { leader: AgentProcess; term: number };
  }

  it("replace a killed leader in a higher term, and its return changes nothing", async () => {
    const before = await agreedLeader();
    before.leader.kill("SIGKILL");
    await before.leader.ended;
    const after = await agreedLeader();
    expect(after.leader.name).not.toBe(before.leader.name);
    expect(after.term).toBeGreaterThan(before.term);

    cluster.start(Number(before.leader.name.slice(1)));
    await cluster.converged();
    const later = await agreedLeader();
    expect(later.leader.name).toBe(after.leader.name);
    expect(later.term).toBe(after.term);
    const members = await later.leader.members();
    expect(members.filter(({ leader }) => leader).map(({ name }) => name)).toEqual([
      after.leader.name,
    ]);
    const change = after.leader.events.find(({ event }) => event === "leader-change");
    expect(change).toMatchObject({ group: "manager@dc1" });
  });

  // AD-3, QUOR-10
  it("have no leader when two of three are dead: a minority never leads", async () => {
    const { leader, term } = await agreedLeader();
    const others = cluster.agents.filter((agent) => agent !== leader);
    for (const other of others) other.kill("SIGKILL");
    await Promise.all(others.map(({ ended }) => ended));
    await until(
      async () => (await electionOf(leader)).state !== "leader",
      PATIENCE_MS,
      "it steps down",
    );
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const alone = await electionOf(leader);
    expect(alone.leader).toBeNull();
    expect(alone.term).toBe(term);
  });
});
