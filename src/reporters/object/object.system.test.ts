/** Objects at a store that checks signatures, which real ones do and some emulators do not. */

import { afterAll, beforeAll, expect, it } from "vitest";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { decodeSummary } from "../file/schema.ts";
import { openReporting } from "../registry.ts";
import { ACCESS_KEY, isSigned } from "../testing/check-signature.ts";
import { StubServer } from "../testing/stub-server.ts";

const run = syntheticRun({ seed: "objects", seconds: 2, rate: 0.2 });
const KEYS = { AWS_ACCESS_KEY_ID: ACCESS_KEY, AWS_SECRET_ACCESS_KEY: "s3cret-0123456789" };
let server: StubServer;

beforeAll(async () => {
  server = await StubServer.start();
  server.behaviour = (request) =>
    isSigned(request, server.url, KEYS.AWS_SECRET_ACCESS_KEY)
      ? { status: 200 }
      : { status: 403, body: "SignatureDoesNotMatch" };
});
afterAll(async () => server.stop());

async function report(env: Readonly<Record<string, string>>, name: string) {
  server.requests.length = 0;
  const text = `${name}=results/night ly,endpoint=${server.url}`;
  const reporting = await openReporting([text], { env, onProblem: () => {} });
  await reporting.start(run);
  const { reports } = await reporting.finish(run);
  return reports?.[0];
}

it.each(["s3", "gcs"])("%s stores the files of a run under its id", async (name) => {
  expect(await report(KEYS, name)).toMatchObject({ sent: 2, dropped: 0, problem: null });
  expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    `PUT /results/night%20ly/${run.runId}/summary.json`,
    `PUT /results/night%20ly/${run.runId}/junit.xml`,
  ]);
  const decoded = decodeSummary(server.requests[0]?.body.toString("utf8") ?? "");
  expect(decoded.ok && decoded.summary.totals).toEqual(run.totals);
});

it("does not retry a wrong key", async () => {
  const outcome = await report({ ...KEYS, AWS_SECRET_ACCESS_KEY: "another" }, "s3");
  const problem = "it answered 403: SignatureDoesNotMatch";
  expect(outcome).toMatchObject({ sent: 0, dropped: 2, problem });
  expect(server.requests).toHaveLength(2);
});

it("checks keys before the run", async () => {
  await expect(report({}, "s3")).rejects.toThrow(
    "report s3: accessKey: the environment has no variable AWS_ACCESS_KEY_ID",
  );
});
