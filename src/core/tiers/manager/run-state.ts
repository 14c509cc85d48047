/**
 * The group of one job in its datacenter: what must outlive the manager that leads it. (`run/ID`)
 *
 *     begin ─▶ open (cores of workers) ─▶ steps of its executions, losses, controls … ─▶ end
 *
 * What was decided stands here in the order in which it was: a new leader takes the same steps again, without
 * sending anything, and then stands where the old one stood. A placement is made when it is folded in: its
 * token is the view of its entry x 2^20 + the placements of the job so far.
 */

import { assert } from "../../base/assert.ts";
import { encodePlain } from "../../base/plain-value.ts";
import type { Application, GroupKind, Operation } from "../../ledger/node/application.ts";
import { LeaseAllocator } from "../../run/execution/lease-allocator.ts";
import type { AgreedStep, Granted, PhaseStep } from "../../run/execution/phase-types.ts";
import {
  type AttemptView,
  type BlobHash,
  type Control,
  JOB_STATUSES,
  type JobStatus,
  type Submission,
} from "../messages.ts";
import type { Grant } from "./datacenter-state.ts";
import {
  decodeShape,
  isAnything,
  isBytes,
  isNumber,
  isText,
  isWhole,
  listOf,
  oneOf,
  orNull,
  record,
  variant,
} from "./shapes.ts";
import { decodeSubmission } from "./submission.ts";

export const RUN_PREFIX = "run/";
/** Of one entry: a value that a workflow provides, or a submission. */
export const RUN_ENTRY_BYTES_MAX = 524_288;
/** Placements of one view. */
const TOKENS_PER_VIEW = 2 ** 20;
/** Decisions of one job, blocks of rows and iterations not counted. */
const HISTORY_MAX = 10_000;
/** Results of steps that are remembered for whoever asked for them. */
const RESULTS_MAX = 1_024;
const NAME = /^[a-z0-9-]{1,96}$/;

/** An executor core of the job, numbered over all its workers. */
export interface RunCore {
  readonly core: number;
  readonly worker: string;
  readonly incarnation: number;
}

export type RunEntry =
  | {
      readonly kind: "begin";
      readonly createdAt: number;
      readonly submission: Uint8Array;
      readonly grants: readonly Grant[];
    }
  | { readonly kind: "open"; readonly cores: readonly RunCore[] }
  | { readonly kind: "step"; readonly step: PhaseStep }
  | { readonly kind: "coreLost"; readonly core: number; readonly what: string }
  | {
      readonly kind: "control";
      readonly control: Control;
      readonly by: string;
      /** Milliseconds of the wall clock. */
      readonly at: number;
    }
  | {
      readonly kind: "end";
      readonly status: JobStatus;
      readonly reason: string | null;
      readonly summary: BlobHash | null;
    };

/** What a new leader takes again, in order. */
export type Decision =
  | { readonly kind: "step"; readonly step: AgreedStep }
  | Extract<RunEntry, { kind: "coreLost" | "control" }>;

export interface RunEnd {
  readonly status: JobStatus;
  readonly reason: string | null;
  readonly summary: BlobHash | null;
}

const core = record({ core: isWhole, worker: isText, incarnation: isWhole });
const ofWorkflow = { workflow: isText };
const onCore = { ...ofWorkflow, core: isWhole };
const steps = {
  place: record({ ...ofWorkflow, cores: listOf(isWhole) }),
  setup: record(onCore),
  setupDone: record({ ...ofWorkflow, value: isAnything }),
  teardown: record(onCore),
  finished: record({
    ...onCore,
    finished: record({ provided: record({}), notes: listOf(isText) }),
  }),
  report: record({ ...ofWorkflow, error: orNull(isText) }),
  grant: record({ ...onCore, name: isText, size: isNumber }),
};
const isControl = variant({
  cancel: record({ reason: isText }),
  pause: record({}),
  resume: record({}),
  scale: record({ factor: isNumber }),
});
const end = {
  status: oneOf(...JOB_STATUSES),
  reason: orNull(isText),
  summary: orNull(isText),
};
const grant = record({ worker: isText, incarnation: isWhole, capacity: isWhole, cores: isWhole });
const coreLost = record({ core: isWhole, what: isText });
const control = record({ control: isControl, by: isText, at: isWhole });

const isEntry = variant({
  begin: record({ createdAt: isWhole, submission: isBytes, grants: listOf(grant) }),
  open: record({ cores: listOf(core) }),
  step: record({ step: variant(steps) }),
  coreLost,
  control,
  end: record(end),
});

