/** `hyperscale leave`: asks an agent to leave gracefully, or declares a failed member dead. */

import type { Command } from "commander";
import { clean } from "../../core/base/terminal-text.ts";
import { type AgentTarget, askAgent } from "../../nodes/agent/client.ts";
import { runAgainst, withTarget } from "./cluster-target.ts";

export function registerLeave(program: Command): void {
  withTarget(program.command("leave"))
    .description("make an agent leave its cluster and end")
    .option("--failed <name>", "instead: remove a failed member that will not come back")
    .action((options: AgentTarget & { readonly failed?: string }) =>
      runAgainst(options, async (target) => {
        if (options.failed !== undefined) {
          await askAgent(target, "POST", "/v1/force-leave", { name: options.failed });
          process.stdout.write(`${clean(options.failed)} is marked as left\n`);
          return;
        }
        await askAgent(target, "POST", "/v1/leave");
        process.stdout.write(`the agent at ${target.api} is leaving\n`);
      }),
    );
}
