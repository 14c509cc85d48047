import { expect, it } from "vitest";
import { withoutNul } from "./postgres.ts";

it("strips the characters that PostgreSQL cannot store, and no others", () => {
  const value = { a: "x\u0000y\u0000", b: "\\u0000", c: "\\\u0000", d: "\u0001" };
  expect(JSON.parse(withoutNul(JSON.stringify(value)))).toEqual({ ...value, a: "xy", c: "\\" });
});
