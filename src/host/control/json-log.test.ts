import { describe, expect, it } from "vitest";
import { JsonLog } from "./json-log.ts";

describe("a JSON log", () => {
  it("writes one object per line with level, time, node and event", () => {
    const lines: string[] = [];
    const log = new JsonLog("info", { node: "n1" }, { write: (line) => lines.push(line) });
    log.event("warn", "node.aged", { member: 'a"\n', count: 2, list: [1, 2], none: undefined });
    expect(lines).toHaveLength(1);
    expect(lines[0]?.endsWith("\n")).toBe(true);
    const { at, ...rest } = JSON.parse(lines[0] ?? "") as Record<string, unknown>;
    expect(Number.isNaN(Date.parse(String(at)))).toBe(false);
    expect(rest).toEqual({
      ...{ level: "warn", node: "n1", event: "node.aged" },
      ...{ member: 'a"\n', count: 2, list: [1, 2] },
    });
  });

  it.each([
    ["silent", []],
    ["error", ["error"]],
    ["info", ["error", "warn", "info"]],
    ["debug", ["error", "warn", "info", "debug"]],
  ] as const)("at %s writes and is enabled for %j", (threshold, written) => {
    const lines: string[] = [];
    const log = new JsonLog(threshold, {}, { write: (line) => lines.push(line) });
    const levels = ["error", "warn", "info", "debug"] as const;
    for (const level of levels) log.event(level, level, {});
    expect(lines.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual(written);
    expect(levels.filter((level) => log.enabled(level))).toEqual(written);
  });
});
