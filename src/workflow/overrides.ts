/** Flags of the command line that replace parts of a file's load model. (`--vus`, `--duration`, `--rate`, …) */

import type { LoadOverrides } from "../core/load/job/load-overrides.ts";
import type { WorkflowManifest } from "../core/load/job/manifest.ts";
import { isOpen, type LoadPlan, planVusMax, shareOfPlan } from "../core/load/plan/load.ts";
import type { CallSettings } from "../protocols/protocol.ts";
import { DefinitionError } from "./errors.ts";
import { planOf } from "./load-options.ts";

const DEFAULT_DURATION_MS = 10_000;

/** Applies the overrides to a plan; returns the same plan when none concerns it. */
export function overridePlan(plan: LoadPlan, overrides: LoadOverrides): LoadPlan {
  const { durationMs, iterations, rate, vus } = overrides;
  const unchanged = [durationMs, iterations, rate, vus].every((one) => one === undefined);
  if (plan.kind === "once" && unchanged) return plan;
  return bounded(reshaped(plan, overrides), overrides);
}

/** Another model, or another amount of the same. */
function reshaped(plan: LoadPlan, overrides: LoadOverrides): LoadPlan {
  const { durationMs, iterations, maxVus, rate, vus } = overrides;
  const where = "command line";
  const duration = durationMs ?? lengthOf(plan);
  const throttle = "rateMax" in plan && plan.rateMax !== undefined ? { maxRate: plan.rateMax } : {};
  if (rate !== undefined) {
    const arrivals = "poisson" in plan ? { arrivals: "poisson" as const } : {};
    const most = maxVus === undefined ? {} : { maxVus };
    return planOf({ rate, duration, ...arrivals, ...most }, where);
  }
  if (iterations !== undefined) {
    const users = vus ?? usersOf(plan);
    return planOf({ vus: users, iterations, ...throttle, ...limit(plan, durationMs) }, where);
  }
  if (vus !== undefined) {
    const counted = { ...throttle, ...limit(plan, durationMs) };
    if (plan.kind === "shared")
      return planOf({ vus, iterations: plan.iterations, ...counted }, where);
    if (plan.kind === "perUser")
      return planOf({ vus, iterationsPerVu: plan.iterations, ...counted }, where);
    return planOf({ vus, duration, ...throttle }, where);
  }
  return durationMs === undefined ? plan : stretched(plan, durationMs);
}

/** Applies the bounds of the command line, where the plan has them. */
function bounded(plan: LoadPlan, { maxRate, maxVus }: LoadOverrides): LoadPlan {
  if (maxVus !== undefined && !isOpen(plan)) {
    throw new DefinitionError(
      "--max-vus bounds the users of an open model; it needs --rate, or a file with a rate",
    );
  }
  const users = maxVus !== undefined && "vusMax" in plan ? { ...plan, vusMax: maxVus } : plan;
  if (maxRate === undefined) return users;
  if (users.kind === "rate" || users.kind === "search" || users.kind === "once") {
    throw new DefinitionError(
      "--max-rate bounds the iterations of a closed model; others have the rate they are given",
    );
  }
  return { ...users, rateMax: maxRate };
}

/** The same shape over another length of time. */
function stretched(plan: LoadPlan, durationMs: number): LoadPlan {
  if (!("stages" in plan)) return { ...plan, durationMsMax: durationMs };
  const factor = durationMs / lengthOf(plan);
  return {
    ...plan,
    stages: plan.stages.map((stage) => ({ ...stage, durationMs: stage.durationMs * factor })),
  };
}

/** Time limit of a plan that iterations end: the flag's, else the file's own. */
function limit(plan: LoadPlan, durationMs: number | undefined): { maxDuration?: number } {
  const most = durationMs ?? ("durationMsMax" in plan ? plan.durationMsMax : undefined);
  return most === undefined ? {} : { maxDuration: most };
}

function lengthOf(plan: LoadPlan): number {
  if (!("stages" in plan)) return DEFAULT_DURATION_MS;
  return plan.stages.reduce((sum, stage) => sum + stage.durationMs, 0);
}

function usersOf(plan: LoadPlan): number {
  if (plan.kind === "shared" || plan.kind === "perUser") return plan.vus;
  if (plan.kind === "vus")
    return Math.max(1, ...plan.stages.map((stage) => Math.max(stage.from, stage.to)));
  return 1;
}

export function overrideSettings(settings: CallSettings, overrides: LoadOverrides): CallSettings {
  const { insecure, timeoutMs, tracedShare } = overrides;
  if ([insecure, timeoutMs, tracedShare].every((one) => one === undefined)) return settings;
  return {
    ...settings,
    timeoutMs: timeoutMs ?? settings.timeoutMs,
    insecure: insecure ?? settings.insecure,
    tracedShare: tracedShare ?? settings.tracedShare,
  };
}

/** Applies the overrides to a manifest. */
export function overrideManifest(
  manifest: WorkflowManifest,
  overrides: LoadOverrides,
): WorkflowManifest {
  if (!manifest.isTest) return manifest;
  const load = overridePlan(manifest.load, overrides);
  const widest = manifest.connectionsMax / Math.max(1, planVusMax(manifest.load));
  const times = {
    warmupMs: overrides.warmupMs ?? manifest.warmupMs,
    gracefulStopMs: overrides.gracefulStopMs ?? manifest.gracefulStopMs,
    unansweredMax: overrides.unansweredMax ?? manifest.unansweredMax,
    corrected: isOpen(load),
  };
  return {
    ...manifest,
    ...times,
    load,
    parts: manifest.parts.map((part) => ({
      ...part,
      ...times,
      load: shareOfPlan(load, part.mix?.share ?? 1),
    })),
    connectionsMax: Math.ceil(widest * planVusMax(load)),
  };
}
