import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { LOG_FILE_DEFAULTS } from "../../host/control/rotating-file.ts";
import { logFileOf, withLogFile } from "./log-options.ts";

function read(...args: readonly string[]) {
  const command = withLogFile(new Command()).exitOverride();
  command.configureOutput({ writeErr: () => undefined });
  return logFileOf(command.parse(args, { from: "user" }).opts());
}

describe("the flags of a log file", () => {
  it("are ignored without --log, and have defaults with it", () => {
    expect(read("--log-keep", "3")).toBeUndefined();
    expect(read("--log", "a.log")).toEqual({ path: "a.log", ...LOG_FILE_DEFAULTS });
  });

  it("are read with their units", () => {
    const flags = ["--log-max-bytes", "65536", "--log-max-age", "1h", "--log-keep", "0"];
    expect(read("--log", "a.log", ...flags, "--log-keep-age", "2d")).toEqual({
      ...{ path: "a.log", bytesMax: 65_536, ageMsMax: 3_600_000 },
      ...{ filesMax: 0, keepMsMax: 172_800_000 },
    });
  });

  it.each([
    ["--log-max-bytes", "65535"],
    ["--log-max-bytes", "1e999"],
    ["--log-keep", "-1"],
    ["--log-keep", "x"],
    ["--log-max-age", "0s"],
    ["--log-keep-age", "soon"],
  ])("reject %s %s", (flag, value) => {
    expect(() => read("--log", "a.log", flag, value)).toThrow(flag);
  });
});
