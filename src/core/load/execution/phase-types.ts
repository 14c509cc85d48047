/** What the executions of a job hear and ask for; see `phases.ts`. */

import type {
  CoreCommand,
  CoreEvent,
  CoreVitals,
  MergedFigures,
  PartFault,
  Problem,
} from "../job/core-messages.ts";
import type { CountedNote } from "../job/counted-notes.ts";
import type { Fault } from "../job/faults.ts";
import type { JobStatus } from "../job/job.ts";
import type { Probe } from "../plan/breakpoint.ts";

/** What happens to the workflows and what they measure. As pure as this machine. */
export interface PhasesListener {
  /** It is being set up or torn down, or neither any more. */
  workflowBusy(workflow: string, doing: "setting up" | "tearing down" | null): void;
  workflowStarted(workflow: string, cores: readonly number[]): void;
  /** Another core begins with the share of a lost one. */
  shareJoined(workflow: string, core: number): void;
  /** Milliseconds of its plan that have passed, by what its cores say; null when none says anything. */
  planMs(workflow: string): number | null;
  /** The answer is the number of the frame that is held now. */
  frame(workflow: string, core: number, bytes: Uint8Array, vitals: CoreVitals): number;
  /** Those of several cores, merged by whoever runs them; likewise. */
  figures(workflow: string, from: string, figures: MergedFigures): number;
  /** A core has sent its last frame. */
  coreFinished(workflow: string, core: number): void;
  workflowFinished(
    workflow: string,
    status: "completed" | "failed" | "interrupted",
    error: string | null,
  ): void;
  workflowSkipped(workflow: string, becauseOf: string | null): void;
  note(text: string): void;
  countedNote(note: CountedNote): void;
  /** A rule was broken beside what is measured; null for the run. */
  fault(workflow: string | null, fault: Fault): void;
}

export type Finished = Extract<CoreEvent, { kind: "finished" }>;

/** What takes effect only when the driver has agreed to it. */
export type PhaseStep =
  /** These cores get the workflow; agreed to with the number of the execution. */
  | { readonly kind: "place"; readonly workflow: string; readonly cores: readonly number[] }
  /** The share of a lost core goes to another one; agreed to with the number of the execution. */
  | {
      readonly kind: "deal";
      readonly workflow: string;
      readonly core: number;
      readonly instead: number;
    }
  /** Set-up is about to begin on a core. */
  | { readonly kind: "setup"; readonly workflow: string; readonly core: number }
  /** Set-up is over, with this value for all cores. */
  | { readonly kind: "setupDone"; readonly workflow: string; readonly value: unknown }
  | { readonly kind: "teardown"; readonly workflow: string; readonly core: number }
  /** A core has made its load; what it provides stays when the core does not. */
  | {
      readonly kind: "finished";
      readonly workflow: string;
      readonly core: number;
      readonly finished: Finished;
    }
  /** The workflow is over on all its cores, well or with an error: what follows it may begin. */
  | {
      readonly kind: "report";
      readonly workflow: string;
      readonly error: string | null;
      /** Rules that its tear-down broke. */
      readonly faults: readonly PartFault[];
    }
  /** The run ends before its plan is over: a threshold, its time limit or its own code asks for it. */
  | {
      readonly kind: "stop";
      /** Whose code asked, and the rule that was broken beside what is measured. */
      readonly workflow: string | null;
      readonly fault: Fault | null;
    }
  /** A search goes on to another load after this probe. */
  | {
      readonly kind: "level";
      readonly workflow: string;
      readonly load: number;
      readonly probe: Probe;
    }
  /** A search has its answer with this probe: the workflow ends as when its time is over. */
  | { readonly kind: "finish"; readonly workflow: string; readonly probe: Probe }
  /** So many rows or iterations are asked for; agreed to with the block that is the core's. */
  | {
      readonly kind: "grant";
      readonly workflow: string;
      readonly execution: number;
      readonly core: number;
      readonly name: string;
      readonly size: number;
      /** The core's number of it: asked again, it gets the same block. */
      readonly request: number;
    }
  /** Numbers that nobody else gets; agreed to with these. The core has one request per name at a time. */
  | {
      readonly kind: "numbers";
      readonly core: number;
      readonly id: number;
      readonly name: string;
      readonly count: number;
    }
  /** Values are put into a queue of this name. */
  | { readonly kind: "queue"; readonly name: string };

