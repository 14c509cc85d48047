/**
 * Accounts for every request: against a server that misbehaves in every known way, each call finishes exactly once with
 * the right kind, and the counts of server and client match.
 */

import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { startDemoTarget } from "../../demo/server.ts";
import type { ErrorKind } from "../errors.ts";
import {
  type HostileBehaviour,
  type HostileTarget,
  hostileBehaviours,
  startHostileTarget,
} from "../testing/hostile-target.ts";
import { TestSession } from "../testing/session.ts";
import { HttpClient } from "./client.ts";
import { startScriptedServer } from "./testing/scripted-server.ts";

let hostile: HostileTarget;
const closers: (() => unknown)[] = [];

beforeAll(async () => {
  hostile = await startHostileTarget({ dripMs: 5 });
});
afterAll(() => hostile.close());
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

function client(timeoutMs = 2_000): HttpClient {
  const session = new TestSession({ timeoutMs });
  closers.push(() => session.close());
  return new HttpClient(session);
}

/** Null: a complete response, however odd. */
const KINDS: Readonly<Record<HostileBehaviour, ErrorKind | null>> = {
  "infinite-headers": "protocol",
  "infinite-header-line": "protocol",
  "infinite-status-line": "protocol",
  "infinite-body": "timeout",
  "infinite-chunks": "timeout",
  "infinite-chunk-extension": "protocol",
  "infinite-trailers": "protocol",
  "infinite-continue": "protocol",
  "header-drip": "timeout",
  "body-drip": "timeout",
  hang: "timeout",
  "hang-after-head": "timeout",
  "huge-chunk": "protocol",
  "overflowing-chunk": "protocol",
  "bad-chunk": "protocol",
  "chunk-without-end": "protocol",
  "negative-chunk": "protocol",
  "huge-length": "protocol",
  "negative-length": "protocol",
  "word-length": "protocol",
  "two-lengths": "protocol",
  "length-and-chunked": "protocol",
  "space-before-colon": "protocol",
  "header-without-colon": "protocol",
  "null-in-header": "protocol",
  "extra-answer": null,
  "gzip-bomb": null,
  "bad-gzip": null,
  garbage: "protocol",
  "bad-status": "protocol",
  "bad-version": "protocol",
  "no-head": "protocol",
  close: "reset",
  reset: "reset",
  "half-head": "reset",
  "half-body": "reset",
  "half-chunk": "reset",
  "reset-mid-body": "reset",
  fine: null,
};

/** Only behaviours that must time out get a short timeout, because the machine may be busy. */
function patience(behaviour: HostileBehaviour): number {
  return KINDS[behaviour] === "timeout" ? 1_000 : 60_000;
}

const behaviours = Object.keys(hostileBehaviours) as HostileBehaviour[];

it.each(behaviours)("%s has its outcome and costs at most a connection", async (behaviour) => {
  const user = client(patience(behaviour));
  const before = hostile.connections();
  const answer = await user.get(`${hostile.url}/${behaviour}`);
  expect([behaviour, answer.errorKind]).toEqual([behaviour, KINDS[behaviour]]);
  expect(answer.error === null).toBe(answer.errorKind === null);
  const after = await user.get(`${hostile.url}/fine`);
  expect([after.errorKind, after.text()]).toEqual([null, "abc"]);
  expect(hostile.connections() - before).toBeLessThanOrEqual(2);
});

it("the server's count equals ok plus failed by kind, over all behaviours at once", async () => {
  const before = hostile.served();
  const twice = [...behaviours, ...behaviours];
  const answers = await Promise.all(
    twice.map((name) => client(patience(name)).get(`${hostile.url}/${name}`)),
  );
  const served = Object.entries(hostile.served()).reduce(
    (sum, [name, count]) => sum + count - (before[name] ?? 0),
    0,
  );
  expect(served).toBe(twice.length);
  const byKind = new Map<ErrorKind | null, number>();
  for (const { errorKind } of answers) byKind.set(errorKind, (byKind.get(errorKind) ?? 0) + 1);
  const expected = new Map<ErrorKind | null, number>();
  for (const name of behaviours) expected.set(KINDS[name], (expected.get(KINDS[name]) ?? 0) + 2);
  expect(byKind).toEqual(expected);
});

it("memory stays bounded while servers send endlessly", async () => {
  const endless = behaviours.filter((name) => name.startsWith("infinite"));
  await Promise.all(endless.map((name) => client(100).get(`${hostile.url}/${name}`)));
  const before = process.memoryUsage();
  let received = 0;
  for (let round = 0; round < 4 || received <= 1024 * 1024; round++) {
    const answers = await Promise.all(
      // Bodies that are to be kept are the worst case.
      endless.map((name) => client(250).get(`${hostile.url}/${name}`, { readBody: true })),
    );
    for (const answer of answers) received += answer.bytesIn;
  }
  const after = process.memoryUsage();
  // Kept bodies end at 16 MiB each; heads at 64 KiB. Without those limits this test would keep `received` in memory.
  expect(received).toBeGreaterThan(1024 * 1024);
  expect(after.heapUsed - before.heapUsed).toBeLessThan(64 * 1024 * 1024);
});

it("failures before any response have a kind, too", async () => {
  const gone = await startScriptedServer(() => undefined);
  await gone.close();
  const user = client();
  expect((await user.get(gone.url)).errorKind).toBe("refused");
  const unknown = await user.get("http://does-not-exist.invalid/");
  expect(unknown.errorKind).toBe("dns");
  expect(unknown.error).toMatch(/does-not-exist\.invalid/);
  for (const [onAccept, kind] of [
    ["close", "reset"],
    ["reset", "reset"],
    ["hang", "timeout"],
    ["garbage", "protocol"],
  ] as const) {
    const target = await startHostileTarget({ onAccept });
    closers.push(() => target.close());
    expect([onAccept, (await user.get(target.url)).errorKind]).toEqual([onAccept, kind]);
  }
});

it("a server that disappears during a run fails every request with a kind, and none twice", async () => {
  const demo = await startDemoTarget({ port: 0 });
  const users = Array.from({ length: 20 }, () => client(60_000));
  const kinds: (ErrorKind | null)[] = [];
  let gone = false;
  const loops = users.map(async (user) => {
    for (let i = 0; i < 20 || !gone; i++) kinds.push((await user.get(demo.url)).errorKind);
    for (let i = 0; i < 5; i++) kinds.push((await user.get(demo.url)).errorKind);
  });
  while (demo.stats().requests < 300) await new Promise((resolve) => setTimeout(resolve, 5));
  await demo.close();
  gone = true;
  await Promise.all(loops);
  const ok = kinds.filter((kind) => kind === null).length;
  const failed = kinds.filter((kind) => kind !== null);
  expect(new Set(failed)).toEqual(
    new Set([...failed].filter((k) => k === "reset" || k === "refused")),
  );
  // Requests answered before the server left, and at most one request per connection that was cut off.
  expect(demo.stats().requests).toBeGreaterThanOrEqual(ok);
  expect(demo.stats().requests - ok).toBeLessThanOrEqual(users.length);
});
