/** `hyperscale members`: members of the cluster, as one agent sees it. */

import { styleText } from "node:util";
import type { Command } from "commander";
import { tableLines } from "../../core/base/text-table.ts";
import { formatMs } from "../../core/load/results/format.ts";
import { type AgentTarget, askAgent } from "../../nodes/agent/client.ts";
import type { MemberInfo } from "../../nodes/agent/events.ts";
import { jsonText } from "../print.ts";
import { runAgainst, withTarget } from "./cluster-target.ts";

interface MembersOptions extends AgentTarget {
  readonly json?: boolean;
  readonly state?: string;
}

export function registerMembers(program: Command): void {
  withTarget(program.command("members"))
    .description("list the members of a cluster")
    .option("--json", "an array of objects instead of a table")
    .option("--state <state>", "only members in this state: alive, suspect, dead or left")
    .action((options: MembersOptions) =>
      runAgainst(options, async (target) => {
        const all = await askAgent<readonly MemberInfo[]>(target, "GET", "/v1/members");
        const members = all
          .filter(({ state }) => options.state === undefined || state === options.state)
          .sort((a, b) => (a.name < b.name ? -1 : 1));
        const text = options.json === true ? jsonText(members, 2) : table(members);
        process.stdout.write(`${text}\n`);
      }),
    );
}

const COLUMNS = [
  "NAME",
  "ADDRESS",
  "ROLE",
  "DATACENTER",
  "STATE",
  "INCARNATION",
  "RTT",
  "HEALTH",
  "LEADER",
];
const COLORS = { alive: "green", suspect: "yellow", dead: "red", left: "gray" } as const;

function table(members: readonly MemberInfo[]): string {
  const rows = members.map((member) => [
    member.name,
    member.address,
    member.role,
    member.datacenter,
    member.state,
    String(member.incarnation),
    member.rttMs === null ? "-" : formatMs(member.rttMs),
    member.health === null ? "-" : member.health === 0 ? "ok" : `strained (${member.health})`,
    member.leader ? "*" : "",
  ]);
  const [head = "", ...lines] = tableLines([COLUMNS, ...rows]);
  const body = lines.map((line, at) => paint(line, members[at]?.state ?? "alive"));
  const counts = (["alive", "suspect", "dead", "left"] as const)
    .map((state) => [state, members.filter((member) => member.state === state).length] as const)
    .filter(([state, count]) => count > 0 || state === "alive")
    .map(([state, count]) => `${count} ${state}`);
  return [head, ...body, "", counts.join(", ")].join("\n");
}

function paint(text: string, state: MemberInfo["state"]): string {
  return process.stdout.isTTY && state !== "alive" ? styleText(COLORS[state], text) : text;
}
