import { expect, it } from "vitest";
import { skippedBlock } from "./count-reporter.mjs";
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

it("names what was skipped under its reason, a group by its name and count", () => {
  const page = { reason: "no browser", file: "page.test.ts" };
  const text = skippedBlock([
    { ...page, path: ["the page", "opens"] },
    { ...page, path: ["the page", "closes"] },
    { reason: "root may write anywhere", file: "log.test.ts", path: ["the log", "is read-only"] },
  ]);
  expect(text.split("\n")).toEqual([
    "",
    "skipped:",
    "  no browser",
    "    page.test.ts > the page (2 tests)",
    "  root may write anywhere",
    "    log.test.ts > the log > is read-only",
    "",
  ]);
  expect(skippedBlock([])).toBe("");
});
