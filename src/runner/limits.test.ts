import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { needs } from "../../test/needs.ts";
import {
  checkDescriptors,
  checkPorts,
  DESCRIPTORS_RESERVED,
  type DescriptorLimits,
  judgeDescriptors,
  judgePorts,
  parsePortRange,
  parseProcLimits,
  raisedTo,
  readDescriptorLimits,
  readPortRange,
  type System,
} from "./limits.ts";

const limits = (soft: number, hard = soft): DescriptorLimits => ({
  soft,
  hard,
  ceiling: 1_048_576,
});
const user: System = { platform: "linux", user: "ada", root: false };
const root: System = { platform: "linux", user: "root", root: true };
const mac: System = { platform: "darwin", user: "ada", root: false };

function problemOf(check: ReturnType<typeof judgeDescriptors>): string {
  if (check.ok) throw new Error("expected a problem");
  return check.problem;
}

describe("open files", () => {
  it("suffice exactly up to the limit less what the process needs itself", () => {
    expect(judgeDescriptors(1_000 - DESCRIPTORS_RESERVED, limits(1_000), user).ok).toBe(true);
    const over = judgeDescriptors(1_001 - DESCRIPTORS_RESERVED, limits(1_000), user);
    expect(over).toMatchObject({ ok: false, possible: 1_000 - DESCRIPTORS_RESERVED });
  });

  it("can be raised in the shell when the hard limit allows it", () => {
    const problem = problemOf(judgeDescriptors(5_000, limits(1_024, 8_192), user));
    expect(problem).toContain("5000 connections need 5064 open files");
    expect(problem).toContain("this process may have 1024");
    expect(problem).toContain("ulimit -n 5064");
  });

  it("need an administrator above the hard limit, with the lines to write", () => {
    const problem = problemOf(judgeDescriptors(50_000, limits(1_024, 4_096), user));
    expect(problem).toContain("ada hard nofile 50064");
    expect(problem).toContain("LimitNOFILE=50064");
    expect(problem).not.toContain("nr_open");
    expect(problem).not.toMatch(/ulimit -n /);
  });

  it("above the kernel's own ceiling need that raised as well", () => {
    const problem = problemOf(judgeDescriptors(2_000_000, limits(4_096), root));
    expect(problem).toContain("fs.nr_open=2000064");
    expect(problem).toContain("ulimit -n 2000064");
  });

  it("on macOS are raised by launchctl", () => {
    expect(problemOf(judgeDescriptors(50_000, limits(256, 10_240), mac))).toContain(
      "launchctl limit maxfiles 50064 50064",
    );
  });

  it("never run out when unlimited", () => {
    expect(judgeDescriptors(10_000_000, limits(Number.POSITIVE_INFINITY), user).ok).toBe(true);
  });
});

describe("raising the limit automatically", () => {
  it.each([
    ["enough already", 1_000, limits(1_024), user, null],
    ["up to the hard limit", 2_000, limits(1_024, 4_096), user, { soft: 2_000, hard: 4_096 }],
    ["over the hard limit, not root", 5_000, limits(1_024, 4_096), user, null],
    ["over the hard limit, root", 5_000, limits(1_024, 4_096), root, { soft: 5_000, hard: 5_000 }],
    ["over the kernel's ceiling", 2_000_000, limits(1_024), root, null],
    ["no prlimit on macOS", 2_000, limits(1_024, 4_096), mac, null],
  ])("%s", (_, needed, given, system, expected) => {
    expect(raisedTo(needed, given, system)).toEqual(expected);
  });
});

