import { describe, expect, it } from "vitest";
import { JsonLog } from "./json-log.ts";
import { TerminalLog } from "./terminal-log.ts";

describe("the log of a service in a terminal", () => {
  it("has a readable line for each event, without foreign escape codes", () => {
    const lines: string[] = [];
    const log = new JsonLog(
      "info",
      { node: "n" },
      new TerminalLog({ write: (line) => lines.push(line) }),
    );
    log.event("warn", "leader.call_failed", { count: 2, reason: "no \x1b[31manswer" });
    log.event("info", "node.joined", {});
    expect(lines).toEqual([
      expect.stringMatching(
        /^\d\d:\d\d:\d\d warn {2}leader\.call_failed {2}count=2 reason=no [^\x1b]*answer\n$/,
      ),
      expect.stringMatching(/^\d\d:\d\d:\d\d info {2}node\.joined\n$/),
    ]);
  });
});
