/**
 * Jobs that clients submit: their plans, and their bundles, which are the plans themselves, so that a core knows its
 * work only from files that have really been transferred.
 */

import { decodeUtf8, encodeUtf8 } from "../../src/core/base/bytes.ts";
import { hexOf } from "../../src/core/base/hex.ts";
import type { Random } from "../../src/core/base/random.ts";
import { sha256 } from "../../src/core/base/sha256.ts";
import { splitProblem } from "../../src/core/cluster/gate/job-parts.ts";
import {
  ANYWHERE,
  type BlobHash,
  type Control,
  type Routing,
  type Submission,
} from "../../src/core/cluster/messages.ts";
import type { WorkflowManifest } from "../../src/core/load/job/manifest.ts";
import type { LoadPlan } from "../../src/core/load/plan/load.ts";

/** Behaviour of a workflow's code. */
export interface Behaviour {
  /** Rows that are used once over all cores; 0 for none. */
  readonly rows: number;
  /** Requests numbers that no other execution gets. */
  readonly numbers: boolean;
  readonly setupMs: number;
  /** The code ignores a request to stop. */
  readonly isStubborn: boolean;
}

export interface Bundle {
  /** Key of its submission: the job has another name in each datacenter. */
  readonly key: string;
  readonly manifests: readonly WorkflowManifest[];
  readonly behaviours: Readonly<Record<string, Behaviour>>;
}

interface TimedControl {
  /** After the job was accepted. */
  readonly afterMs: number;
  readonly control: Control;
}

export interface JobPlan {
  readonly key: string;
  readonly bundle: Bundle;
  readonly submission: Submission;
  readonly routing: Routing;
  readonly files: ReadonlyMap<BlobHash, Uint8Array>;
  readonly controls: readonly TimedControl[];
}

/** How jobs are drawn in one seed. */
export interface JobStyle {
  readonly loadMsMax: number;
  /** Chance that a job has a timeout. */
  readonly limited: number;
  /** Chance that the code of a workflow ignores a request to stop. */
  readonly stubborn: number;
  /** Chance that a job is controlled or cancelled. */
  readonly controlled: number;
  /** Bytes of a bundle: some take several messages. */
  readonly bundleBytes: number;
  /** Cores of one datacenter. */
  readonly coresMax: number;
  readonly datacenters: number;
}

const ENTRY = "bundle.mjs";
const GRACE_MS = 2_000;
/** Far beyond what the iterations take: a load that ends by this has hung. */
const ITERATIONS_MS_MAX = 90_000;

export function drawJob(random: Random, key: string, style: JobStyle): JobPlan {
  const manifests = drawManifests(random, style);
  const behaviours = Object.fromEntries(
    manifests.map(({ name }) => [name, drawBehaviour(random, style)] as const),
  );
  const bundle = { key, manifests, behaviours };
  const bytes = encodeBundle(bundle, style.bundleBytes);
  const hash = hexOf(sha256(bytes));
  const submission: Submission = {
    ...{ name: `${key}.ts`, title: null, tags: {}, manifests, entry: ENTRY },
    files: [{ path: ENTRY, hash, bytes: bytes.length }],
    ...{ overrides: {}, thresholds: [], abortAfterMs: null },
    timeoutMs: random.fork("limit").chance(style.limited)
      ? Math.ceil(style.loadMsMax * (1 + random.fork("limitMs").float()))
      : null,
    cores: random.chance(0.5) ? 1 + random.below(style.coresMax) : null,
    ...{ held: false, command: "submit", version: "1.0.0" },
  };
  const controls = random.chance(style.controlled) ? drawControls(random, style) : [];
  const routing = style.datacenters === 1 ? ANYWHERE : drawRouting(random, submission, style);
  return { key, bundle, submission, routing, files: new Map([[hash, bytes]]), controls };
}

interface PlainJob {
  readonly load: LoadPlan;
  readonly cores: number;
  readonly tenant: string | null;
  /** Name of its bundle: jobs with the same one share their file. */
  readonly bundle: string;
}

/** A job of one workflow without random draws. */
export function plainJob(key: string, { bundle: name, cores, load, tenant }: PlainJob): JobPlan {
  const manifests = [plainManifest("first", load)];
  const behaviours = { first: { rows: 0, numbers: false, setupMs: 5, isStubborn: false } };
  const bundle = { key: name, manifests, behaviours };
  const bytes = encodeBundle(bundle, 0);
  const hash = hexOf(sha256(bytes));
  const submission: Submission = {
    ...{ name: `${name}.ts`, title: null, tags: {}, manifests, entry: ENTRY },
    files: [{ path: ENTRY, hash, bytes: bytes.length }],
    ...{ overrides: {}, thresholds: [], abortAfterMs: null, timeoutMs: null, cores, tenant },
    ...{ held: false, command: "submit", version: "1.0.0" },
  };
  const files = new Map([[hash, bytes]]);
  return { key, bundle, submission, routing: ANYWHERE, files, controls: [] };
}

