import { expect, it } from "vitest";
import { absentPrograms, isPresent } from "./test-programs.mjs";

const PROGRAMS = [
  { names: ["browser", "other-browser"], package: "browser", neededBy: "pages" },
  { names: ["tracer"], package: "tracer", neededBy: "errors" },
];

it("installs nothing that is there under one of its names", () => {
  const absent = (...there: string[]) =>
    absentPrograms(PROGRAMS, (name) => there.includes(name)).map((program) => program.package);
  expect(absent()).toEqual(["browser", "tracer"]);
  expect(absent("other-browser")).toEqual(["tracer"]);
  expect(absent("browser", "tracer")).toEqual([]);
});

it("finds programs on the path, and no others", () => {
  expect(isPresent("sh")).toBe(true);
  expect(isPresent("no-such-program-of-any-machine")).toBe(false);
});
