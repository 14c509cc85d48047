import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { AUDIT_DEFAULTS } from "../../audit/bounds.ts";
import { auditBoundsOf, withAuditLog } from "./audit-options.ts";

function read(...args: readonly string[]) {
  const command = withAuditLog(new Command()).exitOverride();
  command.configureOutput({ writeErr: () => undefined });
  return auditBoundsOf(command.parse(args, { from: "user" }).opts());
}

describe("the flags of an audit log", () => {
  it("have defaults, and are read with their units", () => {
    expect(read()).toEqual(AUDIT_DEFAULTS);
    expect(read("--audit-max-bytes", "3145728", "--audit-keep-age", "7d")).toEqual({
      bytesMax: 3_145_728,
      ageMsMax: 604_800_000,
    });
  });

  it.each([
    ["--audit-max-bytes", "3145727"],
    ["--audit-max-bytes", ""],
    ["--audit-keep-age", "0s"],
    ["--audit-keep-age", "long"],
  ])("reject %s %s", (flag, value) => {
    expect(() => read(flag, value)).toThrow(flag);
  });
});
