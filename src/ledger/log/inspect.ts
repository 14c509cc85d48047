/** Looking at a log without changing a byte of it: for operators, and for a node that will not start. */

import { join } from "node:path";
import { type CheckpointHeader, readCheckpoint } from "../../core/ledger/log/checkpoint.ts";
import type { LogDirectory, SegmentFile } from "../../core/ledger/log/directory.ts";
import type { FileEntry } from "../../core/ledger/log/files.ts";
import { WAL_DEFAULTS } from "../../core/ledger/log/limits.ts";
import { isControlType, recordTypeName } from "../../core/ledger/log/record-types.ts";
import {
  type Recovered,
  type RecoveryRefusal,
  refusalText,
} from "../../core/ledger/log/recovery.ts";
import { ANY_IDENTITY, decodeSegmentHeader, segmentName } from "../../core/ledger/log/segment.ts";
import { checksum } from "./checksum.ts";
import { carryOut } from "./file-executor.ts";
import { readDirectory, readIndex, scanDirectory } from "./look.ts";
import { readSegmentHead } from "./reader.ts";

type LogVerdict =
  /** Whole, or empty. */
  | "sound"
  /** Sound; the last batch was never acknowledged and will be cut when the log is opened. */
  | "torn-tail"
  | "corrupt"
  /** Another version, foreign files or records of unknown type: a node will not start on it. */
  | "refused";

interface SegmentReport {
  readonly file: string;
  readonly bytes: number;
  readonly state: "sealed" | "active" | "prepared" | "unread";
  readonly identity: string | null;
  readonly firstLsn: number | null;
  readonly lastLsn: number | null;
  readonly usedBytes: number | null;
  readonly entries: number;
  readonly index: "present" | "missing" | "damaged" | "not needed";
}

interface CheckpointReport {
  readonly file: string;
  readonly problem: string | null;
  readonly header: CheckpointHeader | null;
}

export interface LogReport {
  readonly directory: string;
  readonly verdict: LogVerdict;
  /** Damage found, as text; null if there is none. */
  readonly detail: string | null;
  readonly entries: number;
  readonly firstLsn: number;
  readonly maxLsn: number;
  readonly maxHlc: { readonly wall: number; readonly logical: number };
  readonly types: Readonly<Record<string, number>>;
  readonly segments: readonly SegmentReport[];
  readonly checkpoints: readonly CheckpointReport[];
  readonly temporary: readonly string[];
  readonly foreign: readonly string[];
}

export async function inspectLog(path: string): Promise<LogReport> {
  const directory = await readDirectory(path);
  const types: Record<string, number> = {};
  const entriesOf = new Map<number, number>();
  const seen = { entries: 0, first: 0, last: 0, wall: 0, logical: 0 };
  const outcome = await scanDirectory(path, directory, {
    config: WAL_DEFAULTS,
    identity: ANY_IDENTITY,
    onRecord: ({ type, lsn, wall, logical }, { segmentId }) => {
      const name = recordTypeName(type);
      types[name] = (types[name] ?? 0) + 1;
      if (!isControlType(type)) {
        entriesOf.set(segmentId, (entriesOf.get(segmentId) ?? 0) + 1);
        seen.entries++;
      }
      if (seen.first === 0) seen.first = lsn;
      seen.last = lsn;
      seen.wall = wall;
      seen.logical = logical;
    },
  });
  const good = outcome.ok ? outcome : null;
  const checkpoints = await Promise.all(
    directory.checkpoints.map((file) => checkpointReport(path, file)),
  );
  const segments = await Promise.all(
    directory.segments.map((file) => segmentReport(path, file, good, entriesOf)),
  );
  return {
    directory: path,
    ...judge(directory, good, outcome.ok ? null : outcome.refusal, checkpoints),
    entries: seen.entries,
    firstLsn: seen.first,
    maxLsn: seen.last,
    maxHlc: good?.maxHlc ?? { wall: seen.wall, logical: seen.logical },
    types,
    segments,
    checkpoints,
    temporary: directory.temporary,
    foreign: directory.foreign,
  };
}

function judge(
  directory: LogDirectory,
  good: Recovered | null,
  refusal: RecoveryRefusal | null,
  checkpoints: readonly CheckpointReport[],
): { readonly verdict: LogVerdict; readonly detail: string | null } {
  if (refusal !== null) {
    const verdict = refusal.code === "WAL_CORRUPT" ? "corrupt" : "refused";
    return { verdict, detail: refusalText(refusal, ANY_IDENTITY) };
  }
  if (directory.foreign.length > 0) {
    return { verdict: "refused", detail: `no files of a log: ${directory.foreign.join(", ")}` };
  }
  const broken = checkpoints.find(({ problem }) => problem !== null);
  if (broken !== undefined)
    return { verdict: "corrupt", detail: `${broken.file}: ${broken.problem}` };
  const torn = good?.tornTail ?? null;
  if (torn === null) return { verdict: "sound", detail: null };
  const where = `${segmentName(torn.segmentId)} at offset ${torn.offset} (${torn.reason})`;
  return {
    verdict: "torn-tail",
    detail: `${where}: what follows was never acknowledged; LSN ${torn.lsn} is the next`,
  };
}

async function checkpointReport(path: string, file: FileEntry): Promise<CheckpointReport> {
  const found = await carryOut(path, readCheckpoint(file.name, file.bytes, { checksum }));
  return typeof found === "string"
    ? { file: file.name, problem: found, header: null }
    : { file: file.name, problem: null, header: found };
}

async function segmentReport(
  path: string,
  { segmentId, bytes, name }: SegmentFile,
  outcome: Recovered | null,
  entriesOf: ReadonlyMap<number, number>,
): Promise<SegmentReport> {
  const verdict = decodeSegmentHeader(await readSegmentHead(join(path, name)));
  const header = verdict.kind === "header" ? verdict.header : null;
  const summary = outcome?.segments.find((candidate) => candidate.segmentId === segmentId);
  const active = outcome?.position.active?.segmentId === segmentId;
  const sealed = summary !== undefined && !active;
  const unused = verdict.kind === "unused" ? "prepared" : "unread";
  const index = await readIndex(path, segmentId);
  const stale = index !== null && summary !== undefined && index.coveredBytes !== summary.endOffset;
  return {
    file: segmentName(segmentId),
    bytes,
    state: active ? "active" : sealed ? "sealed" : unused,
    identity: header?.identity ?? null,
    firstLsn: header?.firstLsn ?? null,
    lastLsn: summary?.lastLsn ?? null,
    usedBytes: summary?.endOffset ?? null,
    entries: entriesOf.get(segmentId) ?? 0,
    index: !sealed ? "not needed" : index === null ? "missing" : stale ? "damaged" : "present",
  };
}
