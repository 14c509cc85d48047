/** In which datacenters a job is to run. */

import type { Command } from "commander";
import { ANYWHERE, type Routing } from "../../core/tiers/messages.ts";
import { listed } from "../option-values.ts";
import { UsageError } from "./ledger-target.ts";

export interface RoutingFlags {
  readonly datacenters?: readonly string[];
  readonly prefer?: readonly string[];
  readonly strict?: true;
}

export function withRouting(command: Command): Command {
  return command
    .option("--datacenters <name>", "where it runs; without, in the best datacenter", listed)
    .option("--prefer <names>", "datacenters of first choice, in order", listed)
    .option("--strict", "none but those of --prefer");
}

export function routingOf({ datacenters = [], prefer = [], strict }: RoutingFlags): Routing {
  if (strict === true && prefer.length === 0) throw new UsageError("--strict: needs --prefer");
  return { ...ANYWHERE, datacenters, prefer, strict: strict === true };
}
