/** Text of `readyz` about a wrong clock. */

import { formatDuration } from "../core/base/duration.ts";
import type { PeerClocks } from "../core/cluster/node/peer-clocks.ts";

const REMEDY = 'see "Clocks" in docs/operate/deploy.md';

function roundedText(ms: number): string {
  return formatDuration(Math.ceil(ms / 1_000) * 1_000);
}

export function aheadWarning(ahead: PeerClocks["ahead"]): string | null {
  if (ahead === null) return null;
  const { aheadMs, peer } = ahead;
  return `this clock is ${roundedText(aheadMs)} ahead of that of ${peer}: correct it now; ${REMEDY}`;
}

export function behindProblem(behindMs: number): string | null {
  if (behindMs <= 0) return null;
  const behind = "this clock is behind the times in its own log, written while the clock was ahead";
  return `${behind}: serves in ${roundedText(behindMs)}; ${REMEDY}`;
}
