/**
 * Everything a manager and an executor core say to each other. Plain data only, so that the same
 * core can be driven over a pipe by the local runner or over the network by a cluster's manager.
 *
 *   manager                                core
 *     load ──────────────────────────────▶   imports the bundle
 *     ◀──────────────────────────── loaded   manifests of all workflows
 *     prepare ───────────────────────────▶   feeds, addresses, request bytes
 *     ◀────────────────────────── prepared
 *     setup (to one core) ───────────────▶
 *     ◀───────────────────────── setupDone
 *     start ─────────────────────────────▶   virtual users run
 *     ◀───────────────────── frame, frame …   statistics, 10 a second (`core/load/stats/frames.ts`)
 *     acknowledge, acknowledge … ────────▶   which of them is held
 *     pause, resume, scale, stop ────────▶   stop also ends a set-up under way
 *     ◀───────────────────────────── abort   user code asks for the end of the run
 *     ◀────────────────────────── finished   last frame, provided values
 *     teardown (to one core) ────────────▶
 */

import type { Share } from "../plan/load.ts";
import type { CountedNote } from "./counted-notes.ts";
import type { Fault } from "./faults.ts";
import type { LoadOverrides } from "./load-overrides.ts";
import type { WorkflowManifest } from "./manifest.ts";
import type { SharedAnswer, SharedRequest } from "./shared-values.ts";

export type CoreCommand =
  | {
      readonly kind: "load";
      /** Address of the bundle, importable by this core. */
      readonly bundle: string;
      /** Folder of the workflow file: relative paths of feeds and files start there. */
      readonly folder: string;
      readonly overrides: LoadOverrides;
      readonly core: number;
    }
  /** Requests samples of single calls: this share of the measured ones. */
  | { readonly kind: "sampleCalls"; readonly share: number }
  | {
      readonly kind: "prepare";
      readonly execution: number;
      readonly workflow: string;
      readonly share: Share;
      /** Values of other workflows, by their name and key; already filtered by the contract of both sides. */
      readonly context: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
    }
  | { readonly kind: "setup"; readonly execution: number }
  | {
      readonly kind: "start";
      readonly execution: number;
      readonly setup: unknown;
      /** Elapsed milliseconds of the plan: above 0 for a replacement of a lost core. */
      readonly planMs: number;
    }
  /** The last frame that was received: the next one is written against it. */
  | {
      readonly kind: "acknowledge";
      readonly execution: number;
      readonly part: string | null;
      readonly frame: number;
    }
  | { readonly kind: "pause"; readonly execution: number }
  | { readonly kind: "resume"; readonly execution: number }
  /** Scale factor of the plan: 1 is as planned. */
  | { readonly kind: "scale"; readonly execution: number; readonly factor: number }
  /** A search continues with this load, of all cores together. */
  | { readonly kind: "level"; readonly execution: number; readonly load: number }
  | { readonly kind: "stop"; readonly execution: number }
  /** Indices [from, to) are assigned to this core; `last` means that there are no more. */
  | {
      readonly kind: "lease";
      readonly execution: number;
      readonly name: string;
      /** Which request it answers. */
      readonly request: number;
      readonly from: number;
      readonly to: number;
      readonly last: boolean;
    }
  /** Another manager leads: unanswered requests are sent to it again. */
  | { readonly kind: "askAgain"; readonly execution: number }
  /** Answer to the `shared` of this number. */
  | { readonly kind: "shared"; readonly id: number; readonly answer: SharedAnswer }
  | { readonly kind: "teardown"; readonly execution: number; readonly setup: unknown }
  /** Runs one iteration of a flow, shown call by call, instead of a run. */
  | { readonly kind: "trace"; readonly workflow: string }
  | { readonly kind: "exit" };

