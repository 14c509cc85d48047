/** Results of a load test: stored with its task, and evaluated. */

import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { errorText } from "../../core/base/error-text.ts";
import { type ExecutionContext, NotRetryable } from "../worker/executor.ts";
import { type LoadtestFolder, readResult } from "./loadtest-folder.ts";

/** Leaves space for the rest of the result within the limit on payloads. */
const SUMMARY_CHARACTERS_MAX = 768 * 1024;

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  ".json": "application/json",
  ".html": "text/html; charset=utf-8",
  ".csv": "text/csv; charset=utf-8",
  ".xml": "application/xml",
};

/** Attaches the files of the run to the task; one that is too large stays on this node, and is named. */
export async function leaveFiles(
  { kept, out, user }: LoadtestFolder,
  context: ExecutionContext,
): Promise<{ readonly files: readonly string[]; readonly left_on_node?: readonly string[] }> {
  const files: string[] = [];
  const left: string[] = [];
  for (const { name } of readdirSync(out, { withFileTypes: true }).filter((one) => one.isFile())) {
    const content = readResult(join(out, name), user);
    try {
      const type = MEDIA_TYPES[extname(name)];
      await context.attach(name, content, type);
      files.push(name);
    } catch (error) {
      context.signal.throwIfAborted();
      const place = join(kept, name);
      if (kept !== out) {
        mkdirSync(kept, { recursive: true, mode: 0o700 });
        writeFileSync(place, content, { mode: 0o600 });
      }
      context.log(`${place} could not be stored: ${errorText(error)}`);
      left.push(place);
    }
  }
  if (left.length > 0) return { files, left_on_node: left };
  // Another user may replace files in their folder by links: closing the folder removes it as that user.
  if (user === null) rmSync(out, { recursive: true, force: true });
  return { files };
}

type Summary = Readonly<Record<string, unknown>>;

/** Null without a summary. */
export function summaryIn({ out, user }: LoadtestFolder): Summary | null {
  const file = join(out, "summary.json");
  if (!existsSync(file)) return null;
  const summary: unknown = JSON.parse(readResult(file, user).toString("utf8"));
  if (summary === null || typeof summary !== "object")
    throw new NotRetryable("the summary of the load test is not an object");
  return summary as Summary;
}

export function reasonsOf(summary: Summary): string {
  const reasons = summary["reasons"];
  const own = Array.isArray(reasons) ? reasons.map(String).join("; ") : "";
  const doubt = doubtIn(summary);
  const text = own === "" && doubt !== null ? `not to be trusted: ${doubt}` : own;
  return (text === "" ? "a threshold or check failed" : text).slice(0, 2_000);
}

/** Reason for an untrusted result; null when it is trusted. */
export function doubtIn(summary: Summary): string | null {
  const { reasons = [], trusted = true } = Object(summary["trust"]) as {
    readonly trusted?: boolean;
    readonly reasons?: readonly { readonly text: string }[];
  };
  return trusted ? null : reasons.map(({ text }) => text).join(", and ");
}

/** The whole summary where it can be stored; else its parts from small to large, and which are missing. */
export function bounded(summary: Summary): { summary: Summary; omitted: readonly string[] } {
  const parts = Object.entries(summary)
    .map(([name, part]) => ({ name, part, size: JSON.stringify(part)?.length ?? 0 }))
    .sort((a, b) => a.size - b.size);
  let size = 0;
  const kept = new Set<string>();
  for (const part of parts) {
    size += part.size + part.name.length;
    if (size <= SUMMARY_CHARACTERS_MAX) kept.add(part.name);
  }
  return {
    summary: Object.fromEntries(Object.entries(summary).filter(([name]) => kept.has(name))),
    omitted: parts.filter(({ name }) => !kept.has(name)).map(({ name }) => name),
  };
}
