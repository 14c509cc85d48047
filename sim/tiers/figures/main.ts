/**
 * `npm run sim:pressure`: what a cluster under pressure does, in a simulator in which every message costs time.
 *
 *   npm run sim:pressure                       all rows, at their full size
 *   npm run sim:pressure -- submissions tenants --scale 0.2
 */

import { Command } from "commander";
import { detector } from "./detector.ts";
import type { Figure } from "./figure.ts";
import { frames } from "./frames.ts";
import { routing } from "./routing.ts";
import { submissions } from "./submissions.ts";
import { tenants } from "./tenants.ts";
import { timeouts } from "./timeouts.ts";
import { watchers } from "./watchers.ts";

const FIGURES: Readonly<Record<string, Figure>> = {
  ...{ detector, frames, submissions, tenants, watchers, routing, timeouts },
};

const program = new Command("sim:pressure")
  .description(`Measures a cluster under pressure: ${Object.keys(FIGURES).join(", ")}.`)
  .argument("[names...]", "which rows; all by default")
  .option("--scale <x>", "multiply sizes and times by this", Number, 1)
  .parse();

const wanted = program.args.length === 0 ? Object.keys(FIGURES) : program.args;
const { scale } = program.opts<{ readonly scale: number }>();
const say = (line: string): void => void process.stdout.write(`${line}\n`);
let missed = 0;
say("| figure | what | must | seen | holds |");
say("|---|---|---|---|---|");
for (const name of wanted) {
  const figure = FIGURES[name];
  if (figure === undefined)
    throw new Error(`no figure "${name}"; one of ${Object.keys(FIGURES).join(", ")}`);
  for (const { holds, must, seen, what } of figure(scale)) {
    if (!holds) missed++;
    say(`| ${name} | ${what} | ${must} | ${seen} | ${must === "" ? "" : holds ? "yes" : "NO"} |`);
  }
}
process.exitCode = missed === 0 ? 0 : 1;
