/**
 * Reads generated answers with our HTTP/1.1 readers and with llhttp until the time is up, and stops
 * at the first disagreement with the seed that replays it.
 *
 *   npm run fuzz:http1 -- --seconds 60 [--seed text]
 */

import { parseArgs } from "node:util";
import { Random } from "../src/core/base/random.ts";
import { compareWithLlhttp, LOOSER, STRICTER } from "../src/protocols/http1/testing/compare.ts";
import { cut, generateAnswer } from "../src/protocols/http1/testing/generate.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "30" },
    seed: { type: "string", default: String(Date.now()) },
  },
});
const seconds = Number(values.seconds);
if (!(seconds > 0 && seconds <= 86_400)) {
  process.stderr.write("--seconds: a number above 0, at most 86400\n");
  process.exit(2);
}

const deadline = performance.now() + seconds * 1000;
const counts = new Map<string, number>();
const count = (name: string): void => void counts.set(name, (counts.get(name) ?? 0) + 1);

let answers = 0;
while (performance.now() < deadline) {
  const seed = `${values.seed}/${answers++}`;
  const random = new Random(seed);
  const answer = generateAnswer(random);
  const { ours, theirs, problem } = compareWithLlhttp(answer, cut(random, answer.bytes));
  if (problem !== null) {
    process.stdout.write(`${problem}\n  seed ${seed}, to HEAD: ${answer.toHead}\n`);
    process.stdout.write(`  ${JSON.stringify(answer.bytes.toString("latin1"))}\n`);
    process.exit(1);
  }
  count(`ours ${ours.end}, llhttp ${theirs.end}`);
  if (ours.end === "broken" && theirs.end === "complete") count(`stricter: ${ours.problem}`);
  if (ours.end === "complete" && theirs.end === "broken") count(`looser: ${theirs.problem}`);
}

process.stdout.write(`${answers} answers, seed ${values.seed}, no disagreement beyond the list\n`);
for (const [name, number] of [...counts].sort()) process.stdout.write(`${number}\t${name}\n`);
process.stdout.write("\nIntended differences:\n");
for (const [problem, reason] of [...STRICTER, ...LOOSER]) {
  process.stdout.write(`- ${problem}: ${reason}\n`);
}
