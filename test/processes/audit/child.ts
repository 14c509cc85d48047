/**
 * A process that records into an audit log until it is killed: entry i is about subject `n<i>`, and whenever the first
 * n are durable it prints so on its standard output. It continues from what it finds.
 *
 *     node child.mjs DIRECTORY
 */

import { writeSync } from "node:fs";
import { AuditLog } from "../../../src/audit/audit-log.ts";
import { readAudit } from "../../../src/audit/read.ts";
import { Background } from "../../../src/host/background.ts";
import { nodeClock } from "../../../src/host/node-clock.ts";

const [directory = ""] = process.argv.slice(2);
const STDOUT = 1;
/** Only a log that has failed drops this many; the recording process continues until then. */
const DROPPED_MAX = 500;
const background = new Background((work) => void writeSync(STDOUT, `failed ${work}\n`));
const log = await AuditLog.open(directory, {
  node: "child",
  clock: nodeClock,
  log: {
    enabled: () => true,
    event: (_level, event) => void writeSync(STDOUT, `said ${event}\n`),
  },
  background,
  segmentBytes: 65_536,
});
await log.flush();
let next = 0;
for await (const { subject } of readAudit(directory, { kind: "member" })) {
  next = Number(subject.slice(1)) + 1;
}
writeSync(STDOUT, `ready ${next}\n`);

while (log.counts.dropped < DROPPED_MAX) {
  const { dropped } = log.counts;
  for (let i = 0; i < ([1, 3, 20, 150][next % 4] ?? 1); i++) {
    const requester = { kind: "peer", name: "b", address: "127.0.0.1:7946" } as const;
    log.record({ kind: "member.updated", subject: `n${next++}`, requester });
  }
  await log.flush().catch(() => {});
  if (log.counts.dropped === dropped) writeSync(STDOUT, `durable ${next}\n`);
  await new Promise((resolve) => setTimeout(resolve, next % 3));
}
writeSync(STDOUT, `dropped ${log.counts.dropped}\n`);
