/**
 * The operational messages of the ledger: exact texts and levels, so that alerts and runbooks can rest on
 * them. The logger adds time, level and place. (LOGX-1)
 */

type LogLevel = "INFO" | "WARNING";

export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
}

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
  creatingCheckpoint: (lsn: number) => info(`Creating checkpoint at LSN ${lsn}`),
  circuitOpened: (datacenter: string, failures: number) =>
    warning(`Circuit to ${datacenter} OPENED after ${failures} failures`),
  circuitClosed: (datacenter: string) => info(`Circuit to ${datacenter} CLOSED after recovery`),
  circuitReplayed: (datacenter: string, operations: number) =>
    info(`Replayed ${operations} queued operations to ${datacenter}`),
  checkpointCreated: (id: string, lsn: number) => info(`Checkpoint ${id} created at LSN ${lsn}`),
} as const;
