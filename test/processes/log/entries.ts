/** Entries that can be recreated from their number, and the check that a log has them. */

import { Random } from "../../../src/core/base/random.ts";
import { WAL_DEFAULTS } from "../../../src/core/ledger/log/limits.ts";
import { ANY_IDENTITY } from "../../../src/core/ledger/log/segment.ts";
import { readDirectory, scanDirectory } from "../../../src/ledger/log/look.ts";

export function entryBytes(number: number): Uint8Array {
  const random = new Random(number);
  const bytes = new Uint8Array(4 + random.below(number % 50 === 0 ? 3_000 : 120));
  for (let i = 0; i < bytes.length; i++) bytes[i] = random.below(256);
  new DataView(bytes.buffer).setUint32(0, number);
  return bytes;
}

interface LogCheck {
  readonly entries: number;
  readonly torn: boolean;
}

/** Reads a log without changing it; throws unless it holds entries 0, 1, 2 … byte for byte. */
export async function checkEntries(directory: string): Promise<LogCheck> {
  let next = 0;
  let wrong: string | null = null;
  const outcome = await scanDirectory(directory, await readDirectory(directory), {
    config: WAL_DEFAULTS,
    identity: ANY_IDENTITY,
    onEntry: ({ payload, lsn }) => {
      if (Buffer.compare(payload, entryBytes(next)) !== 0)
        wrong ??= `LSN ${lsn} is not entry ${next}`;
      next++;
    },
  });
  if (!outcome.ok) throw new Error(`recovery refused: ${JSON.stringify(outcome.refusal)}`);
  if (wrong !== null) throw new Error(wrong);
  return { entries: next, torn: outcome.tornTail !== null };
}
