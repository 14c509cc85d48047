import { describe, expect, it } from "vitest";
import { effectiveSettings, readSettings, SETTINGS, variableOf } from "./settings.ts";

const read = (
  values: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string>> = {},
): {
  readonly problems: readonly string[];
  readonly settings: Readonly<Record<string, number>>;
} => {
  const problems: string[] = [];
  const settings = readSettings("manager", { file: "m1.json", values }, env, problems);
  return { problems, settings };
};

describe("settings", () => {
  it("have their defaults, and only those of the role", () => {
    const { problems, settings } = read({});
    expect(problems).toEqual([]);
    expect(settings["workerTimeout"]).toBe(3_000);
    expect(settings).not.toHaveProperty("isolation");
  });

  it("take durations with a unit and plain seconds, and sizes (CFG-2)", () => {
    const { settings } = read({ workerTimeout: "1m30s", lease: 2, blobStore: "512MiB" });
    expect(settings).toMatchObject({ workerTimeout: 90_000, lease: 2_000, blobStore: 536_870_912 });
    expect(read({ workerTimeout: "5" }).settings["workerTimeout"]).toBe(5_000);
  });

  it("are overruled by the environment", () => {
    const env = { HYPERSCALE_WORKER_TIMEOUT: "7s" };
    expect(read({ workerTimeout: "5s" }, env).settings["workerTimeout"]).toBe(7_000);
  });

  it("are logged with their effective values and without secrets (CFG-3)", () => {
    const { settings } = read({ workerTimeout: "1m30s", blobStore: "512MiB" });
    const effective = effectiveSettings("manager", settings);
    expect(effective).toMatchObject({ workerTimeout: "1m30s", blobStore: "512MiB" });
    // All of the role and nothing else; who reads them again has the same.
    expect(Object.keys(effective).sort()).toEqual(Object.keys(settings).sort());
    expect(read(effective)).toEqual({ problems: [], settings });
    expect(
      Object.keys(effective).filter((name) => /secret|token|password|key$/i.test(name)),
    ).toEqual([]);
  });

  it("name every mistake at once, with its place (CFG-1)", () => {
    const values = { workerTimeout: "soon", processesPerCore: 99, isolation: "1m", orderRetry: "" };
    const { problems } = read(values, { HYPERSCALE_LEASE: "1ms" });
    expect(problems).toEqual([
      "m1.json: settings.isolation: a manager has no such setting",
      "HYPERSCALE_LEASE: 1ms is not between 300ms and 10m00s",
      expect.stringMatching(/^m1.json: settings.workerTimeout: "soon" is not a duration/),
      expect.stringMatching(/^m1.json: settings.orderRetry: a duration is empty/),
      "m1.json: settings.processesPerCore: 99 is not between 1 and 8",
    ]);
  });

  it("each have a variable of their own and a default within their bounds", () => {
    const names = Object.keys(SETTINGS);
    expect(new Set(names.map(variableOf)).size).toBe(names.length);
    for (const { least, most, value } of Object.values(SETTINGS)) {
      expect(value).toBeGreaterThanOrEqual(least);
      expect(value).toBeLessThanOrEqual(most);
    }
  });
});
