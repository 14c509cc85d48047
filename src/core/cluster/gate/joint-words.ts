/**
 * Controls that coordinate the datacenters of a job: when a workflow starts, with the value of its set-up, and when it
 * is over everywhere. A pure function of their reports and the job's log, so that the next leader decides the same.
 */

import { encodePlain } from "../../base/plain-value.ts";
import type { SetUp } from "../../ledger/job/job-state.ts";
import { SET_UP_BYTES_MAX, SET_UP_VALUE_BYTES_MAX } from "../../ledger/job/limits.ts";
import type { ToldRun } from "../../load/execution/told-run.ts";
import type { WorkflowManifest } from "../../load/job/manifest.ts";
import { measuredOf } from "../../load/results/workflow-aggregate.ts";
import { decodeShape, isAnything, isWhole, record } from "../manager/shapes.ts";
import type { Control } from "../messages.ts";
import type { JobPart } from "./job-parts.ts";
import { ENDED_WORKFLOWS } from "./merged-run.ts";

export type JointControl = Extract<Control, { kind: "begin" | "over" }>;

/** Datacenter of the job in its current state. */
interface JointPlace {
  readonly datacenter: string;
  readonly report: ToldRun | null;
  /** Nothing of the job runs there, as far as known. */
  readonly isOver: boolean;
}

/** Workflow that all its datacenters wait to start. */
interface ReadyWorkflow {
  readonly workflow: string;
  readonly value: unknown;
}

interface Begun {
  readonly atMs: number;
  readonly value: unknown;
}

export class JointWords {
  readonly #parts: readonly JobPart[];
  readonly #places: readonly JointPlace[];
  readonly #begun: ReadonlyMap<string, Begun>;
  readonly #bytes: number;

  constructor(parts: readonly JobPart[], places: readonly JointPlace[], setUps: readonly SetUp[]) {
    this.#parts = parts;
    this.#places = places;
    this.#begun = new Map(setUps.map(({ value, workflow }) => [workflow, decodeBegun(value)]));
    this.#bytes = setUps.reduce((sum, { value }) => sum + value.length, 0);
  }

  /** Next workflow that can start: set up, and prepared wherever it runs. */
  ready(): ReadyWorkflow | null {
    for (const { name } of this.#manifests()) {
      const [first, ...others] = this.#placesOf(name);
      const wait = first === undefined ? undefined : waitOf(first, name, "begin");
      if (wait === undefined || this.#begun.has(name) || this.#failure(name) !== null) continue;
      if (others.every((one) => waitOf(one, name, "begin") !== undefined))
        return { workflow: name, value: wait.value };
    }
    return null;
  }

  /** Controls for one datacenter. It does not wait any more for those it has received. */
  of(datacenter: string): readonly JointControl[] {
    const place = this.#places.find((one) => one.datacenter === datacenter);
    return (place?.report?.waits ?? []).flatMap((wait): readonly JointControl[] => {
      const { workflow } = wait;
      const begun = this.#begun.get(workflow);
      if (wait.for === "over")
        return this.#isOverElsewhere(workflow, datacenter) ? [over(workflow)] : [];
      if (begun !== undefined) return [{ kind: "begin", workflow, ...begun }];
      const failure = this.#failure(workflow);
      return failure === null ? [] : [over(workflow, failure)];
    });
  }

  /** Reason why an unstarted workflow will never start; null if it may. */
  #failure(workflow: string): string | null {
    for (const place of this.#placesOf(workflow)) {
      if (!this.#hasEnded(workflow, place)) continue;
      const report = place.report?.workflows.find(
        ({ error, name }) => name === workflow && error !== null,
      );
      return `${place.datacenter}: ${report?.error ?? "it ended before it began"}`;
    }
    const [first] = this.#placesOf(workflow);
    const value = first === undefined ? undefined : waitOf(first, workflow, "begin")?.value;
    return this.#sizeProblem(encodeBegun({ atMs: Number.MAX_SAFE_INTEGER, value }).length);
  }

  #sizeProblem(bytes: number): string | null {
    if (bytes > SET_UP_VALUE_BYTES_MAX)
      return `the value of its set-up takes ${bytes} bytes; at most ${SET_UP_VALUE_BYTES_MAX} reach other datacenters`;
    return this.#bytes + bytes > SET_UP_BYTES_MAX
      ? `the values of all set-ups take more than ${SET_UP_BYTES_MAX} bytes`
      : null;
  }

  #isOverElsewhere(workflow: string, datacenter: string): boolean {
    const others = this.#placesOf(workflow).filter((one) => one.datacenter !== datacenter);
    return others.every((one) => this.#hasEnded(workflow, one));
  }

  #hasEnded(workflow: string, { isOver, report }: JointPlace): boolean {
    if (isOver || report === null) return isOver;
    const manifest = this.#manifests().find(({ name }) => name === workflow);
    const measured = manifest === undefined ? [] : measuredOf([manifest]).map(({ name }) => name);
    return report.workflows
      .filter(({ name }) => measured.includes(name))
      .every(({ status }) => ENDED_WORKFLOWS.includes(status));
  }

  /** The first datacenter runs every workflow of the job. */
  #manifests(): readonly WorkflowManifest[] {
    return this.#parts[0]?.submission.manifests ?? [];
  }

  #placesOf(workflow: string): readonly JointPlace[] {
    return this.#parts.flatMap(({ datacenter, submission }) =>
      submission.manifests.some(({ name }) => name === workflow)
        ? this.#places.filter((one) => one.datacenter === datacenter)
        : [],
    );
  }
}

/** Encoding in the job's log. */
export function encodeBegun(begun: Begun): Uint8Array {
  return encodePlain(begun);
}

function decodeBegun(bytes: Uint8Array): Begun {
  const shape = record({ atMs: isWhole, value: isAnything });
  return decodeShape<Begun>(bytes, shape) ?? { atMs: 0, value: undefined };
}

function waitOf(
  { report }: JointPlace,
  workflow: string,
  what: "begin" | "over",
): ToldRun["waits"][number] | undefined {
  return report?.waits.find((one) => one.workflow === workflow && one.for === what);
}

function over(workflow: string, error: string | null = null): JointControl {
  return { kind: "over", workflow, error };
}
