/** A client's token in a file, so that commands through different nodes are one session. (SESS-1..3) */

import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { SessionToken } from "../core/ledger/job/session-token.ts";
import { type JsonObject, LedgerClientError } from "./client.ts";

/** A new one where there is no file yet. */
export function openSession(file: string): SessionToken {
  if (!existsSync(file)) return new SessionToken();
  const token = SessionToken.parse(readFileSync(file, "utf8"));
  if (token === null) throw new LedgerClientError(`${file} is not the file of a session`);
  return token;
}

/** Records everything an answer shows of a job as seen. */
export function keepSession(file: string | undefined, body: JsonObject): void {
  if (file === undefined) return;
  const token = openSession(file);
  const job = body["job"] as JsonObject | undefined;
  const places: readonly (readonly [unknown, unknown])[] = [
    [body["jobId"], body["answer"] === "accepted" ? 0 : body["seq"]],
    [job?.["jobId"], job?.["appliedSeq"]],
  ];
  for (const [jobId, seq] of places) {
    if (typeof jobId === "string" && typeof seq === "number") token.saw(jobId, seq);
  }
  // Beside it and renamed: a process that ends in between leaves the session as it was.
  const written = `${file}.${process.pid}`;
  writeFileSync(written, `${token.toText()}\n`);
  renameSync(written, file);
}
