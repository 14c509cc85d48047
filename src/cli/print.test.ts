/** Text from servers, peers or files never controls a terminal. (M1 of the attack on our security) */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { showJob } from "./commands/ledger-views.ts";
import { complain, jsonText } from "./print.ts";

const HOSTILE = "name\u001b]0;owned\u0007\u001b[2J\u009b31m\u202eend";

afterEach(() => vi.restoreAllMocks());

describe("output of a command", () => {
  it("on stderr has no escape codes, and its lines stay lines", () => {
    const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    complain(`hyperscale: ${HOSTILE}\n  at ${HOSTILE}`);
    expect(write.mock.calls).toEqual([["hyperscale: nameend\n  at nameend\n"]]);
  });

  it("as JSON has the same meaning and shows every character", () => {
    const text = jsonText({ name: HOSTILE, tag: "\u{e0001}" });
    expect(JSON.parse(text)).toEqual({ name: HOSTILE, tag: "\u{e0001}" });
    expect(text).toMatch(/^[\x20-\x7e]*$/);
  });

  it("of a job is clean, whatever its submitter wrote", () => {
    const spec = Buffer.from(HOSTILE).toString("base64");
    const job = { jobId: HOSTILE, status: HOSTILE, spec, assignedDcs: [HOSTILE] };
    const cancellation = { reason: HOSTILE, requestor: HOSTILE };
    const text = showJob({ job: { ...job, cancellation, end: null }, members: [HOSTILE] });
    expect(text).toMatch(/^[\x20-\x7e\n]*$/);
  });

  it("goes through one module: no command writes to stderr by itself", () => {
    // The picture of ping is drawn, and sanitises the server's text before.
    const painted = new Set(["commands/ping.ts"]);
    const sources = readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" }).filter(
      (file) => file.endsWith(".ts") && !file.endsWith(".test.ts") && !painted.has(file),
    );
    const direct = sources.filter((file) =>
      readFileSync(join(import.meta.dirname, file), "utf8").includes("process.stderr.write"),
    );
    expect(direct).toEqual(["print.ts"]);
  });
});
