/**
 * Every route of every service, called without a credential and with each of them: access must match SECURITY.md.
 * `UPDATE_GOLDEN=1` rewrites its tables.
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  codeRefusal,
  methodRefusal,
  pathRefusal,
  SCOPED_METHODS,
  TOKEN_SCOPES,
} from "../../src/core/queue/permissions.ts";
import { Background } from "../../src/host/background.ts";
import type { ControlServer } from "../../src/host/control/server.ts";
import { keepOwnToken, tokenFor } from "../../src/host/control/token.ts";
import { ApiServer } from "../../src/ledger/api-server.ts";
import { AgentServer } from "../../src/nodes/agent/server.ts";
import { serveWorker } from "../../src/nodes/worker/api.ts";
import { isRoot, needs } from "../needs.ts";

const SECURITY = fileURLToPath(new URL("../../SECURITY.md", import.meta.url));
const TOKEN = "the token of the node itself";
const METRICS_TOKEN = "reads nothing but the metrics";
const background = new Background(() => undefined);
const log = { event: () => undefined } as never;
/** Stands in for any service of a handler: only access is checked here. */
const anything: never = new Proxy(() => anything, {
  get: (_, name) => (name === "then" || name === Symbol.toPrimitive ? undefined : anything),
}) as never;

const listenOn = (host: string) => ({
  ...{ host, port: 0, token: TOKEN, isOwnToken: false, metricsToken: METRICS_TOKEN },
});

function ledger(service: "ledger" | "gate" | "manager") {
  return (host: string): Promise<ControlServer> => {
    const views = service === "gate" ? { datacenters: () => [], gates: () => [] } : {};
    const node = { ready: true, isDraining: false, node: null, background, viewsAbove: views };
    const rest = { config: { service, name: "n1" }, status: () => null, metricsAbove: [] };
    const request = (_: unknown, __: unknown, answer: (value: object) => void): void =>
      answer({ kind: "retry", why: "nobody is there" });
    const known = { redactSpec: (spec: unknown) => spec, note: () => undefined, wall: () => 0 };
    const audit = () => ({ events: [], truncated: false });
    const stub = { ...node, ...rest, ...known, request, audit };
    return ApiServer.listen(listenOn(host), { host: stub as never, log });
  };
}

async function agent(host: string): Promise<ControlServer> {
  const options = { agent: anything, log, background, onLeave: () => undefined };
  const { control } = await AgentServer.listen(listenOn(host), options);
  if (control === null) throw new Error("it does not listen");
  return control;
}

async function worker(host: string): Promise<ControlServer> {
  const config = { api: listenOn(host), dataDir: "" };
  const stub = {
    config,
    ready: true,
    isDraining: false,
    rights: { user: null },
    status: () => ({}),
  };
  const served = await serveWorker(stub as never, { log, background });
  if (served === null) throw new Error("it does not listen");
  return served;
}

const SERVICES = {
  agent,
  ledger: ledger("ledger"),
  gate: ledger("gate"),
  manager: ledger("manager"),
  worker,
};
const CREDENTIALS = { nobody: null, metrics: METRICS_TOKEN, node: TOKEN } as const;
type Caller = keyof typeof CREDENTIALS;

interface Asked {
  readonly services: string[];
  /** "loopback nobody" → whether access is granted. */
  readonly allowed: Readonly<Record<string, boolean>>;
}

const servers: ControlServer[] = [];
afterAll(() => Promise.all(servers.map((server) => server.close())));

/** Refused is 401 or 403. Anything else came from a handler, or from there being nothing to serve. */
function isLetIn(port: number, route: string, token: string | null): Promise<boolean> {
  const [method = "", path = ""] = route.split(" ");
  const isUpgrade = method === "UPGRADE";
  const headers = {
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    ...(isUpgrade ? { connection: "Upgrade", upgrade: "hyperscale-ledger-1" } : {}),
  };
  return new Promise((resolve, reject) => {
    const call = request({
      ...{ host: "127.0.0.1", port, agent: false, headers },
      ...{ method: isUpgrade ? "GET" : method, path: path.replaceAll(/:\w+/g, "x") },
    });
    const end = (status: number | undefined): void => {
      call.destroy();
      resolve(status !== 401 && status !== 403);
    };
    call.on("response", (response) => end(response.statusCode));
    call.on("upgrade", (response, socket) => {
      socket.destroy();
      end(response.statusCode);
    });
    call.on("error", reject);
    call.end();
  });
}

async function askAll(): Promise<ReadonlyMap<string, Asked>> {
  const asked = new Map<string, Asked>();
  for (const [service, serve] of Object.entries(SERVICES)) {
    const places = { loopback: await serve("127.0.0.1"), elsewhere: await serve("0.0.0.0") };
    servers.push(...Object.values(places));
    for (const route of places.loopback.routes) {
      const allowed: Record<string, boolean> = {};
      for (const [place, server] of Object.entries(places))
        for (const [caller, token] of Object.entries(CREDENTIALS))
          allowed[`${place} ${caller}`] = await isLetIn(server.port, route, token);
      const known = asked.get(route);
      if (known === undefined) asked.set(route, { services: [service], allowed });
      else {
        expect(allowed, `${route} of ${service}`).toEqual(known.allowed);
        known.services.push(service);
      }
    }
  }
  return asked;
}

