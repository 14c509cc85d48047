/**
 * The ledger embedded in another process, on real files: the embedding program learns in the same turn what it leads
 * and what is committed, and finds its jobs again after a restart.
 */

import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LedgerCluster, until } from "../../../bench/ledger/processes.ts";
import { AuditLog } from "../../../src/audit/audit-log.ts";
import { AUDIT_DEFAULTS } from "../../../src/audit/bounds.ts";
import type { GroupId } from "../../../src/core/ledger/group/messages.ts";
import type { JobId } from "../../../src/core/ledger/job/job-id.ts";
import type { LedgerAnswer, LedgerRequest } from "../../../src/core/ledger/node/messages.ts";
import { decodeTally, encodeAmount, TALLY } from "../../../src/core/ledger/node/testing/tally.ts";
import type { WatchItem } from "../../../src/core/ledger/node/watch.ts";
import { Background } from "../../../src/host/background.ts";
import { nodeClock } from "../../../src/host/node-clock.ts";
import { silentLog } from "../../../src/host/ports/log.ts";
import { readLedgerConfig } from "../../../src/ledger/config.ts";
import { LedgerHost } from "../../../src/ledger/host.ts";
import { PATIENCE_MS } from "../../patience.ts";

const ME = { kind: "self", name: "test" } as const;
const SINCE_START = { after: [], since: "start" } as const;

let files: LedgerCluster;
let host: LedgerHost;
let background: Background;

async function start(): Promise<void> {
  const read = readLedgerConfig(files.configFile("n1"));
  if (!read.ok) throw new Error(read.problems.join("; "));
  const { config } = read;
  const [clock, log] = [nodeClock, silentLog];
  background = new Background(() => undefined);
  const audit = { node: config.name, clock, log, background, ...AUDIT_DEFAULTS };
  host = await LedgerHost.start(config, {
    ...{ clock, log, background, version: "test", kinds: [TALLY] },
    openAudit: () => AuditLog.open(join(config.dataDir, "audit"), audit),
    onEvent: () => undefined,
    onFatal: (reason) => {
      throw new Error(reason);
    },
  });
}

async function stop(): Promise<void> {
  await host.stop(ME);
  await background.stop(PATIENCE_MS);
}

function ask(request: LedgerRequest): Promise<LedgerAnswer> {
  return new Promise((resolve) => host.request(request, ME, resolve));
}

async function submit(): Promise<string> {
  const answer = await ask({
    kind: "submit",
    key: "",
    spec: Uint8Array.of(1),
    assignedDcs: ["dc1"],
  });
  if (answer.kind !== "committed") throw new Error(answer.kind);
  return answer.jobId;
}

beforeEach(async () => {
  files = await LedgerCluster.prepare({ nodes: 1, leaseMs: 1_000 });
  await start();
});

afterEach(async () => {
  await stop();
  await files.stop();
});

describe("a ledger inside another process", () => {
  it("reports what it leads and what is committed in the turn it happens", async () => {
    const events: string[] = [];
    host.onLeads((group, view, leads) =>
      events.push(`${leads ? "leads" : "lost"} ${group} ${view}`),
    );
    const all = { scope: { kind: "jobs", prefix: "" }, ...SINCE_START } as const;
    const watching = host.watch(all, 16, (items) => {
      for (const item of items) events.push(item.kind === "event" ? item.event.kind : item.kind);
      watching.makeRoom(items.length);
    });
    const jobId = await submit();
    expect(events.filter((text) => !text.includes("shard/"))).toEqual([
      `leads ${jobId} 1`,
      "JobCreated",
    ]);
    watching.end();
    const count = events.length;
    await submit();
    expect(events.slice(count).some((text) => text === "JobCreated")).toBe(false);
  });

  it("finds its jobs again after a restart, and leads them with a higher fence", async () => {
    const jobId = await submit();
    await stop();
    await start();
    await until("it leads the job", PATIENCE_MS, () => (host.node?.status().leading ?? 0) > 64);
    const page = host.node?.list({
      ...{ statuses: ["CREATED"], owner: "n1", prefix: "", after: "", limit: 10 },
    });
    expect(page?.jobs).toMatchObject([{ jobId, status: "CREATED", owner: "n1" }]);
    expect(page?.jobs[0]?.view).toBeGreaterThan(1);
    const items: WatchItem[] = [];
    const scope = { kind: "job", jobId: jobId as JobId } as const;
    host.watch({ scope, ...SINCE_START }, 16, (more) => items.push(...more));
    await until("its history was told", PATIENCE_MS, () => items.length > 0);
    expect(items).toMatchObject([{ kind: "event", event: { kind: "JobCreated" } }]);
  });

  it("keeps groups of a kind that was brought along, over a restart too", async () => {
    const group = "tally/hits" as GroupId;
    const add = (amount: number, eventId: string): Promise<LedgerAnswer> => {
      const data = encodeAmount(amount);
      return ask({ kind: "propose", group, eventId, data, members: [host.config.name] });
    };
    expect(await add(3, "a")).toMatchObject({ kind: "committed", outcome: "added" });
    await add(4, "b");
    await stop();
    await start();
    await until(
      "it leads the group",
      PATIENCE_MS,
      async () => (await add(4, "b")).kind === "committed",
    );
    const state = await ask({ kind: "inspect", group });
    if (state.kind !== "state") throw new Error(state.kind);
    expect(decodeTally(state.bytes)).toMatchObject({ count: 2, sum: 7 });
  });
});
