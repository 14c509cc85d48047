/** Cores that were lost in a run: what ran there, what of it is in no figure, and who made up for it. */

import { isoText } from "../../base/civil.ts";
import { formatCount } from "./format.ts";
import { costOf, dealtText } from "./load-figures.ts";
import type { LossFigures } from "./loss-figures.ts";
import type { Loss } from "./model.ts";
import type { WorkflowAggregate } from "./workflow-aggregate.ts";

interface LostCore {
  readonly core: number;
  /** What happened, and to whom. */
  readonly what: string;
  /** The worker that had it; null in a run of one machine. */
  readonly worker: string | null;
  readonly figures: LossFigures;
  /** Whoever knew what it had made is gone. */
  readonly isUnknown: boolean;
  /** Milliseconds of the wall clock; not finite when the run does not know it. */
  readonly wallMs: number;
  readonly atSeconds: number;
}

interface Joined {
  readonly core: number;
  readonly worker: string | null;
}

export class Losses {
  readonly #lost: LostCore[] = [];
  /** Who took the place of which lost core. */
  readonly #joined = new Map<number, Joined>();

  has(core: number): boolean {
    return this.#lost.some((one) => one.core === core);
  }

  add(lost: LostCore): void {
    this.#lost.push(lost);
  }

  /** Cores that came into the run after its start. */
  get joinedCores(): readonly number[] {
    return [...this.#joined.values()].map(({ core }) => core);
  }

  joined(core: number, instead: number, worker: string | null): void {
    this.#joined.set(instead, { core, worker });
  }

  /** `named`: a workflow, or the flows of a mix. */
  list(named: (workflow: string) => readonly WorkflowAggregate[]): Loss[] {
    return this.#lost.map((lost) => {
      const { figures } = lost;
      const measured = figures.workflow === null ? [] : named(figures.workflow);
      return this.#loss(lost, measured);
    });
  }

  #loss(lost: LostCore, ran: Measured): Loss {
    const { atSeconds, core, figures, wallMs, what, worker } = lost;
    const joined = this.#joined.get(core) ?? null;
    const held = ran.reduce((sum, one) => sum + one.requestsOf(core), 0);
    // What another driver of the run had counted may be in no figure of this one.
    const uncounted = figures.requestsUnseen + Math.max(0, figures.requestsCounted - held);
    const requestsNotCounted = lost.isUnknown && ran.length > 0 ? null : uncounted;
    const resumedMs = joined === null ? null : firstOf(ran, joined.core);
    const untilMs = resumedMs ?? Math.max(0, ...ran.map(({ elapsedMs }) => elapsedMs));
    const missingMs = ran.length === 0 ? 0 : Math.max(0, untilMs - figures.measuredMs);
    const [first] = ran;
    const cost =
      joined === null || first === undefined
        ? costOf(core, first)
        : dealtText(first, joined, missingMs);
    return {
      core,
      atSeconds,
      what,
      cost: worker === null ? cost : `${cost}${uncountedText(requestsNotCounted)}`,
      ...(Number.isFinite(wallMs) ? { at: isoText(wallMs) } : {}),
      ...{ worker, users: figures.users, requestsNotCounted },
      exact: requestsNotCounted === 0,
      missingMs,
      dealtAgainTo: joined === null ? null : (joined.worker ?? `core ${joined.core}`),
    };
  }
}

function uncountedText(requests: number | null): string {
  if (requests === null) return "; how many of its requests are in no figure is not known";
  return requests === 0
    ? ""
    : `; at most ${formatCount(requests)} of its requests are in no figure`;
}

type Measured = readonly WorkflowAggregate[];

/** What the loss of a core costs, were it lost now; `ran`: what measures there. */
export function lossFigures(ran: Measured, core: number, nowMs: number): LossFigures {
  const shares = ran.map((workflow) => workflow.shareOf(core, nowMs));
  const [first] = ran;
  const sum = (value: (share: (typeof shares)[number]) => number): number =>
    shares.reduce((all, share) => all + value(share), 0);
  return {
    workflow: first?.manifest.mix?.name ?? first?.manifest.name ?? null,
    users: sum(({ users }) => users),
    requestsCounted: sum(({ requestsCounted }) => requestsCounted),
    requestsUnseen: sum(({ requestsUnseen }) => requestsUnseen),
    measuredMs: Math.max(0, ...shares.map(({ measuredMs }) => measuredMs)),
  };
}

/** The measured time at which a core began; null before its first word. */
function firstOf(ran: Measured, core: number): number | null {
  const begun = ran.flatMap((one) => one.loadOf(core)?.firstMs ?? []);
  return begun.length === 0 ? null : Math.min(...begun);
}
