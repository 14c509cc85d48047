/** A job that nobody runs: its figures were recorded before, and fakes tell them. */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { BlobHash, Submission } from "../../src/core/cluster/messages.ts";
import type { WorkflowManifest } from "../../src/core/load/job/manifest.ts";
import { manifest } from "../../src/core/load/job/testing/manifest.ts";
import { nodeAead } from "../../src/host/node-aead.ts";
import { KeyRing } from "../../src/wire/key-ring.ts";

/** Longer than anything is measured. */
const LOAD_MS = 3_600_000;
const BUNDLE = new TextEncoder().encode("export default null;");

interface RecordedJob {
  readonly submission: Submission;
  readonly files: ReadonlyMap<BlobHash, Uint8Array>;
}

export function stepNames(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `step ${at + 1}`);
}

/** A user on each core. */
export function recordedManifest(steps: number, cores: number): WorkflowManifest {
  const stages = [{ durationMs: LOAD_MS, from: cores, to: cores }];
  const declared = stepNames(steps).map(
    (name) => ({ name, kind: "step", protocol: "http", after: [], layer: 0, tags: {} }) as const,
  );
  return manifest("shop", { steps: declared, load: { kind: "vus", stages } });
}

export function recordedJob(steps: number, cores: number): RecordedJob {
  const hash = createHash("sha256").update(BUNDLE).digest("hex");
  const submission: Submission = {
    ...{ name: "flow.ts", title: null, tags: {}, entry: "bundle.mjs" },
    manifests: [recordedManifest(steps, cores)],
    files: [{ path: "bundle.mjs", hash, bytes: BUNDLE.length }],
    ...{ overrides: {}, thresholds: [], abortAfterMs: null, timeoutMs: null },
    ...{ cores, held: false, command: "bench", version: "1.0.0" },
  };
  return { submission, files: new Map([[hash, BUNDLE]]) };
}

/** What the nodes of this directory speak with. */
export function ringOf(dir: string): KeyRing {
  const secret = readFileSync(join(dir, "cluster.key"), "utf8").trim();
  const made = KeyRing.create(nodeAead, [secret], "hyperscale/default");
  if (!made.ok) throw new Error(made.problem);
  return made.ring;
}
