import { expect, it } from "vitest";
import { withoutNul } from "./postgres.ts";

it("strips the characters that PostgreSQL cannot store, and no others", () => {
  const told = { a: "x\u0000y\u0000", b: "\\u0000", c: "\\\u0000", d: "\u0001" };
  expect(JSON.parse(withoutNul(JSON.stringify(told)))).toEqual({ ...told, a: "xy", c: "\\" });
});