/** In the best datacenter, split over all of them, or as a whole in each. */
function drawRouting(random: Random, submission: Submission, { datacenters }: JobStyle): Routing {
  const draw = random.float();
  if (draw < 0.4) return ANYWHERE;
  const routing = { ...ANYWHERE, count: datacenters, each: draw > 0.8 };
  return splitProblem(submission, routing, datacenters) === null ? routing : ANYWHERE;
}

function drawManifests(random: Random, style: JobStyle): WorkflowManifest[] {
  const first = manifest("first", drawLoad(random, style), random);
  if (random.chance(0.55)) return [first];
  if (random.chance(0.3)) return [first, manifest("beside", drawLoad(random, style), random)];
  const from = { ...first, provides: [{ key: "made", to: ["second"] }] };
  const second = manifest("second", drawLoad(random, style), random);
  const uses = [{ name: "made", from: ["first"], keys: ["made"] }];
  return [from, { ...second, dependsOn: ["first"], uses }];
}

function drawLoad(random: Random, { loadMsMax }: JobStyle): LoadPlan {
  const durationMs = Math.ceil(loadMsMax * (0.3 + 0.7 * random.float()));
  const vus = 1 + random.below(6);
  const durationMsMax = ITERATIONS_MS_MAX;
  switch (random.below(5)) {
    case 0:
    case 1:
      return { kind: "vus", stages: [{ durationMs, from: vus, to: vus }] };
    case 2: {
      const rate = 2 + random.below(20);
      return { kind: "rate", stages: [{ durationMs, from: rate, to: rate }], vusMax: vus };
    }
    case 3:
      return { kind: "shared", vus, iterations: 5 + random.below(120), durationMsMax };
    default:
      return { kind: "perUser", vus, iterations: 2 + random.below(20), durationMsMax };
  }
}

function manifest(name: string, load: LoadPlan, random: Random): WorkflowManifest {
  const startAfterMs = random.chance(0.25) ? 500 + random.below(6_000) : 0;
  return { ...plainManifest(name, load), startAfterMs };
}

/** A workflow with nothing but its load. */
function plainManifest(name: string, load: LoadPlan): WorkflowManifest {
  return {
    ...{ name, load, warmupMs: 0, gracefulStopMs: GRACE_MS, startAfterMs: 0 },
    ...{ setupMsMax: 20_000, teardownMsMax: 20_000, priority: "auto" },
    ...{ dependsOn: [], isTest: true, parts: [], mix: null, flow: null, steps: [], checks: [] },
    ...{ metrics: [], provides: [], uses: [], thresholds: [], corrected: load.kind === "rate" },
    ...{ connectionsMax: 6, targets: [] },
  };
}

function drawBehaviour(random: Random, { stubborn }: JobStyle): Behaviour {
  return {
    rows: random.chance(0.3) ? 1_000_000 : 0,
    numbers: random.chance(0.3),
    setupMs: random.pick([5, 200, 2_500]),
    isStubborn: random.fork("stubborn").chance(stubborn),
  };
}

function drawControls(random: Random, { loadMsMax }: JobStyle): TimedControl[] {
  const at = (): number => random.float() * loadMsMax * 1.5;
  const draw = random.float();
  if (draw < 0.5) return [{ afterMs: at(), control: { kind: "cancel", reason: "enough" } }];
  if (draw < 0.7) {
    const afterMs = at();
    const resumeMs = afterMs + 200 + random.float() * 4_000;
    return [
      { afterMs, control: { kind: "pause" } },
      { afterMs: resumeMs, control: { kind: "resume" } },
    ];
  }
  const factor = random.pick([0.5, 1, 2]);
  return [{ afterMs: at(), control: { kind: "scale", factor } }];
}

function encodeBundle(bundle: Bundle, bytesMin: number): Uint8Array {
  return encodeUtf8(JSON.stringify(bundle).padEnd(bytesMin, " "));
}

/** Null for bytes that are not a bundle: an import would throw. */
export function bundleOf(bytes: Uint8Array): Bundle | null {
  try {
    return JSON.parse(decodeUtf8(bytes)) as Bundle;
  } catch {
    return null;
  }
}
