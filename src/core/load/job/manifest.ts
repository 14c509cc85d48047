/**
 * A workflow as plain data: all that a coordinator, local or in a cluster, needs to order, place,
 * judge and report it without ever loading its code (WF-6). The engine's cores load the code.
 */

import type { LoadPlan, PlanPart } from "../plan/load.ts";
import { type GraphProblem, layersOf } from "./graph.ts";
import type { Priority } from "./partition.ts";

export interface WorkflowManifest {
  /** Unique in its job (WF-8). */
  readonly name: string;
  readonly load: LoadPlan;
  /** It begins so long after its layer. */
  readonly startAfterMs: number;
  readonly warmupMs: number;
  readonly gracefulStopMs: number;
  /** Share of calls, and of iterations, that may be unanswered without failing the run; 1 % by default. */
  readonly unansweredMax?: number | undefined;
  readonly setupMsMax: number;
  readonly teardownMsMax: number;
  readonly priority: Priority;
  readonly dependsOn: readonly string[];
  /** At least one step is measured (WF-1). */
  readonly isTest: boolean;
  /** A mix: the flows that its iterations are shared by, each measured as a workflow of its own. */
  readonly parts: readonly WorkflowManifest[];
  /** The mix that it is a part of. */
  readonly mix: { readonly name: string; readonly share: number } | null;
  /** A flow: its steps, checks and groups are met while its body runs; these patterns name some. */
  readonly flow: FlowManifest | null;
  readonly steps: readonly StepManifest[];
  readonly checks: readonly string[];
  /** Custom metrics that the file declares; any of its workflows may feed them. */
  readonly metrics: readonly MetricManifest[];
  readonly provides: readonly ProvideManifest[];
  readonly uses: readonly UseManifest[];
  readonly thresholds: readonly ThresholdSpec[];
  /** Latency is measured from the intended start: open models. */
  readonly corrected: boolean;
  readonly connectionsMax: number;
  /** Connections at once, by where they lead to. */
  readonly targets: readonly TargetManifest[];
  /** The load above is a part of a plan that several datacenters make together. */
  readonly part?: PlanPart | undefined;
  /** Several datacenters begin and end it together; the first one sets it up and tears it down for all. */
  readonly joint?: "first" | "other" | undefined;
}

export interface FlowManifest {
  /** Names that the body makes up: "item-*". */
  readonly patterns: readonly string[];
  /** Tags of steps that are counted apart. */
  readonly series: readonly string[];
}

interface TargetManifest {
  /** "127.0.0.1:8080"; null when only the code of a step knows it. */
  readonly to: string | null;
  readonly perUser: number;
  /** Of a pool that the users of a core share. */
  readonly perCore: number;
}

interface MetricManifest {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "rate" | "trend";
}

interface StepManifest {
  readonly name: string;
  /** A step is a measured call, an action is not. */
  readonly kind: "step" | "action";
  readonly protocol: string;
  readonly after: readonly string[];
  readonly layer: number;
  readonly tags: Readonly<Record<string, string>>;
}

/** A value this workflow hands to others, under its key (CTX-1). */
interface ProvideManifest {
  readonly key: string;
  readonly to: readonly string[];
}

/** Values this workflow takes from others (CTX-2). No keys means every key the source gives it. */
interface UseManifest {
  readonly name: string;
  readonly from: readonly string[];
  readonly keys: readonly string[];
}

export interface ThresholdSpec {
  readonly expression: string;
  /** End the run as soon as it does not hold… */
  readonly abortOnFail: boolean;
  /** …but not before so much measured time. */
  readonly afterMs: number;
}

interface ManifestProblem {
  /** An error keeps the job from running, a warning is shown. */
  readonly severity: "error" | "warning";
  readonly workflow: string;
  readonly message: string;
}

/** Everything that has a name and thresholds of its own: flows of a mix beside the mix. */
export function withParts(manifests: readonly WorkflowManifest[]): WorkflowManifest[] {
  return manifests.flatMap((manifest) => [manifest, ...manifest.parts]);
}

/** Errors first. An empty list means that the job can run as declared. */
export function validateManifests(manifests: readonly WorkflowManifest[]): ManifestProblem[] {
  const errors: ManifestProblem[] = [];
  const nodes = manifests.map(({ name, dependsOn }) => ({ name, after: dependsOn }));
  const order = layersOf(nodes, "workflow");
  if (!order.ok) errors.push(error(order, workflowOf(order)));
  for (const { name, steps } of manifests) {
    const layers = layersOf(steps);
    if (!layers.ok) errors.push(error(layers, name, `workflow "${name}": `));
  }
  return [...errors, ...contextWarnings(manifests)];
}

function error(problem: GraphProblem, workflow: string, prefix = ""): ManifestProblem {
  return { severity: "error", workflow, message: prefix + problem.message };
}

function workflowOf(problem: GraphProblem): string {
  return problem.problem === "cycle" ? (problem.cycle[0] ?? "") : problem.node;
}

/** Values that were declared on one side and can never arrive: defaults would be used silently (CTX-5). */
function contextWarnings(manifests: readonly WorkflowManifest[]): ManifestProblem[] {
  const byName = new Map(manifests.map((manifest) => [manifest.name, manifest]));
  const warnings: ManifestProblem[] = [];
  for (const consumer of manifests) {
    const warn = (message: string): void => {
      warnings.push({ severity: "warning", workflow: consumer.name, message });
    };
    for (const { key, to } of consumer.provides) {
      const stranger = to.find((name) => !byName.has(name));
      if (stranger === undefined) continue;
      warn(
        `workflow "${consumer.name}" provides "${key}" to "${stranger}", which is not in this job`,
      );
    }
    for (const use of consumer.uses) {
      for (const from of use.from) {
        const reason = whyNothingFlows(consumer, use, from, byName.get(from));
        if (reason !== null) warn(`${reason}, so "${use.name}" gets its defaults`);
      }
    }
  }
  return warnings;
}

function whyNothingFlows(
  consumer: WorkflowManifest,
  use: UseManifest,
  from: string,
  provider: WorkflowManifest | undefined,
): string | null {
  const head = `workflow "${consumer.name}" uses values of "${from}"`;
  if (provider === undefined) return `${head}, which is not in this job`;
  if (!consumer.dependsOn.includes(from)) {
    return `${head} without depending on it (add it to dependsOn)`;
  }
  const given = provider.provides.filter(({ to }) => to.includes(consumer.name));
  if (given.length === 0) return `${head}, which provides nothing to it`;
  const missing = use.keys.find((key) => !given.some((one) => one.key === key));
  // A key may come from another of the sources; that source is looked at in its own turn.
  if (missing === undefined || use.from.length > 1) return null;
  return `${head}, which provides no "${missing}" (it provides ${given.map(({ key }) => `"${key}"`).join(", ")})`;
}
