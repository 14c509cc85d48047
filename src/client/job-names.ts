/**
 * Names of jobs as people write them: a short id of eight characters, a unique prefix of it or of the whole id, or
 * `last`. The cluster and its ledger use the whole id; short ids are derived from it and never sent.
 */

import { createHash } from "node:crypto";

/** Without i, l, o and u: no two look alike, and no short id begins with "last". */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
/** 40 bits: the odds of two equal ones among 10,000 jobs are 1 in 20,000. */
const SHORT_CHARACTERS = 8;
/** Candidates listed by an error. */
const CANDIDATES_MAX = 5;
/** Name of the most recently created job. */
const LAST = "last";

/** A whole id, as `gates-1794970008782-g1-15961`, or one of its datacenter parts. */
const WHOLE = /^[a-z0-9]+-[0-9]+-[a-z0-9]+-[0-9]{5}(\/|$)/;
const TEXT_BYTES_MAX = 128;

interface Named {
  readonly id: string;
  readonly name: string;
}

type Found =
  | { readonly ok: true; readonly id: string }
  | { readonly ok: false; readonly reason: "unknownJob" | "invalid"; readonly problem: string };

export function shortIdOf(id: string): string {
  const bytes = createHash("sha256").update(id).digest();
  let bits = bytes.readUIntBE(0, 5);
  let text = "";
  for (let i = 0; i < SHORT_CHARACTERS; i++) {
    text = `${ALPHABET[bits % ALPHABET.length]}${text}`;
    bits = Math.floor(bits / ALPHABET.length);
  }
  return text;
}

/** False for whole ids, and for unreadable text. */
export function isJobNickname(text: string): boolean {
  return text !== "" && Buffer.byteLength(text) <= TEXT_BYTES_MAX && !WHOLE.test(text);
}

/** `jobs`: in the order of their creation. */
export function findJob(text: string, jobs: readonly Named[]): Found {
  const found = matchesOf(text, jobs);
  const [only] = found;
  if (only === undefined)
    return { ok: false, reason: "unknownJob", problem: unknownProblem(text, jobs.length) };
  if (found.length === 1) return { ok: true, id: only.id };
  const some = found
    .slice(-CANDIDATES_MAX)
    .map(({ id, name }) => `${shortIdOf(id)} (${name}, ${id})`);
  const rest = found.length - some.length;
  const others = rest === 0 ? "" : ` and ${rest} older`;
  const problem = `"${text}" matches ${found.length} jobs: ${some.join(", ")}${others}; add characters`;
  return { ok: false, reason: "invalid", problem };
}

function matchesOf(text: string, jobs: readonly Named[]): readonly Named[] {
  if (text === LAST) return jobs.slice(-1);
  const same = jobs.filter(({ id }) => id === text);
  if (same.length > 0) return same;
  const prefix = text.toLowerCase();
  return jobs.filter(({ id }) => id.startsWith(prefix) || shortIdOf(id).startsWith(prefix));
}

function unknownProblem(text: string, count: number): string {
  if (count === 0) return `there is no job "${text}": the cluster remembers none`;
  return `there is no job "${text}"; "hyperscale jobs list" shows all that are remembered`;
}
