import { expect, it } from "vitest";
import { LEDGER_LOG_PATH, type LogLine, logLines } from "./log-lines.ts";
import { JOB } from "./testing/events.ts";

it("operational messages have the texts and levels they have always had (LOGX-1)", () => {
  const lines: readonly LogLine[] = [
    logLines.openingWal("data/wal"),
    logLines.walRecovered(12, 34),
    logLines.recoveringFromCheckpoint("c1", 30),
    logLines.replaying(4),
    logLines.noCheckpoint(),
    logLines.eventWritten("JobCreated", JOB, 7),
    logLines.eventRegional(7),
    logLines.eventGlobal(7),
    logLines.creatingCheckpoint(100),
    logLines.checkpointCreated("c2", 100),
    logLines.circuitOpened("eu-west", 5),
    logLines.circuitClosed("eu-west"),
    logLines.replayed(9, "eu-west"),
  ];
  expect(lines).toHaveLength(Object.keys(logLines).length);
  expect(lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
    "INFO Opening WAL at data/wal",
    "INFO WAL recovery complete: 12 entries, max_lsn=34",
    "INFO Recovering from checkpoint c1 at LSN 30",
    "INFO Recovery: replaying 4 WAL entries after checkpoint",
    "WARNING No checkpoint found, full WAL replay required",
    "DEBUG Event JobCreated for job use1-1704931200000-gate42-00001 written to WAL at LSN 7",
    "DEBUG Event LSN 7 committed to regional consensus",
    "INFO Event LSN 7 committed to global ledger",
    "INFO Creating checkpoint at LSN 100",
    "INFO Checkpoint c2 created at LSN 100",
    "WARNING Circuit to eu-west OPENED after 5 failures",
    "INFO Circuit to eu-west CLOSED after recovery",
    "INFO Replayed 9 queued operations to eu-west",
  ]);
  expect(LEDGER_LOG_PATH).toBe("hyperscale.ledger.log.json");
});
