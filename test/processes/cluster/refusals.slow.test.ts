/** Messages of an agent that is alone for a reason, started wrongly, or asked for something it does not support. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentCluster, AgentProcess, freshNet, until } from "../../../bench/swim/agents.ts";
import { address } from "../../../src/core/base/ids.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { Asker } from "./asker.ts";
import { ringOf } from "./stranger.ts";

const NET = freshNet();
const SECRET = "Zk3-u7Qp9_xW2vLr8Tn5";

describe("an agent", () => {
  const cluster = new AgentCluster({ net: NET, size: 0, profile: "dc" });
  afterAll(() => cluster.stop());
  const secretFile = (name: string, secret: string): string => {
    const file = join(cluster.directory, name);
    writeFileSync(file, `${secret}\n`, { mode: 0o600 });
    return file;
  };
  const start = (place: number, name: string, args: readonly string[]): AgentProcess => {
    const agent = new AgentProcess(name, cluster.host(place), [
      ...["--profile", "dc", "--log-level", "warn", "--join", `${cluster.host(1)}:7946`],
      ...["--data-dir", join(cluster.directory, name), ...args],
    ]);
    cluster.agents.push(agent);
    return agent;
  };
  let first: AgentProcess;
  beforeAll(async () => {
    first = start(1, "n1", ["--secret-file", secretFile("key", SECRET), "--role", "gate"]);
    await until(() => first.events.length > 0, PATIENCE_MS, "the first is up");
  });

  it("with a wrong secret reports why it is alone", async () => {
    const wrong = secretFile("wrong", "quite-Another-secret-0815");
    const alone = start(2, "n2", ["--secret-file", wrong]);
    const reason = `${cluster.host(1)}:7946: closed without an answer to our greeting`;
    await until(() => alone.stderr.includes(reason), PATIENCE_MS, "it says why");
    expect(alone.stderr).toContain("JOIN_FAILED");
    expect(alone.stderr).toContain("another secret, cluster or environment");
  });

  it("answers a message that it does not serve with UNSUPPORTED, and counts it", async () => {
    const asker = await Asker.open({
      host: cluster.host(9),
      role: "gate",
      ring: ringOf(SECRET),
      hello: { cluster: "hyperscale", environment: "default" },
    });
    const to = address(`${cluster.host(1)}:7946`);
    const request = { name: "ledgerBatch", correlation: 0, value: new Uint8Array(10) } as const;
    const result = await asker.ask(to, request, PATIENCE_MS);
    expect(result).toMatchObject({ ok: true, reply: { value: { code: "UNSUPPORTED" } } });
    expect(await first.metric("messages_unsupported_total")).toBe(1);
    await asker.close();
  });

  it("asked to join a member's name or an invalid address reports it, and tries nothing", async () => {
    const join = async (text: string): Promise<string> => {
      const body = JSON.stringify({ addresses: [`${cluster.host(1)}:7946`, text] });
      const response = await first.ask("/v1/join", { method: "POST", body });
      return `${response.status} ${await response.text()}`;
    };
    const here = `${cluster.host(1)}:7946`;
    expect(await join("n1")).toMatch(`400 {"error":"\\"n1\\" is the name of a member`);
    expect(await join("n1")).toContain(`its address is ${here}`);
    expect(await join("10.0.0.1:99999")).toMatch("400");
    expect(await join(here)).toContain(`200 {"trying":["${here}","${here}"]}`);
  });

  it("does not start from an unreadable vote file, and explains what to do", async () => {
    const directory = join(cluster.directory, "n3");
    mkdirSync(directory);
    writeFileSync(join(directory, "vote.bin"), Buffer.alloc(1_024, 1));
    const key = join(cluster.directory, "key");
    const voter = start(3, "n3", [
      "--secret-file",
      key,
      "--voters",
      "n3,n4,n5",
      "--role",
      "manager",
    ]);
    await voter.ended;
    expect(voter.exitCode).not.toBe(0);
    expect(voter.stderr).toContain("vote.bin holds the term and vote of this member");
    expect(voter.stderr).toContain("start the member under a new name");
    expect(voter.stderr).not.toContain("    at ");
  });

  it("reports that two halves of its group count different voters", async () => {
    const flags = ["--secret-file", join(cluster.directory, "key"), "--role", "manager"];
    const one = start(4, "p1", [...flags, "--voters", "p1"]);
    const other = start(5, "p2", [...flags, "--voters", "p2"]);
    for (const agent of [one, other]) {
      await until(
        () =>
          agent.events.some(
            ({ event, code }) => event === "alarm" && code === "ELECTORATE_MISMATCH",
          ),
        PATIENCE_MS,
        "an alarm is an event",
      );
      await until(
        () => agent.stderr.includes("make --voters agree on all members of the group"),
        PATIENCE_MS,
        "and a line for people",
      );
    }
  });
});
