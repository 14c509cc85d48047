/** Calls of a ledger whose nodes stop and start: rounds over the nodes, until one answers. */

import {
  callLedger,
  LedgerClientError,
  type LedgerReply,
  type LedgerTarget,
} from "../../../src/ledger/client.ts";
import { PATIENCE_MS } from "../../patience.ts";

type Call = Parameters<typeof callLedger>[1];

/** One round. Pauses double, so few: nodes that begin or elect may need longer, and a new round begins soon. */
const ROUND = { retriesMax: 8, delayMs: 1, jitter: 0.5, attemptTimeoutMs: 30_000 };

export async function callPatiently(
  target: LedgerTarget,
  call: Omit<Call, "retry">,
): Promise<LedgerReply> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await callLedger(target, { ...call, retry: ROUND });
    } catch (error) {
      if (!(error instanceof LedgerClientError) || performance.now() > deadline) throw error;
    }
  }
}
