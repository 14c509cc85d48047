import { expect, it } from "vitest";
import { type LogLine, logLines } from "./log-lines.ts";

it("operational messages keep their texts and levels (LOGX-1)", () => {
  const lines: readonly LogLine[] = [
    logLines.openingWal("data/wal"),
    logLines.walRecovered(12, 34),
    logLines.recoveringFromCheckpoint("c1", 30),
    logLines.replaying(4),
    logLines.noCheckpoint(),
    logLines.creatingCheckpoint(100),
    logLines.checkpointCreated("c2", 100),
    logLines.circuitOpened("eu", 5),
    logLines.circuitClosed("eu"),
    logLines.circuitReplayed("eu", 3),
  ];
  expect(lines).toHaveLength(Object.keys(logLines).length);
  expect(lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
    "INFO Opening WAL at data/wal",
    "INFO WAL recovery complete: 12 entries, max_lsn=34",
    "INFO Recovering from checkpoint c1 at LSN 30",
    "INFO Recovery: replaying 4 WAL entries after checkpoint",
    "WARNING No checkpoint found, full WAL replay required",
    "INFO Creating checkpoint at LSN 100",
    "INFO Checkpoint c2 created at LSN 100",
    "WARNING Circuit to eu OPENED after 5 failures",
    "INFO Circuit to eu CLOSED after recovery",
    "INFO Replayed 3 queued operations to eu",
  ]);
});
