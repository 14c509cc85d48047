/** Compile-time checks of body types: `tsc` decides, and the run only checks that the file loads. */

import { Readable } from "node:stream";
import { expect, it } from "vitest";
import type { RequestOptions } from "./request.ts";

interface Order {
  readonly id: number;
  readonly items: readonly string[];
}
const order: Order = { id: 1, items: ["tea"] };

const accepted: readonly RequestOptions["body"][] = [
  "text",
  { hello: "world", nested: { deep: [1, null, undefined] } },
  order,
  [order, order],
  new Uint8Array(3),
  new Float64Array(3),
  new DataView(new ArrayBuffer(3)),
  new ArrayBuffer(3),
  new Blob(["x"]),
  new FormData(),
  new URLSearchParams(),
  new ReadableStream(),
  Readable.from(["x"]),
  (async function* () {
    yield "x";
  })(),
];

// @ts-expect-error a Map is not plain data
const map: RequestOptions["body"] = new Map();
// @ts-expect-error a Set is not plain data
const set: RequestOptions["body"] = new Set();
// @ts-expect-error a promise has to be awaited
const promise: RequestOptions["body"] = Promise.resolve("x");
// @ts-expect-error a function has to be called
const fn: RequestOptions["body"] = () => "x";
// @ts-expect-error a pattern is not plain data
const pattern: RequestOptions["body"] = /x/;
// @ts-expect-error a number alone is no body: say json
const number: RequestOptions["body"] = 7;
// @ts-expect-error no body is left out
const none: RequestOptions["body"] = null;
// @ts-expect-error a field is a value or a file, not an object
const form: RequestOptions["form"] = { nested: { a: 1 } };

it("loads", () => {
  const refused = [map, set, promise, fn, pattern, number, none, form];
  expect(accepted.length + refused.length).toBe(22);
});