/** A step with what the driver has to say to it. */
export type AgreedStep =
  | (Extract<PhaseStep, { kind: "place" }> & { readonly execution: number })
  | (Extract<PhaseStep, { kind: "deal" }> & { readonly execution: number })
  | Exclude<PhaseStep, { kind: "place" | "deal" | "grant" | "numbers" }>
  | (Extract<PhaseStep, { kind: "numbers" }> & { readonly from: number; readonly to: number })
  | (Extract<PhaseStep, { kind: "grant" }> & Granted);

/** Of one workflow's way over its cores. */
export type WorkflowStep = Exclude<
  AgreedStep,
  { kind: "stop" | "level" | "finish" | "numbers" | "queue" }
>;

export type Dealt = Extract<AgreedStep, { kind: "deal" }>;

export type Reported = Extract<PhaseStep, { kind: "report" }>;

/** Of what all cores share. */
export type SharedStep = Extract<AgreedStep, { kind: "numbers" | "queue" }>;

/** Indices [from, to); `last`: there are no more. */
export interface Granted {
  readonly from: number;
  readonly to: number;
  readonly last: boolean;
}

/** What whoever merges the datacenters says of a workflow. */
export type JointWord =
  | {
      readonly kind: "begin";
      readonly workflow: string;
      /** Of the set-up, wherever it ran. */
      readonly value: unknown;
      /** In so many milliseconds. */
      readonly inMs: number;
    }
  | { readonly kind: "over"; readonly workflow: string; readonly error: string | null };

/** What a workflow waits for, and what its set-up came to. */
export interface JointWait {
  readonly workflow: string;
  readonly for: JointWord["kind"];
  readonly value: unknown;
}

export type PhasesInput =
  | { readonly kind: "start" }
  | { readonly kind: "agreed"; readonly step: WorkflowStep | SharedStep }
  | { readonly kind: "event"; readonly core: number; readonly event: CoreEvent }
  /** Of several cores at once. */
  | { readonly kind: "figures"; readonly from: string; readonly figures: MergedFigures }
  /** The core is gone for good; `awaited`: another may take its place. */
  | { readonly kind: "coreLost"; readonly core: number; readonly awaited: boolean }
  /** Another core takes the place of a lost one; `dealt`: the workflows whose share is known to be dealt to it. */
  | {
      readonly kind: "coreJoined";
      readonly core: number;
      readonly instead: number;
      readonly dealt?: readonly string[];
    }
  /** None does. */
  | { readonly kind: "coreForgone"; readonly core: number }
  /** Steers whatever runs now, and what begins later. */
  | { readonly kind: "pause" }
  | { readonly kind: "resume" }
  /** Of the plan. */
  | { readonly kind: "scale"; readonly factor: number }
  /** A search goes on to another load. */
  | { readonly kind: "level"; readonly workflow: string; readonly load: number }
  /** A search has its answer: the workflow ends as when its time is over. */
  | { readonly kind: "finish"; readonly workflow: string }
  /** Of whoever merges the datacenters that a workflow runs in. */
  | { readonly kind: "joint"; readonly word: JointWord }
  | { readonly kind: "stop" }
  | { readonly kind: "tick" };

export type PhasesEffect =
  | { readonly kind: "send"; readonly core: number; readonly command: CoreCommand }
  | { readonly kind: "agree"; readonly step: PhaseStep }
  | { readonly kind: "log"; readonly line: string }
  /** Code of a workflow asks for the end of the run. */
  | { readonly kind: "abort"; readonly workflow: string; readonly reason: string }
  /** Of a preparation that failed: whether the user can mend it. */
  | { readonly kind: "problem"; readonly problem: Problem }
  | { readonly kind: "done"; readonly status: JobStatus };
