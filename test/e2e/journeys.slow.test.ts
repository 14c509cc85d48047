/**
 * Every journey of examples/journeys runs on two cores of the built package against a server with its own counts: what
 * the run reports as sent is what arrived, route by route, and nothing else arrived.
 */

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { RunSummary } from "../../src/core/load/results/model.ts";
import { runFiles } from "../run-files.ts";
import { sum, until } from "./cli.ts";
import { type JourneyServer, SEATS, startJourneyServer } from "./journey-server.ts";

const folder = fileURLToPath(new URL("../../examples/journeys", import.meta.url));

/** The routes that each step asks for: several where a redirect is followed, or a connection opened. */
const ROUTES: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  accounts: { "log in": ["POST /token"], profile: ["GET /profile"] },
  breakpoint: { seat: ["GET /seat"] },
  certificates: { account: ["GET /account"] },
  chat: { enter: ["GET /chat"], say: ["message /chat"], wave: ["message /chat"], heard: [] },
  checkout: {
    "login page": ["GET /login"],
    "log in": ["POST /login", "GET /account"],
    "look at it": ["GET /items/:id"],
    "add to cart": ["POST /cart"],
    pay: ["POST /orders"],
  },
  graphql: { read: ["POST /graphql"], rate: ["POST /graphql"] },
  job: {
    "hand in": ["POST /jobs"],
    "report is ready": ["GET /jobs/:id"],
    fetch: ["GET /jobs/:id/result"],
  },
  pages: { page: ["GET /items"] },
  traffic: {
    list: ["GET /items"],
    item: ["GET /items/:id"],
    search: ["GET /search"],
    cart: ["POST /cart"],
    order: ["POST /orders"],
  },
  upload: { upload: ["POST /files"], download: ["GET /files/:id"] },
};

/** Expected requests where the journey fixes them; the rest depends on time. */
const ARRIVED: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  accounts: { "POST /token": 5, "GET /profile": 30 },
  certificates: { "GET /account": 24 },
  chat: { "GET /chat": 4, "message /chat": 80 },
  checkout: {
    "GET /login": 40,
    "POST /login": 40,
    "GET /account": 40,
    "GET /items/:id": 40,
    "POST /cart": 40,
    "POST /orders": 40,
  },
  graphql: { "POST /graphql": 60 },
  job: { "POST /jobs": 25, "GET /jobs/:id": 75, "GET /jobs/:id/result": 25 },
  pages: { "GET /items": 100 },
  upload: { "POST /files": 24, "GET /files/:id": 24 },
};

const fileOf = (name: string): string => `examples/journeys/${name}.ts`;

/** A server each: they count by themselves while others run. */
const servers = new Map<string, JourneyServer>();
let ran: Awaited<ReturnType<typeof runFiles>>;

beforeAll(async () => {
  for (const name of Object.keys(ROUTES)) servers.set(name, await startJourneyServer());
  ran = await runFiles(
    [...servers].map(([name, server]) => ({
      file: fileOf(name),
      options: {
        cores: 2,
        env: {
          HYPERSCALE_TARGET: name === "certificates" ? server.tlsUrl : server.url,
          CERTIFICATES: server.certificates,
        },
      },
    })),
  );
});
afterAll(() => {
  for (const server of servers.values()) server.close();
});

async function outcomeOf(
  name: string,
): Promise<{ summary: RunSummary; arrived: Record<string, number> }> {
  const { summary } = ran.get(fileOf(name)) ?? {};
  const server = servers.get(name);
  if (summary === undefined || server === undefined) throw new Error(`${name} has not run`);
  expect(summary.verdict, summary.reasons.join()).toBe("passed");
  await until(() => server.chatting() === 0);
  return { summary, arrived: server.take() };
}

/** Wire requests by step name, over all workflows, calls beside the iterations included. */
function sentByStep({ workflows }: RunSummary): Record<string, number> {
  const sent: Record<string, number> = {};
  for (const { steps, aside = [] } of workflows)
    for (const step of [...steps, ...aside])
      sent[step.name] = (sent[step.name] ?? 0) + (step.sent ?? 0);
  return sent;
}

it("has every journey of the folder in this test, and in its README", () => {
  const files = readdirSync(folder).filter((name) => name.endsWith(".ts"));
  expect(files).toEqual(Object.keys(ROUTES).map((name) => `${name}.ts`));
  const readme = readFileSync(`${folder}/README.md`, "utf8");
  for (const file of files) expect(readme).toContain(`[${file}](${file})`);
});

it.each(Object.keys(ROUTES))("%s: what was sent is what arrived", async (name) => {
  const { summary, arrived } = await outcomeOf(name);
  const sent = sentByStep(summary);
  const routes = ROUTES[name] ?? {};
  expect(Object.keys(sent).sort()).toEqual(Object.keys(routes).sort());
  // Steps that share a route are compared together.
  const compared = new Set<string>();
  for (const paths of Object.values(routes)) {
    const steps = Object.keys(routes).filter((step) =>
      routes[step]?.some((r) => paths.includes(r)),
    );
    const wire = steps.reduce((all, step) => all + (sent[step] ?? 0), 0);
    expect(wire, paths.join(" and ")).toBe(paths.reduce((all, r) => all + (arrived[r] ?? 0), 0));
    for (const path of paths) compared.add(path);
  }
  expect([...compared].sort()).toEqual(Object.keys(arrived).sort());
  expect(summary.totals?.sent).toBe(sum(arrived));
  if (ARRIVED[name] !== undefined) expect(arrived).toEqual(ARRIVED[name]);
  expect(summary.thresholds.filter(({ passed }) => !passed)).toEqual([]);
  if (name === "traffic") sharesOf(summary, arrived);
  if (name === "breakpoint") boundOf(summary);
});

/** Weights hold on every core to within one iteration per flow. */
function sharesOf({ workflows }: RunSummary, arrived: Record<string, number>): void {
  const completed = workflows.map(({ iterations }) => iterations.completed);
  for (const [at, share] of [140, 50, 10].entries())
    expect(Math.abs((completed[at] ?? 0) - share)).toBeLessThanOrEqual(2);
  expect([arrived["GET /items"], arrived["GET /search"], arrived["POST /orders"]]).toEqual(
    completed,
  );
}

/** The server says no to more than it has seats for: no load above them holds. */
function boundOf({ workflows: [search] }: RunSummary): void {
  expect(search?.breakpoint?.held).toBeGreaterThanOrEqual(1);
  expect(search?.breakpoint?.held).toBeLessThanOrEqual(SEATS);
  expect(search?.breakpoint?.broke).toBeGreaterThan(search?.breakpoint?.held ?? 0);
}
