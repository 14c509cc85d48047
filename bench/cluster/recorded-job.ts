/** A job that does not run: its metrics are prerecorded, and sent by fakes. */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { BlobHash, Submission } from "../../src/core/cluster/messages.ts";
import type { WorkflowManifest } from "../../src/core/load/job/manifest.ts";
import { manifest } from "../../src/core/load/job/testing/manifest.ts";
import { nodeAead } from "../../src/host/node-aead.ts";
import { KeyRing } from "../../src/wire/key-ring.ts";

/** Longer than any measurement. */
const LOAD_MS = 3_600_000;
const BUNDLE = new TextEncoder().encode("export default null;");

interface RecordedJob {
  readonly submission: Submission;
  readonly files: ReadonlyMap<BlobHash, Uint8Array>;
}

export function stepNames(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `step ${at + 1}`);
}

/** One user per core. */
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

/** Key ring of the nodes of this directory. */
export function ringOf(dir: string): KeyRing {
  const secret = readFileSync(join(dir, "cluster.key"), "utf8").trim();
  const made = KeyRing.create(nodeAead, [secret], "hyperscale/default");
  if (!made.ok) throw new Error(made.problem);
  return made.ring;
}
