/**
 * `npm run sim:pressure`: behaviour of a cluster under overload, in a simulator in which every message costs time.
 * Exits with an error when a measurement misses its requirement.
 *
 *   npm run sim:pressure                       all measurements at full size
 *   npm run sim:pressure -- --small            all of them at a small size
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
  ...{ detector, routing, frames, submissions, tenants, watchers, timeouts },
};
const SMALL_SCALE = 0.01;

const names = Object.keys(FIGURES).join(", ");
const program = new Command("sim:pressure")
  .description(`Measures a cluster under pressure: ${names}.`)
  .argument("[names...]", "which rows; all by default")
  .option("--scale <x>", "multiply sizes and times by this", Number, 1)
  .option("--small", `the same as --scale ${SMALL_SCALE}`, false)
  .parse();

const wanted = program.args.length === 0 ? Object.keys(FIGURES) : program.args;
const { scale, small } = program.opts<{ readonly scale: number; readonly small: boolean }>();
const say = (line: string): void => void process.stdout.write(`${line}\n`);
let missed = 0;
say("| figure | what | must | seen | holds |");
say("|---|---|---|---|---|");
for (const name of wanted) {
  const figure = FIGURES[name];
  if (figure === undefined) throw new Error(`no figure "${name}"; one of ${names}`);
  const before = process.cpuUsage();
  for (const { holds, must, seen, what } of figure(small ? SMALL_SCALE : scale)) {
    if (!holds) missed++;
    say(`| ${name} | ${what} | ${must} | ${seen} | ${must === "" ? "" : holds ? "yes" : "NO"} |`);
  }
  const { system, user } = process.cpuUsage(before);
  say(`| ${name} | seconds of CPU for these rows | | ${((system + user) / 1e6).toFixed(0)} | |`);
}
say(missed === 0 ? "all hold" : `${missed} missed`);
process.exitCode = missed === 0 ? 0 : 1;
