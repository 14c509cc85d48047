/** `hyperscale monitor`: the events of a cluster as they happen. */

import { styleText } from "node:util";
import type { Command } from "commander";
import { clean } from "../../core/base/terminal-text.ts";
import { type AgentTarget, followAgent } from "../../nodes/agent/client.ts";
import type { AgentEvent } from "../../nodes/agent/events.ts";
import { complain, escapeJson } from "../print.ts";
import { runAgainst, withTarget } from "./cluster-target.ts";

export function registerMonitor(program: Command): void {
  withTarget(program.command("monitor"))
    .description("follow membership and leadership events; Ctrl-C ends")
    .option("--json", "one JSON object per line")
    .action((options: AgentTarget & { readonly json?: boolean }) =>
      runAgainst(options, async (target) => {
        const ended = new AbortController();
        process.once("SIGINT", () => ended.abort());
        if (options.json !== true) complain(`following ${target.api} …`);
        try {
          for await (const line of followAgent(target, ended.signal)) {
            process.stdout.write(
              options.json === true ? `${escapeJson(line)}\n` : `${describe(line)}\n`,
            );
          }
          complain(`hyperscale: the agent at ${target.api} ended the stream`);
        } catch (error) {
          if (!ended.signal.aborted) throw error;
        }
      }),
    );
}

function describe(line: string): string {
  const event = JSON.parse(line) as AgentEvent;
  const time = event.at.slice(11, 23);
  if (event.event === "leader-change") {
    const who = event.member ?? "nobody";
    return paint(
      "cyan",
      `${time}  leader of ${event.group}: ${who} (term ${event.term}; ${event.why})`,
    );
  }
  if (event.event === "alarm") {
    const by = event.member === null ? "" : `  ${event.member}`;
    return paint("red", `${time}  ${event.event.padEnd(14)}${by}  ${event.code}: ${event.about}`);
  }
  const where = `${event.role} at ${event.address} in ${event.datacenter}`;
  const change = `${event.from ?? "new"} → ${event.to ?? "forgotten"}`;
  const text = `${time}  ${event.event.padEnd(14)}  ${event.member}  ${change}  (${event.why}; ${where})`;
  if (event.event === "member-failed") return paint("red", text);
  if (event.event === "member-suspect") return paint("yellow", text);
  return event.event === "member-join" ? paint("green", text) : clean(text);
}

function paint(color: "cyan" | "red" | "yellow" | "green", text: string): string {
  return process.stdout.isTTY ? styleText(color, clean(text)) : clean(text);
}