export type CoreEvent =
  /** Sent before `loaded`; not part of manifests, which travel. */
  | {
      readonly kind: "declared";
      /** Where the file wants its results sent. (REP-7) */
      readonly reports: readonly string[];
      /** Data files that it reads, as it names them. */
      readonly files: readonly string[];
    }
  | { readonly kind: "loaded"; readonly manifests: readonly WorkflowManifest[] }
  | { readonly kind: "loadFailed"; readonly problem: Problem }
  /** `completed`: and every check held. */
  | { readonly kind: "traced"; readonly problem: Problem | null; readonly completed: boolean }
  | { readonly kind: "prepared"; readonly execution: number }
  | { readonly kind: "setupDone"; readonly execution: number; readonly value: unknown }
  /** User code asks for the end of the whole run. */
  | { readonly kind: "abort"; readonly execution: number; readonly reason: string }
  /** The execution is over without results: preparation or setup failed. */
  | { readonly kind: "failed"; readonly execution: number; readonly problem: Problem }
  | {
      readonly kind: "frame";
      readonly execution: number;
      /** Flow of a mix; null where there is only one. */
      readonly part: string | null;
      readonly bytes: Uint8Array;
      readonly health: CoreVitals;
    }
  | {
      readonly kind: "lease";
      readonly execution: number;
      readonly name: string;
      readonly size: number;
      /** Higher than earlier ones of this core; the same in a retry. */
      readonly request: number;
    }
  /** Request for shared state. */
  | { readonly kind: "shared"; readonly id: number; readonly request: SharedRequest }
  /** Single calls, as lines of JSON. */
  | {
      readonly kind: "calls";
      readonly text: string;
      readonly calls: number;
      readonly dropped: number;
    }
  /** `isComplaint`: about a mistake in user code, which every core meets; shown once per run. */
  | { readonly kind: "log"; readonly line: string; readonly isComplaint: boolean }
  /** An uncaught error of user code: the run continues, and does not pass. */
  | { readonly kind: "unhandled"; readonly line: string }
  | {
      readonly kind: "finished";
      readonly execution: number;
      readonly provided: Readonly<Record<string, unknown>>;
      /** Remarks for the reader of the results, for example that a feed ran out. */
      readonly notes: readonly string[];
      /** Remarks with a count, added to those of the other cores. */
      readonly counts: readonly CountedNote[];
      /** Broken rules: the rule, how it was broken, and in which flow of a mix. */
      readonly faults: readonly PartFault[];
    }
  | {
      readonly kind: "tornDown";
      readonly execution: number;
      readonly faults: readonly PartFault[];
    };

/** Events of one execution. */
export type ExecutionEvent = Exclude<
  CoreEvent,
  {
    kind:
      | "calls"
      | "log"
      | "unhandled"
      | "loaded"
      | "loadFailed"
      | "declared"
      | "shared"
      | "traced";
  }
>;

/** Broken rule of a flow of a mix; null where there is only one. */
export interface PartFault extends Fault {
  readonly part: string | null;
}

/** An error for people: what, and where in their file. */
export interface Problem {
  readonly message: string;
  /** "flow.ts:12:5" where there is one. */
  readonly location: string | null;
  /** A mistake in the workflow or the arguments, as opposed to a failure of the world. */
  readonly mistake: boolean;
}

export function problemText({ location, message }: Problem): string {
  return location === null ? message : `${location}: ${message}`;
}

export interface CoreVitals {
  /** CPU time of the process since the execution began, over the time elapsed. */
  readonly cpu: number;
  readonly residentBytes: number;
  readonly activeUsers: number;
}

/**
 * Metrics of several cores of one machine in one execution, merged by their worker: one frame of all of them together,
 * and the vitals of each core.
 */
export interface MergedFigures {
  readonly execution: number;
  /** Flow of a mix; null where there is only one. */
  readonly part: string | null;
  readonly bytes: Uint8Array;
  /** Cores with unacknowledged metrics. */
  readonly cores: readonly CoreFigures[];
}

/** One core whose calls are in a merged frame. */
export interface CoreFigures {
  readonly core: number;
  /** All requests of it in the merged frame. */
  readonly requests: number;
  readonly health: CoreVitals;
  /** The core has reported something since the previous merged frame. */
  readonly heard: boolean;
  /** A frame of the load that it made and of how late it ran. */
  readonly own: Uint8Array;
}

/** Lease name of shared iterations; feeds use their own names after "feed:". */
export const ITERATIONS_LEASE = "iterations";
export const feedLease = (name: string): string => `feed:${name}`;
