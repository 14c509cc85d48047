/**
 * `npm run fuzz`: ten million inputs over all decoders, the nightly amount.
 *
 *     npm run fuzz -- --inputs 10000000 --seed 42
 */

import { parseArgs } from "node:util";
import { Random } from "../../src/core/base/random.ts";
import { allTargets, damaged } from "./decoders.ts";

const { values } = parseArgs({
  options: {
    inputs: { type: "string", default: "10000000" },
    seed: { type: "string", default: String(Date.now()) },
  },
});
const targets = allTargets();
const perTarget = Math.ceil(Number(values.inputs) / targets.length);
/** A decoder that needs this long for a few hundred bytes hangs, whatever it is doing. */
const INPUT_MS_MAX = 100;
const started = performance.now();
process.stdout.write(`${targets.length} decoders, ${perTarget} inputs each, seed ${values.seed}\n`);
let slowest = 0;
for (const target of targets) {
  const random = new Random(`${values.seed}/${target.name}`);
  const before = process.memoryUsage().rss;
  const begun = performance.now();
  for (let i = 0; i < perTarget; i++) {
    // Turns of the loop, as between real packets: zlib lets go of its memory only then.
    if (i % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
    const input = damaged(target, random);
    const at = performance.now();
    try {
      target.decode(input);
    } catch (error) {
      const hex = Buffer.from(input).toString("hex");
      process.stdout.write(`\n${target.name} threw on ${hex}\n`);
      throw error;
    }
    const tookMs = performance.now() - at;
    slowest = Math.max(slowest, tookMs);
    if (tookMs > INPUT_MS_MAX) {
      const hex = Buffer.from(input).toString("hex");
      // The machine may have been busy: only what is slow twice is slow.
      const again = performance.now();
      target.decode(input);
      if (performance.now() - again > INPUT_MS_MAX)
        throw new Error(`${target.name} hangs on ${hex}`);
    }
  }
  const grown = (process.memoryUsage().rss - before) / 1_048_576;
  const rate = perTarget / ((performance.now() - begun) / 1_000);
  const memory = `memory ${grown >= 0 ? "+" : ""}${grown.toFixed(0)} MiB`;
  const speed = `${Math.round(rate).toLocaleString("en")}/s`;
  process.stdout.write(`  ${target.name.padEnd(36)} ${speed}, ${memory}\n`);
}
const total = perTarget * targets.length;
const seconds = (performance.now() - started) / 1_000;
const rss = process.memoryUsage().rss / 1_048_576;
process.stdout.write(
  `${total.toLocaleString("en")} inputs in ${seconds.toFixed(0)} s: none threw, none hung ` +
    `(slowest ${slowest.toFixed(1)} ms), resident ${rss.toFixed(0)} MiB at the end\n`,
);