const word = (allowed: boolean | undefined): string => (allowed === true ? "yes" : "no");

function routeTable(asked: ReadonlyMap<string, Asked>): string {
  const columns: readonly (readonly [string, Caller])[] = [
    ["loopback", "nobody"],
    ["elsewhere", "nobody"],
    ["elsewhere", "metrics"],
    ["elsewhere", "node"],
  ];
  const rows = [...asked].map(([route, { allowed, services }]) => {
    const whose = services.length === Object.keys(SERVICES).length ? "all" : services.join(", ");
    const cells = columns.map(([place, caller]) => word(allowed[`${place} ${caller}`]));
    return [`\`${route}\``, whose, ...cells];
  });
  const head = ["route", "served by", "no token, loopback", "no token, elsewhere"];
  return table([[...head, "`metricsTokenFile`", "`api.token`"], ...rows]);
}

const QUEUE_PATHS = [
  "/follow",
  "/tasks/1/follow",
  "/tasks/1/files/a",
  "/metrics",
  "/v1/debug/work",
];

function queueTable(): string {
  const row = (name: string, refusal: (scope: (typeof TOKEN_SCOPES)[number]) => string | null) => [
    `\`${name}\``,
    ...TOKEN_SCOPES.map((scope) => word(refusal(scope) === null)),
  ];
  const rows = [
    ...SCOPED_METHODS.map((method) => row(method, (scope) => methodRefusal(scope, method))),
    ...QUEUE_PATHS.map((path) => row(`GET ${path}`, (scope) => pathRefusal(scope, path))),
  ];
  return table([["method or path", ...TOKEN_SCOPES], ...rows]);
}

function table(rows: readonly (readonly string[])[]): string {
  const [head = []] = rows;
  const widths = head.map((_, at) => Math.max(...rows.map((row) => (row[at] ?? "").length)));
  const lines = rows.map(
    (row) => `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`,
  );
  lines.splice(1, 0, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`);
  return lines.join("\n");
}

/** Expects the table under a heading of SECURITY.md. */
function expectTable(heading: string, expected: string): void {
  const text = readFileSync(SECURITY, "utf8");
  const found = new RegExp(`(## ${heading}\\n[^|]*)(\\|[^\\n]*(?:\\n\\|[^\\n]*)*)`).exec(text);
  if (process.env["UPDATE_GOLDEN"] === "1" && found !== null)
    writeFileSync(SECURITY, text.replace(found[0], `${found[1]}${expected}`));
  else expect(found?.[2]).toBe(expected);
}

describe("routes", () => {
  let asked: ReadonlyMap<string, Asked>;
  beforeAll(async () => {
    asked = await askAll();
  });

  it("grant access as SECURITY.md documents", () => {
    expectTable("Routes of nodes", routeTable(asked));
  });

  it("grant no access without a token, except to health and metrics on the loopback", () => {
    const open = ["GET /healthz", "GET /readyz"];
    for (const [route, { allowed }] of asked) {
      const isOpen = open.includes(route);
      expect([route, allowed["elsewhere nobody"]]).toEqual([route, isOpen]);
      expect([route, allowed["loopback nobody"]]).toEqual([
        route,
        isOpen || route === "GET /metrics",
      ]);
      expect([route, allowed["loopback node"], allowed["elsewhere node"]]).toEqual([
        route,
        true,
        true,
      ]);
    }
  });

  it("write no jobs at gates and managers", () => {
    for (const route of ["POST /v1/jobs", "POST /v1/jobs/:id/events"])
      expect(asked.get(route)?.services).toEqual(["ledger"]);
  });
});

describe("the queue", () => {
  it("sends no code for a client's token unless enabled", () => {
    const task = { executor: "loadtest", input: { bundle: "0".repeat(64) } };
    for (const params of [task, { tasks: [task] }, { tasks: { a: task } }]) {
      expect(codeRefusal("client", params, false)).toContain("--client-bundles");
      expect(codeRefusal("client", params, true)).toBeNull();
      expect(codeRefusal("operator", params, false)).toBeNull();
    }
    const named = { executor: "loadtest", input: { file: "a.ts" } };
    expect(codeRefusal("client", named, false)).toBeNull();
  });

  it("lets each token call what SECURITY.md documents", () => {
    expectTable("Methods of the queue", queueTable());
  });
});

it("keeps tokens from other users of the machine (root)", needs(isRoot, "not root"), () => {
  const directory = mkdtempSync(join(tmpdir(), "hyperscale-doors-"));
  try {
    keepOwnToken(directory, TOKEN, "127.0.0.1:1");
    expect(tokenFor({ api: "127.0.0.1:1", dir: directory })).toBe(TOKEN);
    spawnSync("chmod", ["755", directory]);
    const script = `require("node:fs").readFileSync(${JSON.stringify(join(directory, "api.token"))})`;
    const other = { uid: 65_534, gid: 65_534, cwd: "/" };
    expect(spawnSync(process.execPath, ["-e", script], other).status).toBe(1);
    expect(spawnSync(process.execPath, ["-e", "0"], other).status).toBe(0);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
