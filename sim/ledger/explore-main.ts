/**
 * The exploration from the command line: `npm run sim:explore`. Walks through several scopes, each as
 * far as the bound on states allows, then through the planted defects. Exit 129 on a violation of the
 * sound rules, or when a defect within the scope stays unseen.
 */

import type { Scope } from "./explore.ts";
import { explore } from "./explore.ts";
import { REACHED } from "./explore-mutants.ts";

const BROKEN = 129;
const STATES_MAX = Number(process.argv[2] ?? 3_000_000);

const SCOPES: readonly Omit<Scope, "statesMax">[] = [
  { members: 3, values: 1, views: 2, crashes: 1 },
  { members: 3, values: 1, views: 3, crashes: 0 },
  { members: 3, values: 2, views: 2, crashes: 0 },
  { members: 3, values: 2, views: 3, crashes: 0 },
  { members: 3, values: 2, views: 3, crashes: 1 },
  // In rounds these are seen whole.
  { members: 3, values: 2, views: 2, crashes: 0, delays: 0 },
  { members: 3, values: 1, views: 2, crashes: 0, delays: 1 },
  { members: 3, values: 1, views: 2, crashes: 1, delays: 0 },
  { members: 3, values: 1, views: 3, crashes: 0, delays: 0 },
  { members: 3, values: 2, views: 3, crashes: 0, delays: 0 },
];

let fine = true;
for (const scope of SCOPES) {
  const started = performance.now();
  const { states, depth, replicaStates, messages, complete, violation, trace } = explore({
    ...scope,
    statesMax: STATES_MAX,
  });
  const { values, views, crashes, delays } = scope;
  const way = delays === undefined ? "free" : `in rounds, ${delays} late`;
  const size = `${values} values, ${views} views, ${crashes} crashes, ${way}`;
  const seconds = ((performance.now() - started) / 1_000).toFixed(0);
  const reach = complete ? "complete" : `all of up to ${depth} steps`;
  const parts = `${replicaStates} replica states, ${messages} messages, ${seconds} s`;
  console.log(`${size}: ${states} states (${reach}), ${parts}: ${violation ?? "no violation"}`);
  if (violation === null) continue;
  fine = false;
  for (const line of trace) console.log(`    ${line}`);
}
for (const { name, scope } of REACHED) {
  const { states, violation, trace } = explore({ ...scope, statesMax: STATES_MAX });
  if (violation === null) fine = false;
  console.log(
    `${name.padEnd(20)} ${violation ?? "NOT FOUND"} (${states} states, ${trace.length} steps)`,
  );
}
process.exitCode = fine ? 0 : BROKEN;
