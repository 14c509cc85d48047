/** The bytes of anti-entropy between nodes. */

import { assertNever } from "../../base/assert.ts";
import type { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { type AntiEntropyMessage, SUBTREE_NODES_MAX } from "../job/anti-entropy.ts";
import type { JobId } from "../job/job-id.ts";
import { CHAIN_BYTES } from "../job/job-state.ts";
import { JOB_ID_BYTES_MAX } from "../job/limits.ts";
import type { JobSummary } from "../job/merkle.ts";

const KINDS: readonly AntiEntropyMessage["kind"][] = [
  "rootRequest",
  "rootHash",
  "subtreeRequest",
  "subtreeHashes",
  "leafRequest",
  "leafJobs",
  "youAreBehind",
];
/** Jobs of one page; the configured page is smaller. */
const PAGE_JOBS_MAX = 65_536;

export function writeComparison(out: ByteWriter, message: AntiEntropyMessage): void {
  out.uint8(KINDS.indexOf(message.kind));
  if (message.kind === "youAreBehind") return;
  out.varint(message.round);
  switch (message.kind) {
    case "rootRequest":
      return;
    case "rootHash":
      out.raw(message.hash);
      return;
    case "subtreeRequest":
      out.varint(message.nodes.length);
      for (const node of message.nodes) out.varint(node);
      return;
    case "subtreeHashes":
      out.varint(message.hashes.length);
      for (const { node, hash } of message.hashes) {
        out.varint(node);
        out.raw(hash);
      }
      return;
    case "leafRequest":
      out.varint(message.leaf);
      out.text(message.after ?? "");
      return;
    case "leafJobs":
      out.varint(message.leaf);
      out.uint8(message.more ? 1 : 0);
      out.varint(message.jobs.length);
      for (const { jobId, commitSeq, chain } of message.jobs) {
        out.text(jobId);
        out.varint(commitSeq + 1);
        out.raw(chain);
      }
      return;
    default:
      assertNever(message);
  }
}

export function readComparison(from: ByteReader): AntiEntropyMessage {
  const kind = KINDS[from.uint8()];
  if (kind === undefined) from.fail("an unknown kind of comparison");
  if (kind === undefined || kind === "youAreBehind") return { kind: "youAreBehind" };
  const round = from.varint();
  switch (kind) {
    case "rootRequest":
      return { kind, round };
    case "rootHash":
      return { kind, round, hash: readHash(from) };
    case "subtreeRequest":
      return { kind, round, nodes: readList(from, SUBTREE_NODES_MAX, () => from.varint()) };
    case "subtreeHashes":
      return {
        kind,
        round,
        hashes: readList(from, SUBTREE_NODES_MAX, () => ({
          node: from.varint(),
          hash: readHash(from),
        })),
      };
    case "leafRequest": {
      const leaf = from.varint();
      const after = from.text(JOB_ID_BYTES_MAX);
      return { kind, round, leaf, after: after === "" ? null : (after as JobId) };
    }
    case "leafJobs": {
      const leaf = from.varint();
      const more = from.uint8() === 1;
      const jobs = readList(from, PAGE_JOBS_MAX, () => readSummary(from));
      return { kind, round, leaf, jobs, more };
    }
    default:
      return assertNever(kind);
  }
}

function readSummary(from: ByteReader): JobSummary {
  const jobId = from.text(JOB_ID_BYTES_MAX) as JobId;
  return { jobId, commitSeq: from.varint() - 1, chain: readHash(from) };
}

/** A copy: the frame it came in is far larger. */
function readHash(from: ByteReader): Uint8Array {
  return from.raw(CHAIN_BYTES).slice();
}

function readList<Item>(from: ByteReader, countMax: number, readOne: () => Item): Item[] {
  const count = from.varint();
  if (count > countMax || count > from.remaining) from.fail("a list longer than its bytes");
  const items: Item[] = [];
  for (let i = 0; i < count && !from.failed; i++) items.push(readOne());
  return items;
}