interface Snapshot {
  readonly seq: number;
  readonly createdAt: number;
  readonly submission: Uint8Array | null;
  readonly grants: readonly Grant[];
  readonly cores: readonly RunCore[];
  readonly placements: number;
  readonly history: readonly Decision[];
  readonly attempts: readonly (AttemptView & { readonly workflow: string })[];
  readonly leases: readonly (readonly [string, Readonly<Record<string, number>>])[];
  readonly results: readonly (readonly [string, number | Granted])[];
  readonly end: RunEnd | null;
}

const isSnapshot = record({
  seq: isNumber,
  createdAt: isWhole,
  submission: orNull(isBytes),
  grants: listOf(grant),
  cores: listOf(core),
  placements: isWhole,
  history: listOf(variant({ step: record({ step: variant(steps) }), coreLost, control })),
  attempts: listOf(
    record({ workflow: isText, worker: isText, core: isWhole, token: isWhole, status: isText }),
  ),
  leases: listOf(Array.isArray),
  results: listOf(Array.isArray),
  end: orNull(record(end)),
});

type Outcome = { readonly outcome: string; readonly reason: string | null };

const rejected = (reason: string): Outcome => ({ outcome: "rejected", reason });

export function encodeRunEntry(entry: RunEntry): Uint8Array {
  return encodePlain(entry);
}

export class RunState implements Application {
  #createdAt = 0;
  #bytes: Uint8Array | null = null;
  #submission: Submission | null = null;
  #grants: readonly Grant[] = [];
  #cores: RunCore[] = [];
  #placements = 0;
  #history: Decision[] = [];
  #attempts: (AttemptView & { readonly workflow: string })[] = [];
  #leases = new Map<string, LeaseAllocator>();
  /** By the event that asked: the token of a placement, or the block of a grant. */
  #results = new Map<string, number | Granted>();
  #end: RunEnd | null = null;
  #seq = -1;

  /** The place of the last entry that is folded in. */
  get seq(): number {
    return this.#seq;
  }

  /** Null before it has begun. */
  get submission(): Submission | null {
    return this.#submission;
  }

  get createdAt(): number {
    return this.#createdAt;
  }

  /** As it was admitted. */
  get grants(): readonly Grant[] {
    return this.#grants;
  }

  get cores(): readonly RunCore[] {
    return this.#cores;
  }

  get history(): readonly Decision[] {
    return this.#history;
  }

  get attempts(): readonly (AttemptView & { readonly workflow: string })[] {
    return this.#attempts;
  }

  get end(): RunEnd | null {
    return this.#end;
  }

  /** A step as it was agreed to, by the event that asked for it; null when it came to nothing. */
  agreed(eventId: string, step: PhaseStep): AgreedStep | null {
    if (step.kind !== "place" && step.kind !== "grant") return step;
    const result = this.#results.get(eventId);
    if (step.kind === "place")
      return typeof result === "number" ? { ...step, execution: result } : null;
    return typeof result === "object" ? { ...step, ...result } : null;
  }

  problemOf(data: Uint8Array): string | null {
    return decodeShape(data, isEntry) === null ? "not an entry of a run" : null;
  }

  apply({ data, eventId, seq, view }: Operation): Outcome {
    this.#seq = seq;
    const entry = decodeRunEntry(data);
    if (entry === null) return rejected("UNREADABLE");
    if (this.#end !== null) return rejected("ENDED");
    if (entry.kind === "begin") return this.#begin(entry);
    if (this.#submission === null) return rejected("NOT_BEGUN");
    switch (entry.kind) {
      case "open":
        return this.#open(entry.cores);
      case "step":
        return this.#step(entry.step, eventId, view);
      case "coreLost":
        return this.#coreLost(entry);
      case "control":
        return this.#decide(entry);
      case "end":
        this.#end = { status: entry.status, reason: entry.reason, summary: entry.summary };
        return { outcome: "ended", reason: null };
    }
  }

  #begin({ createdAt, grants, submission }: Extract<RunEntry, { kind: "begin" }>): Outcome {
    if (this.#submission !== null) return { outcome: "begun", reason: null };
    const decoded = decodeSubmission(submission);
    if (decoded === null) return rejected("UNREADABLE");
    this.#createdAt = createdAt;
    this.#grants = grants;
    this.#take(submission, decoded);
    return { outcome: "begun", reason: null };
  }

  #take(bytes: Uint8Array, submission: Submission): void {
    this.#bytes = bytes;
    this.#submission = submission;
    this.#leases = new Map(
      submission.manifests.map(({ load, name }) => [name, allocator(load, {})]),
    );
  }

  #open(cores: readonly RunCore[]): Outcome {
    const taken = cores.some(({ core: one }) => this.#cores.some(({ core: old }) => old === one));
    if (taken) return rejected("CORE_TAKEN");
    this.#cores.push(...cores);
    return { outcome: "opened", reason: null };
  }