describe("local ports", () => {
  const range = { low: 32_768, high: 60_999, reserved: 0 };
  const remote = { remoteIsLoopback: false, platform: "linux" } as const;

  it("allow exactly as many connections as the range has", () => {
    expect(judgePorts(28_232, range, remote)).toMatchObject({ ok: true, possible: 28_232 });
    expect(judgePorts(28_233, range, remote).ok).toBe(false);
    expect(judgePorts(28_232, { ...range, reserved: 1 }, remote).ok).toBe(false);
  });

  it("come with the line that widens the range just far enough", () => {
    const some = problemOf(judgePorts(50_000, range, remote));
    expect(some).toContain("this machine has 28232 (32768 to 60999)");
    expect(some).toContain('sysctl -w net.ipv4.ip_local_port_range="10000 65535"');
    expect(some).toContain("at most 28232 virtual users");
    expect(problemOf(judgePorts(60_000, range, remote))).toContain('"1024 65535"');
  });

  it("cannot exceed the number of ports", () => {
    const problem = problemOf(judgePorts(70_000, range, remote));
    expect(problem).toContain("No setting gives more than 64512");
    expect(problem).not.toContain("sysctl");
  });

  it("to this machine can be spread over the loopback addresses", () => {
    const here = { ...remote, remoteIsLoopback: true };
    expect(problemOf(judgePorts(50_000, range, here))).toContain("127.0.0.2");
    expect(problemOf(judgePorts(50_000, range, remote))).not.toContain("127.0.0.2");
  });

  it("are widened by each system's own command", () => {
    const on = (platform: NodeJS.Platform) =>
      problemOf(judgePorts(50_000, range, { remoteIsLoopback: true, platform }));
    expect(on("darwin")).toContain("net.inet.ip.portrange.first=10000");
    expect(on("win32")).toContain("netsh int ipv4 set dynamicport tcp start=10000 num=55536");
  });
});

describe("limits of the system", () => {
  it("are read from /proc/self/limits", () => {
    const line = (soft: string, hard: string) =>
      `Max processes  1 1 processes\nMax open files            ${soft}   ${hard}   files     \n`;
    expect(parseProcLimits(line("1024", "524288"))).toEqual({ soft: 1_024, hard: 524_288 });
    expect(parseProcLimits(line("1024", "unlimited"))?.hard).toBe(Number.POSITIVE_INFINITY);
    expect(parseProcLimits("")).toBeNull();
    expect(parseProcLimits(line("many", "more"))).toBeNull();
  });

  it("count only those reserved ports that are in the range", () => {
    expect(parsePortRange("32768\t60999\n", "8080,40000-40009,60999-61005\n")).toEqual({
      low: 32_768,
      high: 60_999,
      reserved: 11,
    });
    expect(parsePortRange("", "")).toBeNull();
    expect(parsePortRange("5 4", "")).toBeNull();
  });

  const isPosix = process.platform !== "win32";
  it("agree with the shell", needs(isPosix, "Windows has no such limits"), () => {
    const hard = spawnSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" }).stdout.trim();
    expect(String(readDescriptorLimits()?.hard)).toBe(hard === "unlimited" ? "Infinity" : hard);
    const range = readPortRange(process.platform);
    expect(range.high).toBeGreaterThan(range.low);
  });

  it("allow a handful of connections", () => {
    expect(checkDescriptors(8)).toMatchObject({ ok: true, raisedFrom: null });
    expect(checkPorts(8, true).ok).toBe(true);
    expect(checkPorts(70_000, true).ok).toBe(false);
  });

  // Only root with CAP_SYS_RESOURCE may: a child's limit is raised over its hard limit.
  const mayRaise =
    spawnSync("prlimit", ["--nofile=500:500", "prlimit", "--nofile=964:964", "true"]).status === 0;
  const NOT_RAISED = "hard limits may not be raised here, or no prlimit (package util-linux)";
  it("are raised for real where permitted", needs(mayRaise, NOT_RAISED), () => {
    const module = fileURLToPath(new URL("./limits.ts", import.meta.url));
    const script = `import { checkDescriptors } from ${JSON.stringify(module)};
        console.log(JSON.stringify(checkDescriptors(900)));`;
    const child = spawnSync(
      "sh",
      ["-c", 'ulimit -n 500 && exec "$@"', "sh", process.execPath, "--import", "tsx", "-e", script],
      { encoding: "utf8" },
    );
    const check: unknown = JSON.parse(child.stdout);
    expect(check).toEqual({ ok: true, possible: 900, raisedFrom: 500 });
  });
});
