/** Datacenters in which a job is to run, and the part of its plan in each. */

import { type Command, InvalidArgumentError } from "commander";
import { routingOf } from "../../client/routing.ts";
import type { Routing } from "../../core/cluster/messages.ts";
import { listed, wholeNumberFrom } from "../option-values.ts";
import { flagOf } from "./cluster-place.ts";
import { UsageError } from "./ledger-target.ts";

export interface RoutingFlags {
  readonly datacenters?: readonly string[];
  readonly datacenterCount?: number;
  readonly prefer?: readonly string[];
  readonly strict?: true;
  readonly split?: Routing["weights"];
  readonly eachDatacenter?: true;
}

export function withRouting(command: Command): Command {
  return command
    .option("--datacenters <names>", "where it runs; several split the plan among them", listed)
    .option("--datacenter-count <n>", "split the plan over so many datacenters", wholeNumberFrom(1))
    .option("--split <parts>", "which part each has, such as eu1=60,us1=40", splitIn)
    .option("--each-datacenter", "the whole plan in each datacenter instead of a part")
    .option("--prefer <names>", "datacenters of first choice, in order", listed)
    .option("--strict", "none but those of --prefer");
}

export function routingFrom(flags: RoutingFlags): Routing {
  const routed = routingOf(flags, flagOf);
  if (!routed.ok) throw new UsageError(routed.problem);
  return routed.routing;
}

function splitIn(text: string): Routing["weights"] {
  return listed(text).map((part) => {
    const [datacenter = "", share = ""] = part.split("=");
    const weight = Number(share);
    if (datacenter !== "" && share !== "" && weight > 0 && Number.isFinite(weight))
      return { datacenter, weight };
    throw new InvalidArgumentError(`"${part}" is no part of the plan, such as eu1=60`);
  });
}
