/** Contract of every back-end, each tested against a stub server on this machine. (REP-1, REP-2, REP-5) */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allReporters } from "./registry.ts";
import { describeContract, type Stub } from "./testing/contract.ts";
import { HTTP_BACK_ENDS, httpStub } from "./testing/http-stubs.ts";
import { SESSION_STUBS } from "./testing/session-stubs.ts";
import { StubServer } from "./testing/stub-server.ts";

let server: StubServer;
beforeAll(async () => {
  server = await StubServer.start();
});
afterAll(async () => server.stop());

describe("over HTTP", () => {
  for (const backEnd of HTTP_BACK_ENDS)
    describeContract({ name: backEnd.name, stub: () => httpStub(backEnd, server) });
});

describe("files of a run in an object store", () => {
  for (const name of ["s3", "gcs"]) {
    const target = (url: string): string => `results/nightly,endpoint=${url}`;
    const proof = HTTP_BACK_ENDS.find((one) => one.name === "cloudwatch")?.proof ?? (() => false);
    describeContract({ name, stub: () => httpStub({ name, target, proof }, server), pointsMin: 2 });
  }
});

describe("over a persistent connection", () => {
  for (const { name, start } of SESSION_STUBS) {
    let running: Awaited<ReturnType<typeof start>>;
    describe("", () => {
      beforeAll(async () => {
        running = await start();
      });
      afterAll(async () => running.stop());
      describeContract({ name, stub: (): Stub => running });
    });
  }
});

it("covers every back-end that answers", async () => {
  const families = await allReporters();
  const names = families
    .filter(({ title }) => !["Files", "Lines and datagrams", "For scrapes"].includes(title))
    .flatMap(({ definitions }) => definitions.map(({ name }) => name));
  const held = [...HTTP_BACK_ENDS, ...SESSION_STUBS].map(({ name }) => name);
  expect([...held, "s3", "gcs", "sqlite"].sort()).toEqual(names.sort());
});
