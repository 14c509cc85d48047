/**
 * `npm run combinations`: generated combinations of features, each written as layers of steps and as
 * a flow and run against a server that keeps its own log, every figure compared with a model computed from that log.
 *
 *     npm run combinations -- --count 200 --seed 7
 */

import { parseArgs } from "node:util";
import { differences } from "./compare.ts";
import { combination } from "./grammar.ts";
import { FORMS, runCombination } from "./run.ts";

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "100" },
    seed: { type: "string", default: String(Date.now()) },
  },
});
const count = Number(values.count);
let different = 0;
for (let at = 0; at < count; at++) {
  const chosen = combination(`${values.seed}/${at}`);
  for (const form of FORMS) {
    const found = differences(await runCombination(chosen, form));
    if (found.length === 0) continue;
    different++;
    process.stdout.write(
      `\n${form} ${JSON.stringify(chosen)}\n${found.map((text) => `  ${text}\n`).join("")}`,
    );
  }
  if ((at + 1) % 25 === 0) process.stdout.write(`${at + 1} combinations, ${different} differ\n`);
}
process.stdout.write(
  `${count} combinations in ${FORMS.length} forms, seed ${values.seed}: ${different} differ\n`,
);
process.exitCode = different === 0 ? 0 : 1;
