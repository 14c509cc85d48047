/** Bounds of a node's audit log, for every command that runs one. */

import type { Command } from "commander";
import { AUDIT_BYTES_MIN, AUDIT_DEFAULTS, type AuditBounds } from "../../audit/bounds.ts";
import { someTime, wholeNumberFrom } from "../option-values.ts";

export interface AuditFlags {
  readonly auditMaxBytes?: number;
  readonly auditKeepAge?: number;
}

export function withAuditLog(command: Command): Command {
  const bytes = wholeNumberFrom(AUDIT_BYTES_MIN);
  return command
    .option("--audit-max-bytes <n>", "keep at most so much audit log (default: 32 MiB)", bytes)
    .option("--audit-keep-age <time>", "remove older parts of it (default: 90d)", someTime);
}

export function auditBoundsOf(flags: AuditFlags): AuditBounds {
  return {
    bytesMax: flags.auditMaxBytes ?? AUDIT_DEFAULTS.bytesMax,
    ageMsMax: flags.auditKeepAge ?? AUDIT_DEFAULTS.ageMsMax,
  };
}
