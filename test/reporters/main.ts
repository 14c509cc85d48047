/**
 * Reporters against real servers: the sent values are queried through the server's own interface and compared with the
 * summary they came from.
 *
 *   npm run test:reporters               all
 *   npm run test:reporters -- influx     those whose name contains this
 *   npm run test:reporters -- --nightly  also those that take minutes and much memory
 */

// First: what is missing is fetched.
import "./fetching.ts";
import { DASHBOARDS } from "./dashboards.ts";
import { DATABASES } from "./databases.ts";
import { LINES } from "./lines.ts";
import { Unavailable } from "./measure.ts";
import { STORES } from "./stores.ts";
import { TIME_SERIES } from "./time-series.ts";

async function main(words: readonly string[]): Promise<number> {
  const nightly = words.includes("--nightly");
  const wanted = words.find((word) => !word.startsWith("--")) ?? "";
  let failed = 0;
  for (const one of [...TIME_SERIES, ...LINES, ...DATABASES, ...STORES, ...DASHBOARDS]) {
    const title = `${one.reporter} → ${one.server}`;
    if (!title.toLowerCase().includes(wanted.toLowerCase())) continue;
    if (one.nightly === true && !nightly) {
      console.log(`skipped ${title}: only with --nightly`);
      continue;
    }
    try {
      console.log(`passed  ${title}: ${await one.run()}`);
    } catch (error) {
      const cannot = error instanceof Unavailable;
      if (!cannot) failed++;
      console.log(`${cannot ? "skipped" : "FAILED "} ${title}: ${(error as Error).message}`);
    }
  }
  return failed === 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
