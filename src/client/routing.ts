/** Datacenters in which a job is to run, as its user says it. */

import { ANYWHERE, type Routing } from "../core/cluster/messages.ts";

export interface Placement {
  /** These and no others. */
  readonly datacenters?: readonly string[] | undefined;
  /** Number of datacenters, when the gate chooses; one by default, the best one. */
  readonly datacenterCount?: number | undefined;
  /** First choice, in order. */
  readonly prefer?: readonly string[] | undefined;
  /** Only those of `prefer`. */
  readonly strict?: boolean | undefined;
  /** Parts of the plan by datacenter, in any unit; by free cores by default. */
  readonly split?: Routing["weights"] | undefined;
  /** The whole plan in each instead of a part. */
  readonly eachDatacenter?: boolean | undefined;
}

type Routed =
  | { readonly ok: true; readonly routing: Routing }
  | { readonly ok: false; readonly problem: string };

/** `nameOf`: names of options as the user wrote them. */
export function routingOf(placement: Placement, nameOf: (option: string) => string): Routed {
  const { datacenterCount, eachDatacenter, prefer = [], split = [], strict } = placement;
  const named = placement.datacenters ?? split.map(({ datacenter }) => datacenter);
  const count = datacenterCount ?? 1;
  const wrong = (option: string, what: string): Routed => ({
    ok: false,
    problem: `${nameOf(option)}: ${what}`,
  });
  for (const option of ["datacenters", "prefer", "split"] as const)
    if (placement[option]?.length === 0)
      return wrong(option, "names no datacenter; name one, or leave it out");
  if (!Number.isSafeInteger(count) || count < 1)
    return wrong("datacenterCount", `is ${count}; it must be a whole number of at least 1`);
  if (strict === true && prefer.length === 0) return wrong("strict", `needs ${nameOf("prefer")}`);
  if (datacenterCount !== undefined && named.length > 0)
    return wrong("datacenterCount", "the datacenters are named already");
  if (eachDatacenter === true && Math.max(count, named.length) < 2)
    return wrong(
      "eachDatacenter",
      `needs ${nameOf("datacenters")} or ${nameOf("datacenterCount")}`,
    );
  if (eachDatacenter === true && split.length > 0)
    return wrong("eachDatacenter", `each has the whole plan, and ${nameOf("split")} divides it`);
  const routing = {
    ...ANYWHERE,
    ...{ datacenters: named, count, prefer, weights: split },
    ...{ strict: strict === true, each: eachDatacenter === true },
  };
  return { ok: true, routing };
}
