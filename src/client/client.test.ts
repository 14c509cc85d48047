import { describe, expect, it } from "vitest";
import { ANYWHERE, type Submission } from "../core/cluster/messages.ts";
import { ClusterClient, ClusterError } from "./client.ts";
import { connect } from "./cluster.ts";
import { routingOf } from "./routing.ts";

/** Nothing listens there: a request that passes validation waits for its timeout. */
const NOBODY = ["127.0.0.1:1"];
const SECRET = "gh7Kq2-vT9xLw4Zm";
const NO_FILES = new Map();

const SUBMISSION: Submission = {
  ...{ name: "flow.ts", title: null, tags: {}, manifests: [], entry: "flow.mjs", files: [] },
  ...{ overrides: {}, thresholds: [], abortAfterMs: null, timeoutMs: null, cores: null },
  ...{ tenant: null, held: false, command: "submit", version: "0.0.0" },
};

async function problemOf(work: (client: ClusterClient) => Promise<unknown>): Promise<string> {
  const client = ClusterClient.open({ managers: NOBODY, secret: SECRET });
  try {
    await work(client);
    return "";
  } catch (error) {
    if (!(error instanceof ClusterError) || error.reason !== "invalid") throw error;
    return error.message;
  } finally {
    await client.close();
  }
}

describe("rejects what a cluster could not read before it is sent", () => {
  const submitted = (more: Partial<Submission>, key = "k", routing = ANYWHERE): Promise<string> =>
    problemOf((client) => client.submit({ ...SUBMISSION, ...more }, NO_FILES, key, routing));

  it.each([
    ["an empty key", () => submitted({}, ""), "key is empty: it takes 1 to 128 bytes of text"],
    [
      "a long key",
      () => submitted({}, "k".repeat(5_000)),
      "key has 5000 bytes of text: it takes at most 128",
    ],
    [
      "a tenant that is long in bytes",
      () => submitted({ tenant: "ü".repeat(300) }),
      "tenant has 600 bytes of text: it takes at most 128",
    ],
    [
      "a title",
      () => submitted({ title: "😀".repeat(30_000) }),
      "title has 120000 bytes of text: it takes at most 16384",
    ],
    [
      "variables",
      () => submitted({ overrides: { env: { A: "x".repeat(20_000) } } }),
      "overrides has 20016 bytes: it takes at most 16384",
    ],
    [
      "a time that is no whole number of milliseconds",
      () => submitted({ timeoutMs: 0.5 }),
      "timeout is 0.5: it takes a whole number from 0 to ",
    ],
    [
      "too many datacenters",
      () => submitted({}, "k", { ...ANYWHERE, count: 1_000 }),
      "datacenterCount is 1000: it takes a whole number from 0 to 256",
    ],
    [
      "a part of no datacenter",
      () => submitted({}, "k", { ...ANYWHERE, weights: [{ datacenter: "", weight: 1 }] }),
      "split has an entry that is empty",
    ],
    ["no job", () => problemOf((client) => client.status("")), "job is empty"],
    ["a long job", () => problemOf((client) => client.events("j".repeat(3_000))), "job has 3000"],
    ["no job to watch", () => problemOf((client) => client.progress("", 0, true)), "job is empty"],
    [
      "no job to control",
      () => problemOf((client) => client.control("", { kind: "pause" }, "ada")),
      "job is empty",
    ],
    ["a node", () => problemOf((client) => client.drain("n".repeat(3_000))), "node has 3000"],
  ])("%s", async (_what, asked, problem) => {
    expect(await asked()).toContain(problem);
  });

  it("rejects it in the typed client, too, and in its location", async () => {
    const cluster = connect({ addresses: NOBODY, secret: SECRET });
    await expect(cluster.job("").status()).rejects.toThrow("job is empty");
    await cluster.close();
    const open = { managers: NOBODY, secret: SECRET, environment: "e".repeat(200) };
    expect(() => ClusterClient.open(open)).toThrow("environment has 200 bytes of text");
  });
});

describe("placement of a job", () => {
  const problemOf = (placement: Parameters<typeof routingOf>[0]): string => {
    const routed = routingOf(placement, (option) => option);
    return routed.ok ? "" : routed.problem;
  };

  it("is rejected when a list is empty, or a count invalid", () => {
    for (const option of ["datacenters", "prefer", "split"])
      expect(problemOf({ [option]: [] })).toBe(
        `${option}: names no datacenter; name one, or leave it out`,
      );
    for (const datacenterCount of [0, 1.5, -1, Number.NaN])
      expect(problemOf({ datacenterCount })).toContain("must be a whole number of at least 1");
    expect(problemOf({ datacenterCount: 2, prefer: ["eu1"] })).toBe("");
  });
});
