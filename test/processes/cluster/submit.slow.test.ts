/**
 * A whole cluster as processes on the loopback, and a file submitted to it: the same files and exit codes as a run, and
 * a target that counts as many requests as the summary.
 */

import { once } from "node:events";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../../../src/demo/server.ts";
import { LocalCluster, MS_MAX } from "./local-cluster.ts";

/** More than a client may ask in 10 s, and fewer than it is answered within its patience. */
const ASKED = 160;

const DATA_FLOW = `
  import { feed, file, flow, http } from "hyperscalejs";
  const target = http.target(process.env.TARGET ?? "http://127.0.0.1:1");
  const cart = file("cart.json");
  export default flow(
    "users",
    {
      vus: 2,
      iterations: 3,
      data: {
        who: feed.csv("../data/users.csv", { columns: { name: String }, order: "once" }),
        picture: feed.files("pictures/**/*.png"),
      },
    },
    async ({ data, step }) => {
      await step("cart", target.post("/" + data.who.name, { body: cart }));
      await step("picture", target.post("/" + data.picture.path, { body: file(data.picture.path) }));
    },
  );
`;

const HANGING_FLOW = `
  import { flow, http } from "hyperscalejs";
  const target = http.target(process.env.TARGET ?? "http://127.0.0.1:1");
  const load = { rate: 20, duration: "1s", gracefulStop: "2s" } as const;
  export default flow("hanging", load, async ({ step }) => {
    await step("home", target.get("/"));
  });
`;
/** Calls that the target answers before it hangs for good. */
const ANSWERED = 8;

async function writeFiles(place: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(place, path)), { recursive: true });
    await writeFile(join(place, path), text);
  }
}

