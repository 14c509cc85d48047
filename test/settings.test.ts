/** The table of settings against its page, the specification, and what machines do by themselves. */

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { GATE_DEFAULTS } from "../src/core/cluster/gate/types.ts";
import { MANAGER_DEFAULTS } from "../src/core/cluster/manager/types.ts";
import { ISOLATION_MS } from "../src/core/cluster/worker/types.ts";
import { readSettings, SETTINGS } from "../src/ledger/settings.ts";
import { gateConfig } from "../src/nodes/gate/gate-host.ts";
import { managerConfig } from "../src/nodes/manager/manager-host.ts";
import { settingsPage } from "../tools/settings-page.ts";

/** Settings named by the protocol's specification (20, section 17), and their counterparts here. */
const OF_THE_DESIGN: Readonly<Record<string, string>> = {
  MERCURY_SYNC_AUTH_SECRET:
    "`secretFile` of the configuration, its first line; `HYPERSCALE_SECRET` of an agent",
  MERCURY_SYNC_AUTH_SECRET_PREVIOUS:
    "further lines of `secretFile`; `HYPERSCALE_SECRET_PREVIOUS` of an agent",
  MERCURY_SYNC_TLS_VERIFY_HOSTNAME:
    "`tls.verifyHostname` of a ledger node, `--no-tls-verify-hostname` of an agent",
  MERCURY_SYNC_CLEANUP_INTERVAL:
    "no loop: what is over is dropped when it is over, by the deadlines of each machine",
  MERCURY_SYNC_TASK_RUNNER_MAX_THREADS:
    "no threads: one loop per node, an own process per executor core",
  PENDING_RESPONSE_MAX_CONCURRENT:
    "a bound of each connection: `REQUESTS_PER_CALLER_MAX` in `core/cluster/node/askers.ts`",
  PENDING_RESPONSE_HIGH_LIMIT: "as above",
  PENDING_RESPONSE_NORMAL_LIMIT: "as above",
  PENDING_RESPONSE_LOW_LIMIT: "as above",
  PENDING_RESPONSE_WARN_THRESHOLD: "as above",
  OUTGOING_QUEUE_SIZE:
    "a bound of each link in bytes: `QUEUE_LIMITS` in `core/cluster/link/limits.ts`",
  OUTGOING_OVERFLOW_SIZE: "as above",
  OUTGOING_MAX_DESTINATIONS: "`CONNECTIONS_MAX` in `wire/limits.ts`",
  MANAGER_DEAD_WORKER_REAP_INTERVAL: "`deadWorkerReap`",
  MANAGER_DEAD_PEER_REAP_INTERVAL: "managers stand in the configuration; none is forgotten",
  MANAGER_DEAD_GATE_REAP_INTERVAL:
    "gates call managers; a connection that ends is forgotten at once",
  WORKER_CANCELLATION_POLL_INTERVAL: "cancels are pushed, and asked after by `orderRetry`",
  SWIM_SUSPICION_TIMEOUT:
    "`--profile` of an agent; managers take a worker for lost by `workerTimeout`",
};

const defaults = <Role extends "gate" | "manager" | "worker">(role: Role) =>
  readSettings(role, { file: "", values: {} }, {}, []);

it("the reference lists the settings as they are; tools/settings-page.ts writes it", () => {
  const page = new URL("../docs/reference/settings.md", import.meta.url);
  expect(readFileSync(page, "utf8")).toBe(settingsPage());
});

it("every setting of the specification is covered, or has a reason not to be", () => {
  const names = Object.keys(SETTINGS);
  for (const [name, stands] of Object.entries(OF_THE_DESIGN)) {
    const [, own = null] = /^`([a-zA-Z]+)`$/.exec(stands) ?? [];
    if (own !== null) expect([name, names.includes(own)]).toEqual([name, true]);
  }
  expect(Object.keys(OF_THE_DESIGN)).toHaveLength(18);
});

it("nodes without settings do what their machines do by themselves", () => {
  expect(managerConfig(defaults("manager"))).toEqual(MANAGER_DEFAULTS);
  expect(gateConfig(defaults("gate"))).toEqual(GATE_DEFAULTS);
  expect(defaults("worker").isolation).toBe(ISOLATION_MS);
});
