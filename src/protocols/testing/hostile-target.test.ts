/** Verifies with Node's own HTTP client that the hostile target behaves as its names say. */

import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type AcceptBehaviour,
  type HostileBehaviour,
  type HostileTarget,
  startHostileTarget,
} from "./hostile-target.ts";

let target: HostileTarget;
beforeAll(async () => {
  target = await startHostileTarget();
});
afterAll(() => target.close());

/** Code of the error that ends one request, or "answered" on success. */
function outcome(url: string): Promise<string> {
  return new Promise((resolve) => {
    // A parse error in the body reaches the request as well as the response; the request's is the precise one.
    const fail = (error: NodeJS.ErrnoException): void => resolve(error.code ?? error.message);
    const sent = request(url, { agent: false }).end();
    sent.on("error", fail);
    sent.on("response", (response) => {
      response.on("error", (error) => setImmediate(fail, error));
      response.on("end", () => resolve("answered"));
      response.resume();
    });
  });
}

describe("the hostile target", () => {
  it.each<[HostileBehaviour, string]>([
    ["infinite-headers", "HPE_HEADER_OVERFLOW"],
    ["infinite-header-line", "HPE_HEADER_OVERFLOW"],
    ["infinite-trailers", "HPE_HEADER_OVERFLOW"],
    ["infinite-chunk-extension", "HPE_CHUNK_EXTENSIONS_OVERFLOW"],
    ["overflowing-chunk", "HPE_INVALID_CHUNK_SIZE"],
    ["bad-chunk", "HPE_INVALID_CHUNK_SIZE"],
    ["negative-chunk", "HPE_INVALID_CHUNK_SIZE"],
    ["chunk-without-end", "HPE_STRICT"],
    ["huge-length", "HPE_INVALID_CONTENT_LENGTH"],
    ["negative-length", "HPE_INVALID_CONTENT_LENGTH"],
    ["word-length", "HPE_INVALID_CONTENT_LENGTH"],
    ["two-lengths", "HPE_UNEXPECTED_CONTENT_LENGTH"],
    ["length-and-chunked", "HPE_INVALID_TRANSFER_ENCODING"],
    ["space-before-colon", "HPE_INVALID_HEADER_TOKEN"],
    ["header-without-colon", "HPE_INVALID_HEADER_TOKEN"],
    ["null-in-header", "HPE_INVALID_HEADER_TOKEN"],
    ["garbage", "HPE_INVALID_CONSTANT"],
    ["bad-status", "HPE_INVALID_STATUS"],
    ["bad-version", "HPE_INVALID_VERSION"],
    ["no-head", "HPE_INVALID_CONSTANT"],
    ["close", "ECONNRESET"],
    ["reset", "ECONNRESET"],
    ["half-head", "ECONNRESET"],
    ["half-body", "ECONNRESET"],
    ["half-chunk", "ECONNRESET"],
    ["reset-mid-body", "ECONNRESET"],
  ])("%s is rejected by Node with %s", async (behaviour, code) => {
    expect(await outcome(`${target.url}/${behaviour}`)).toBe(code);
  });

  it("answers /fine correctly after all others", async () => {
    expect(await outcome(`${target.url}/fine`)).toBe("answered");
    expect(target.served()).toMatchObject({ fine: 1, garbage: 1 });
  });
});

describe("before a request is read", () => {
  it.each<[AcceptBehaviour, string]>([
    ["close", "ECONNRESET"],
    ["reset", "ECONNRESET"],
    ["garbage", "HPE_INVALID_CONSTANT"],
  ])("%s is reported by Node as %s", async (onAccept, code) => {
    const own = await startHostileTarget({ onAccept });
    expect(await outcome(own.url)).toBe(code);
    await own.close();
  });
});

it("closes while clients hang or are being flooded", async () => {
  const own = await startHostileTarget();
  const behaviours: HostileBehaviour[] = ["hang", "infinite-body", "body-drip", "infinite-chunks"];
  const waiting = behaviours.map((name) => outcome(`${own.url}/${name}`));
  while (Object.keys(own.served()).length < behaviours.length) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  await own.close();
  expect(await Promise.all(waiting)).toHaveLength(behaviours.length);
});