describe("a cluster of one manager and two workers", () => {
  let cluster: LocalCluster;
  let target: DemoTarget;

  beforeAll(async () => {
    target = await startDemoTarget({ port: 0 });
    cluster = await LocalCluster.start("--gates", "0", "--workers", "2");
  }, MS_MAX);

  afterAll(async () => {
    await cluster?.stop();
    await target.close();
  }, MS_MAX);

  it(
    "runs a submitted file, and counts what the target counts",
    async () => {
      const out = join(cluster.dir, "out");
      const before = target.stats().requests;
      const submitted = await cluster.command(
        ...["submit", "examples/quickstart.ts", "--ui", "none", "--out", out],
        ...["--duration", "1s", "--graceful-stop", "60s", "-e", `HYPERSCALE_TARGET=${target.url}`],
        ...["--only", "quickstart"],
      );
      const summary = JSON.parse(await readFile(join(out, "summary.json"), "utf8"));
      expect(summary.totals.requests).toBe(target.stats().requests - before);
      expect(summary.totals.requests).toBeGreaterThan(0);
      expect(summary.lost).toEqual([]);
      expect(summary.environment.cores).toBe(2);
      // A slow machine may miss a threshold of latency; everything else is as by `run`.
      expect([0, 99], submitted.stderr).toContain(submitted.code);
      const { jobs } = JSON.parse((await cluster.command("jobs", "list", "--json")).stdout);
      expect(jobs).toMatchObject([{ status: "COMPLETED", name: "examples/quickstart.ts" }]);
    },
    MS_MAX,
  );

  it(
    "serves a modest client while a greedy one is asked to come back",
    async () => {
      const [greedy, modest] = await Promise.all([cluster.client(), cluster.client()]);
      try {
        const [{ id = "" } = {}] = await modest.jobs();
        const asked = Array.from({ length: ASKED }, () => greedy.jobs());
        expect(await modest.status(id)).toMatchObject({ id, status: "COMPLETED" });
        // Refused, and answered when it came back: nothing of this reaches the program.
        expect((await Promise.all(asked)).every(({ length }) => length === 1)).toBe(true);
        const answer = await fetch(`http://${cluster.node("m1").api}/metrics`);
        const refused = /^hyperscale_pressure_requests_rate_limited_total (\d+)$/m;
        expect(Number(refused.exec(await answer.text())?.[1])).toBeGreaterThan(0);
      } finally {
        await Promise.all([greedy.close(), modest.close()]);
      }
    },
    MS_MAX,
  );

  it(
    "reports while a job runs to every follower: the submitter, and one that attaches",
    async () => {
      const file = (name: string): string => join(cluster.dir, name);
      const flow = ["submit", "examples/quickstart.ts", "--only", "quickstart"];
      const load = ["--graceful-stop", "60s", "-e", `HYPERSCALE_TARGET=${target.url}`];
      await cluster.command(
        ...[...flow, "--ui", "none", "--out", file("reported"), "--duration", "2s", ...load],
        ...["--report", `ndjson=${file("submitted.ndjson")},every=1s`],
      );
      await checkReported(file("reported"), file("submitted.ndjson"));
      const { stdout } = await cluster.command(...flow, "--detach", "--duration", "5s", ...load);
      await cluster.command(
        ...["jobs", "attach", stdout.trim(), "--ui", "none", "--out", file("attached")],
        ...["--report", `ndjson=${file("attached.ndjson")},every=1s`],
      );
      await checkReported(file("attached"), file("attached.ndjson"));
      await cluster.command("jobs", "results", stdout.trim(), "--out", file("results"));
      const [kept, attached] = await Promise.all(
        ["results", "attached"].map((out) => readFile(join(file(out), "summary.json"), "utf8")),
      );
      expect(JSON.parse(kept ?? "").totals).toEqual(JSON.parse(attached ?? "").totals);
    },
    MS_MAX,
  );

  it(
    "shows a job in the shape that tools rely on, and what happened to it",
    async () => {
      const { jobs } = JSON.parse((await cluster.command("jobs", "list", "--json")).stdout);
      const { id } = jobs[0];
      const shown = JSON.parse((await cluster.command("jobs", "show", id, "--json")).stdout);
      expect(Object.keys(shown).sort()).toEqual([
        ...["createdAt", "datacenters", "fence", "id", "leader", "lost", "reason", "short"],
        ...["status", "thresholds", "workflows"],
      ]);
      expect(Object.keys(shown.datacenters[0]).sort()).toEqual([
        ...["asOfMs", "cores", "failed", "managers", "name", "ratePerSecond", "requests"],
        ...["status", "workers"],
      ]);
      const [attempt] = shown.workflows[0].attempts;
      expect(Object.keys(attempt).sort()).toEqual([
        ...["cores", "endedAt", "reason", "startedAt", "status", "token", "worker"],
      ]);
      expect(attempt).toMatchObject({ cores: 1, status: "finished", reason: null });
      expect(attempt.endedAt).toBeGreaterThan(attempt.startedAt);
      expect(shown.thresholds.length).toBeGreaterThan(0);
      const { events } = JSON.parse((await cluster.command("jobs", "events", id, "--json")).stdout);
      expect(events[0]).toMatchObject({ kind: "submitted", who: "m1", datacenter: "dc1" });
      expect(events.at(-1)).toMatchObject({ kind: "ended", text: "COMPLETED" });
      const placed = events.find((one: { readonly kind: string }) => one.kind === "placed");
      expect(placed.token).toBe(attempt.token);
    },
    MS_MAX,
  );

  it(
    "reports mistakes before anything is sent",
    async () => {
      const missing = await cluster.command("submit", "no-such-file.ts");
      expect(missing).toMatchObject({ code: 2 });
      expect(missing.stderr).toContain("there is no file no-such-file.ts");
      const threshold = ["--threshold", "latency{step=nowhere}.p95<1s"];
      const unknown = await cluster.command("submit", "examples/quickstart.ts", ...threshold);
      expect(unknown).toMatchObject({ code: 2 });
    },
    MS_MAX,
  );

  it(
    "takes along the data files that the workflow reads, wherever they lie to each other",
    async () => {
      const place = join(cluster.dir, "project");
      await writeFiles(place, {
        "flows/users.ts": DATA_FLOW,
        "flows/cart.json": '{"cart":7}',
        "flows/pictures/a.png": "first",
        "flows/pictures/deep/b.png": "second",
        "flows/pictures/notes.txt": "not sent",
        "data/users.csv": "name\nada\nbob\neve\n",
      });
      const bodies: string[] = [];
      const server = createServer((request, response) => {
        request.setEncoding("utf8");
        let text = "";
        request.on("data", (part) => {
          text += part;
        });
        request.on("end", () => {
          bodies.push(`${request.url} ${text}`);
          response.end("ok");
        });
      }).listen(0, "127.0.0.1");
      await once(server, "listening");
      const { port } = server.address() as AddressInfo;
      try {
        const { code, stderr } = await cluster.command(
          ...["submit", join(place, "flows", "users.ts"), "--ui", "none"],
          ...["-e", `TARGET=http://127.0.0.1:${port}`, "--graceful-stop", "60s"],
        );
        expect(code, stderr).toBe(0);
        const pictures = ["/pictures/a.png first", "/pictures/deep/b.png second"];
        for (const name of ["ada", "bob", "eve"]) expect(bodies).toContain(`/${name} {"cart":7}`);
        for (const picture of pictures) expect(bodies).toContain(picture);
        expect(bodies).toHaveLength(6);
        await rm(join(place, "data"), { recursive: true });
        const without = await cluster.command("submit", join(place, "flows", "users.ts"));
        expect(without.code).toBe(2);
        expect(without.stderr).toContain(
          `cannot send the data file ${join(place, "data", "users.csv")}`,
        );
      } finally {
        server.close();
      }
    },
    MS_MAX,
  );

  it(
    "fails a job whose target stops answering, and counts the unanswered calls",
    async () => {
      const place = join(cluster.dir, "hanging");
      await writeFiles(place, { "hanging.ts": HANGING_FLOW });
      let received = 0;
      const server = createServer((_, response) => {
        if (++received <= ANSWERED) response.end("ok");
      }).listen(0, "127.0.0.1");
      await once(server, "listening");
      const { port } = server.address() as AddressInfo;
      try {
        const { code, stderr } = await cluster.command(
          ...["submit", join(place, "hanging.ts"), "--ui", "none", "--out", join(place, "out")],
          ...["-e", `TARGET=http://127.0.0.1:${port}`],
        );
        expect(code, stderr).toBe(99);
      } finally {
        server.closeAllConnections();
        server.close();
      }
      const summary = JSON.parse(await readFile(join(place, "out", "summary.json"), "utf8"));
      const [{ errors, interrupted, ok, sent }] = summary.workflows[0].steps;
      expect([summary.verdict, ok, sent]).toEqual(["failed", ANSWERED, received]);
      // One that is younger than those that were answered is no failure.
      expect(errors.unanswered + interrupted).toBe(received - ANSWERED);
      const gate = ({ expression }: { expression: string }) =>
        expression === "unanswered.rate <= 1%";
      expect(summary.thresholds.find(gate)).toMatchObject({ passed: false, implicit: true });
    },
    MS_MAX,
  );

  it(
    "ends every process that it started",
    async () => {
      const ended = await cluster.command("cluster", "down");
      expect(ended).toMatchObject({ code: 0 });
      expect(cluster.left()).toEqual([]);
    },
    MS_MAX,
  );
});

interface SentPoint {
  readonly kind: string;
  readonly scope: string;
  readonly figure: string;
  readonly values: Readonly<Record<string, number>>;
}

/** The sum over all frames equals the job's summary, and nothing was dropped. (REP-7) */
async function checkReported(folder: string, points: string): Promise<void> {
  const { reports, totals } = JSON.parse(await readFile(join(folder, "summary.json"), "utf8"));
  expect(reports).toMatchObject([{ reporter: "ndjson", dropped: 0, problem: null }]);
  const lines = (await readFile(points, "utf8")).trim().split("\n");
  const requests = lines
    .map((line) => JSON.parse(line) as SentPoint)
    .filter(({ figure, scope }) => scope === "run" && figure === "requests");
  const sent = requests.filter(({ kind }) => kind === "interval");
  const sum = sent.reduce((all, { values }) => all + (values["increment"] ?? 0), 0);
  expect(totals.requests).toBeGreaterThan(0);
  expect(sum).toBe(totals.requests);
  const [last] = requests.filter(({ kind }) => kind === "summary");
  expect(last?.values["total"]).toBe(totals.requests);
}