  #step(step: PhaseStep, eventId: string, view: number): Outcome {
    if (step.kind === "grant") {
      const granted = this.#leases.get(step.workflow)?.grant(step.name, step.size);
      if (granted === undefined) return rejected("UNKNOWN_WORKFLOW");
      this.#remember(eventId, granted);
      return { outcome: "granted", reason: null };
    }
    if (step.kind !== "place") {
      if (step.kind === "finished") this.#close(step.workflow, step.core, "finished");
      return this.#decide({ kind: "step", step });
    }
    const execution = view * TOKENS_PER_VIEW + this.#placements;
    assert(Number.isSafeInteger(execution), "a token fits 53 bits");
    const decided = this.#decide({ kind: "step", step: { ...step, execution } });
    if (decided.outcome === "rejected") return decided;
    this.#placements++;
    this.#remember(eventId, execution);
    for (const one of step.cores) {
      const worker = this.#cores.find((known) => known.core === one)?.worker ?? "";
      const attempt = { worker, core: one, token: execution, status: "running" } as const;
      this.#attempts.push({ ...attempt, workflow: step.workflow });
    }
    return { outcome: "placed", reason: null };
  }

  #coreLost(entry: Extract<RunEntry, { kind: "coreLost" }>): Outcome {
    const lost = (decision: Decision): boolean =>
      decision.kind === "coreLost" && decision.core === entry.core;
    if (this.#history.some(lost)) return rejected("LOST_BEFORE");
    this.#close(null, entry.core, "lost");
    return this.#decide(entry);
  }

  /** Closes the attempts under way on a core. */
  #close(workflow: string | null, core: number, status: "finished" | "lost"): void {
    this.#attempts = this.#attempts.map((one) =>
      one.core === core &&
      one.status === "running" &&
      (workflow === null || one.workflow === workflow)
        ? { ...one, status }
        : one,
    );
  }

  #decide(decision: Decision): Outcome {
    if (this.#history.length >= HISTORY_MAX) return rejected("TOO_MANY_DECISIONS");
    this.#history.push(decision);
    return { outcome: decision.kind, reason: null };
  }

  #remember(eventId: string, result: number | Granted): void {
    this.#results.set(eventId, result);
    const [oldest] = this.#results.keys();
    if (this.#results.size > RESULTS_MAX && oldest !== undefined) this.#results.delete(oldest);
  }

  snapshot(): Uint8Array {
    const snapshot: Snapshot = {
      seq: this.#seq,
      createdAt: this.#createdAt,
      submission: this.#bytes,
      grants: this.#grants,
      cores: this.#cores,
      placements: this.#placements,
      history: this.#history,
      attempts: this.#attempts,
      leases: [...this.#leases].map(([name, { next }]) => [name, next]),
      results: [...this.#results],
      end: this.#end,
    };
    return encodePlain(snapshot);
  }

  restore(bytes: Uint8Array): boolean {
    const snapshot = decodeShape<Snapshot>(bytes, isSnapshot);
    if (snapshot === null) return false;
    const { submission } = snapshot;
    const decoded = submission === null ? null : decodeSubmission(submission);
    if (submission !== null && decoded === null) return false;
    this.#seq = snapshot.seq;
    this.#createdAt = snapshot.createdAt;
    this.#bytes = null;
    this.#submission = null;
    this.#leases.clear();
    if (submission !== null && decoded !== null) this.#take(submission, decoded);
    const leases = new Map(snapshot.leases);
    for (const { load, name } of decoded?.manifests ?? [])
      this.#leases.set(name, allocator(load, leases.get(name) ?? {}));
    this.#grants = snapshot.grants;
    this.#cores = [...snapshot.cores];
    this.#placements = snapshot.placements;
    this.#history = [...snapshot.history];
    this.#attempts = [...snapshot.attempts];
    this.#results = new Map(snapshot.results);
    this.#end = snapshot.end;
    return true;
  }
}

type Load = Submission["manifests"][number]["load"];

function allocator(load: Load, next: Readonly<Record<string, number>>): LeaseAllocator {
  return new LeaseAllocator(load.kind === "shared" ? load.iterations : 0, next);
}

export function decodeRunEntry(data: Uint8Array): RunEntry | null {
  return decodeShape<RunEntry>(data, isEntry);
}

export const RUN_KIND: GroupKind = {
  prefix: RUN_PREFIX,
  operationBytesMax: RUN_ENTRY_BYTES_MAX,
  snapshotBytesMax: 2_097_152,
  found: (name) => (NAME.test(name) ? new RunState() : null),
};
