/** Inputs and effects of the executions of a job; see `phases.ts`. */

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

/** Receives the events and measurements of workflows. As pure as this machine. */
export interface PhasesListener {
  /** The workflow is being set up or torn down, or (null) neither any more. */
  workflowBusy(workflow: string, doing: "setting up" | "tearing down" | null): void;
  workflowStarted(workflow: string, cores: readonly number[]): void;
  /** Another core begins with the share of a lost one. */
  shareJoined(workflow: string, core: number): void;
  /** Elapsed milliseconds of its plan as reported by its cores; null when none reports. */
  planMs(workflow: string): number | null;
  /** Returns the number of the frame that is retained now. */
  frame(workflow: string, core: number, bytes: Uint8Array, vitals: CoreVitals): number;
  /** Metrics of several cores, merged by their worker; returns the same. */
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

/** Steps that take effect only once the driver has agreed. */
export type PhaseStep =
  /** These cores get the workflow; agreed with the number of the execution. */
  | { readonly kind: "place"; readonly workflow: string; readonly cores: readonly number[] }
  /** The share of a lost core is reassigned; agreed with the number of the execution. */
  | {
      readonly kind: "deal";
      readonly workflow: string;
      readonly core: number;
      readonly instead: number;
    }
  /** Setup is about to begin on a core. */
  | { readonly kind: "setup"; readonly workflow: string; readonly core: number }
  /** Setup is over, with this value for all cores. */
  | { readonly kind: "setupDone"; readonly workflow: string; readonly value: unknown }
  | { readonly kind: "teardown"; readonly workflow: string; readonly core: number }
  /** A core has finished its load; the values it provides outlive it. */
  | {
      readonly kind: "finished";
      readonly workflow: string;
      readonly core: number;
      readonly finished: Finished;
    }
  /** The workflow is over on all its cores, successfully or with an error: its dependents may begin. */
  | {
      readonly kind: "report";
      readonly workflow: string;
      readonly error: string | null;
      /** Rules broken by its teardown. */
      readonly faults: readonly PartFault[];
    }
  /** The run ends before its plan is over: requested by a threshold, its time limit or its own code. */
  | {
      readonly kind: "stop";
      /** The workflow whose code asked, and the rule that was broken beside what is measured. */
      readonly workflow: string | null;
      readonly fault: Fault | null;
    }
  /** A search continues with another load after this probe. */
  | {
      readonly kind: "level";
      readonly workflow: string;
      readonly load: number;
      readonly probe: Probe;
    }
  /** A search has its answer with this probe: the workflow ends as when its time is over. */
  | { readonly kind: "finish"; readonly workflow: string; readonly probe: Probe }
  /** Requests rows or iterations; agreed with the block assigned to the core. */
  | {
      readonly kind: "grant";
      readonly workflow: string;
      readonly execution: number;
      readonly core: number;
      readonly name: string;
      readonly size: number;
      /** Request number of the core: a retry gets the same block. */
      readonly request: number;
    }
  /** Requests unique numbers; agreed with these. The core has one request per name at a time. */
  | {
      readonly kind: "numbers";
      readonly core: number;
      readonly id: number;
      readonly name: string;
      readonly count: number;
    }
  /** Values are put into a queue of this name. */
  | { readonly kind: "queue"; readonly name: string };

/** A step with the result of its agreement. */
export type AgreedStep =
  | (Extract<PhaseStep, { kind: "place" }> & { readonly execution: number })
  | (Extract<PhaseStep, { kind: "deal" }> & { readonly execution: number })
  | Exclude<PhaseStep, { kind: "place" | "deal" | "grant" | "numbers" }>
  | (Extract<PhaseStep, { kind: "numbers" }> & { readonly from: number; readonly to: number })
  | (Extract<PhaseStep, { kind: "grant" }> & Granted);

/** Steps of one workflow over its cores. */
export type WorkflowStep = Exclude<
  AgreedStep,
  { kind: "stop" | "level" | "finish" | "numbers" | "queue" }
>;

export type Dealt = Extract<AgreedStep, { kind: "deal" }>;

export type Reported = Extract<PhaseStep, { kind: "report" }>;

/** Steps of state shared by all cores. */
export type SharedStep = Extract<AgreedStep, { kind: "numbers" | "queue" }>;

/** Indices [from, to); `last`: there are no more. */
export interface Granted {
  readonly from: number;
  readonly to: number;
  readonly last: boolean;
}

/** Directive for a workflow over several datacenters, from the gate that merges them. */
export type JointWord =
  | {
      readonly kind: "begin";
      readonly workflow: string;
      /** Value of the setup, wherever it ran. */
      readonly value: unknown;
      /** Milliseconds until the start. */
      readonly inMs: number;
    }
  | { readonly kind: "over"; readonly workflow: string; readonly error: string | null };

/** Directive that a workflow waits for, with the result of its setup. */
export interface JointWait {
  readonly workflow: string;
  readonly for: JointWord["kind"];
  readonly value: unknown;
}

export type PhasesInput =
  | { readonly kind: "start" }
  | { readonly kind: "agreed"; readonly step: WorkflowStep | SharedStep }
  | { readonly kind: "event"; readonly core: number; readonly event: CoreEvent }
  /** Metrics of several cores at once. */
  | { readonly kind: "figures"; readonly from: string; readonly figures: MergedFigures }
  /** The core is lost for good; `awaited`: another may replace it. */
  | { readonly kind: "coreLost"; readonly core: number; readonly awaited: boolean }
  /** Another core replaces a lost one; the listed workflows are known to have assigned it their share. */
  | {
      readonly kind: "coreJoined";
      readonly core: number;
      readonly instead: number;
      readonly dealt?: readonly string[];
    }
  /** No core replaces the lost one. */
  | { readonly kind: "coreForgone"; readonly core: number }
  /** Controls running workflows and those that begin later. */
  | { readonly kind: "pause" }
  | { readonly kind: "resume" }
  /** Scale factor of the plan. */
  | { readonly kind: "scale"; readonly factor: number }
  /** A search continues with another load. */
  | { readonly kind: "level"; readonly workflow: string; readonly load: number }
  /** A search has its answer: the workflow ends as when its time is over. */
  | { readonly kind: "finish"; readonly workflow: string }
  /** Directive of the gate that merges the datacenters of a workflow. */
  | { readonly kind: "joint"; readonly word: JointWord }
  | { readonly kind: "stop" }
  | { readonly kind: "tick" };

export type PhasesEffect =
  | { readonly kind: "send"; readonly core: number; readonly command: CoreCommand }
  | { readonly kind: "agree"; readonly step: PhaseStep }
  | { readonly kind: "log"; readonly line: string }
  /** Code of a workflow asks for the end of the run. */
  | { readonly kind: "abort"; readonly workflow: string; readonly reason: string }
  /** A failed preparation, and whether the user can fix it. */
  | { readonly kind: "problem"; readonly problem: Problem }
  | { readonly kind: "done"; readonly status: JobStatus };
