import { describe, expect, it } from "vitest";
import { failureOf } from "./failure.ts";

const trap = () => {
  throw new Error("trap");
};

describe("the stored failure of a thrown value", () => {
  it.each([
    ["an object whose fields throw", new Proxy({}, { get: trap, getPrototypeOf: trap })],
    ["an object without a text", Object.create(null)],
    ["an error whose message throws", Object.defineProperty(new Error(), "message", { get: trap })],
  ])("names %s as unreadable", (_, thrown) => {
    expect(failureOf(thrown)).toEqual({ message: "a value that cannot be read was thrown" });
  });

  it("keeps the message of an error whose cause throws", () => {
    const error = Object.defineProperty(new Error("disk full"), "cause", { get: trap });
    expect(failureOf(error)).toEqual({ message: "disk full" });
  });

  it("keeps a message that is not text as text", () => {
    expect(failureOf(Object.assign(new Error(), { message: 7 }))).toMatchObject({ message: "7" });
  });
});
