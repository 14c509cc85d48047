/** A run, the way it is sent, and how what a server gives back is compared with its summary. */

import type { RunSummary, StepSummary } from "../../src/core/load/results/model.ts";
import { syntheticRun } from "../../src/core/load/results/testing/synthetic-run.ts";
import { openReporting } from "../../src/reporters/registry.ts";

/** As if it had just ended: databases of time series refuse what is old. */
export function freshRun(): RunSummary {
  const run = syntheticRun({ seed: "reporters", seconds: 10, rate: 0.5 });
  return { ...run, startedAt: new Date(Date.now() - 10_000).toISOString() };
}

export interface Step {
  readonly workflow: string;
  readonly step: StepSummary;
}

export const stepsOf = ({ workflows }: RunSummary): Step[] =>
  workflows.flatMap(({ name, steps }) => steps.map((step) => ({ workflow: name, step })));

/** A case that cannot be had here, by the reason. */
export class Unavailable extends Error {
  override readonly name = "Unavailable";
}

/** A reporter, and a server that takes what it sends and is asked for it again. */
export interface Case {
  readonly reporter: string;
  readonly server: string;
  /** Takes minutes and much memory: only with --nightly. */
  readonly nightly?: true;
  /** Compares, and returns what was compared. */
  readonly run: () => Promise<string>;
}

/** Compares requests and p99 of every step with a server's values. */
export async function checkSteps(
  run: RunSummary,
  reported: (step: Step) => Promise<{ readonly requests: unknown; readonly p99: unknown }>,
): Promise<string> {
  for (const one of stepsOf(run)) {
    const { p99, requests } = await reported(one);
    same(`requests of ${one.step.name}`, Number(requests), one.step.requests);
    same(`p99 of ${one.step.name}`, Number(p99), one.step.latencyMs.p99);
  }
  return "requests and p99 of every step";
}

/** Sends it, and fails when something was dropped. */
export async function send(report: string, run: RunSummary): Promise<void> {
  const problems: string[] = [];
  const onProblem = (name: string, problem: string): void =>
    void problems.push(`${name}: ${problem}`);
  const reporting = await openReporting([report], { env: process.env, onProblem });
  await reporting.start(run);
  const { reports = [] } = await reporting.finish(run);
  const [outcome] = reports;
  if (outcome === undefined || outcome.dropped > 0 || outcome.sent === 0)
    throw new Error(`${JSON.stringify(outcome)} ${problems.join("; ")}`);
}

export function same(what: string, got: number | undefined, wanted: number, share = 1e-9): void {
  const off = Math.abs((got ?? Number.NaN) - wanted);
  if (!(off <= Math.abs(wanted) * share + 1e-12))
    throw new Error(`${what}: the server says ${got}, the summary ${wanted}`);
}

export async function asked(url: string): Promise<unknown> {
  const answer = await fetch(url);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${text}`);
  return JSON.parse(text);
}

/** Until all of what was sent can be asked for. */
export async function eventually(check: () => Promise<void>): Promise<void> {
  const until = Date.now() + 30_000;
  for (;;) {
    try {
      await check();
      return;
    } catch (error) {
      if (Date.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}
