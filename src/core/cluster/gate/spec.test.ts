import { expect, it } from "vitest";
import { submission } from "../manager/testing/world.ts";
import { decodeSpec, encodeSpec, redactSpec } from "./spec.ts";

const routing = {
  ...{ datacenters: [], count: 1, prefer: [], strict: false, weights: [], each: false },
};

it("redacts the values of variables, and nothing else", () => {
  const job = submission({ overrides: { vus: 2, env: { API_PASSWORD: "hunter2", SHOP: "x" } } });
  const shown = redactSpec(encodeSpec({ submission: job, routing }));
  expect(Buffer.from(shown).toString("latin1")).not.toContain("hunter2");
  const overrides = { vus: 2, env: { API_PASSWORD: "***", SHOP: "***" } };
  expect(decodeSpec(shown)).toEqual({ submission: { ...job, overrides }, routing });
});

it("leaves a description without variables, or of another kind, unchanged", () => {
  const plain = encodeSpec({ submission: submission(), routing });
  expect(redactSpec(plain)).toBe(plain);
  const other = new Uint8Array([1, 2, 3]);
  expect(redactSpec(other)).toBe(other);
});
