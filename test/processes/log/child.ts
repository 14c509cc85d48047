/**
 * A process that writes to a log until it is killed: entry i has the bytes of `entryBytes(i)`, and whenever the first n
 * entries are durable it prints so on its standard output before anything else happens.
 *
 *     tsx test/processes/log/child.ts DIRECTORY [SEGMENT_BYTES]
 */

import { writeSync } from "node:fs";
import { RECORD_TYPES } from "../../../src/core/ledger/log/record-types.ts";
import { identityOf } from "../../../src/core/ledger/log/segment.ts";
import { Wal } from "../../../src/ledger/log/wal.ts";
import { entryBytes } from "./entries.ts";

const [directory = "", segmentBytes = "262144"] = process.argv.slice(2);
const STDOUT = 1;
let recovered = 0;
const log = await Wal.open({
  directory,
  identity: identityOf("test", "child"),
  config: { segmentBytes: Number(segmentBytes) },
  onEntry: () => {
    recovered++;
  },
  onDurable: (count) => {
    writeSync(STDOUT, `durable ${recovered + count}\n`);
  },
});
writeSync(STDOUT, `ready ${recovered}\n`);

let next = recovered;
/** Bursts of all sizes, so that batches of one and of a hundred are cut at any point. */
function burst(): void {
  const size = [1, 3, 20, 150][next % 4] ?? 1;
  for (let i = 0; i < size && !log.congested; i++)
    log.post(RECORD_TYPES.VSR_ENTRY, entryBytes(next++));
  if (next % 3 === 0) setTimeout(burst, 1);
  else setImmediate(burst);
}
burst();
