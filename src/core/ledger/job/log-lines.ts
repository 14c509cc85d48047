/**
 * The operational messages of the ledger: exact texts and levels, so that alerts and runbooks can rest on
 * them. The logger adds time, level and place. (LOGX-1)
 */

import type { JobEventKind } from "./events.ts";
import type { JobId } from "./job-id.ts";

export type LogLevel = "DEBUG" | "INFO" | "WARNING";

export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
}

export const LEDGER_LOG_PATH = "hyperscale.ledger.log.json";

const debug = (message: string): LogLine => ({ level: "DEBUG", message });
const info = (message: string): LogLine => ({ level: "INFO", message });
const warning = (message: string): LogLine => ({ level: "WARNING", message });

export const logLines = {
  openingWal: (dir: string) => info(`Opening WAL at ${dir}`),
  walRecovered: (entries: number, maxLsn: number) =>
    info(`WAL recovery complete: ${entries} entries, max_lsn=${maxLsn}`),
  recoveringFromCheckpoint: (id: string, lsn: number) =>
    info(`Recovering from checkpoint ${id} at LSN ${lsn}`),
  replaying: (entries: number) =>
    info(`Recovery: replaying ${entries} WAL entries after checkpoint`),
  noCheckpoint: () => warning("No checkpoint found, full WAL replay required"),
  eventWritten: (type: JobEventKind, jobId: JobId, lsn: number) =>
    debug(`Event ${type} for job ${jobId} written to WAL at LSN ${lsn}`),
  eventRegional: (lsn: number) => debug(`Event LSN ${lsn} committed to regional consensus`),
  eventGlobal: (lsn: number) => info(`Event LSN ${lsn} committed to global ledger`),
  creatingCheckpoint: (lsn: number) => info(`Creating checkpoint at LSN ${lsn}`),
  checkpointCreated: (id: string, lsn: number) => info(`Checkpoint ${id} created at LSN ${lsn}`),
  circuitOpened: (dc: string, failures: number) =>
    warning(`Circuit to ${dc} OPENED after ${failures} failures`),
  circuitClosed: (dc: string) => info(`Circuit to ${dc} CLOSED after recovery`),
  replayed: (operations: number, dc: string) =>
    info(`Replayed ${operations} queued operations to ${dc}`),
} as const;
