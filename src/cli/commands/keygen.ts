/** `hyperscale keygen` and `hyperscale keys`: creates and rotates the cluster's secret. */

import { randomBytes } from "node:crypto";
import type { Command } from "commander";
import { type AgentTarget, askAgent } from "../../nodes/agent/client.ts";
import type { KeyInfo } from "../../nodes/agent/events.ts";
import { jsonText } from "../print.ts";
import { runAgainst, withTarget } from "./cluster-target.ts";

const SECRET_BYTES = 32;

export function registerKeygen(program: Command): void {
  program
    .command("keygen")
    .description("print a new cluster secret: 256 random bits")
    .addHelpText("after", "\nExample:\n  $ (umask 077; hyperscale keygen > cluster.key)\n")
    .action(() => {
      process.stdout.write(`${randomBytes(SECRET_BYTES).toString("base64")}\n`);
    });
}

export function registerKeys(program: Command): void {
  const keys = program
    .command("keys")
    .description("see and rotate the keys of a running agent")
    .addHelpText(
      "after",
      `
Rotation, each step on every member before the next:
  1. append the new secret to the secret file, then "hyperscale keys reload"
  2. move it to the first line, then reload: it seals now, the old one still opens
  3. when "keys list" shows that the old key opens nothing any more, delete it and reload
`,
    );
  withTarget(keys.command("list"))
    .description("fingerprints of the ring, and how much each key has opened")
    .option("--json", "an array of objects instead of a table")
    .action((options: AgentTarget & { readonly json?: boolean }) =>
      runAgainst(options, async (target) => {
        show(await askAgent<readonly KeyInfo[]>(target, "GET", "/v1/keys"), options.json === true);
      }),
    );
  withTarget(keys.command("reload"))
    .description("read the secret file again")
    .option("--json", "an array of objects instead of a table")
    .action((options: AgentTarget & { readonly json?: boolean }) =>
      runAgainst(options, async (target) => {
        const ring = await askAgent<readonly KeyInfo[]>(target, "POST", "/v1/keys/reload");
        show(ring, options.json === true);
      }),
    );
}

function show(keys: readonly KeyInfo[], json: boolean): void {
  if (json) {
    process.stdout.write(`${jsonText(keys, 2)}\n`);
    return;
  }
  process.stdout.write("KEY       SEALS  OPENED\n");
  for (const { id, current, opened } of keys) {
    process.stdout.write(`${id}  ${current ? "yes  " : "no   "}  ${opened}\n`);
  }
}
