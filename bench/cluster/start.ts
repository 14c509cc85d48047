/** From a submission on a warm cluster to its first request, and the spread of its cores' starts. */

import { type Findings, type Measurement, quantile, seconds } from "./row.ts";
import { Stage } from "./stage.ts";

const CORES = 3;
const START = {
  name: "start",
  figure: "submit to first request, warm cluster, p50 / p99",
  must: "1.5 / 4 s",
  aim: "0.7 / 2 s",
};
const SKEW = {
  name: "skew",
  figure: "start skew over cores of one datacenter, p99",
  must: "50 ms",
  aim: "15 ms",
};

async function measure(rounds: number, say: (text: string) => void): Promise<Findings> {
  const stage = await Stage.start({ gates: 3, managers: 3, workers: CORES, cores: 1 });
  const times: number[] = [];
  const skews: number[] = [];
  try {
    const { target } = stage;
    const job = await stage.prepare({ vus: 2 * CORES, duration: "1s", cores: CORES });
    // The first one transfers the files: from then on the cluster is warm.
    for (let round = 0; round <= rounds; round++) {
      const first = target.next();
      const sentAt = performance.now();
      const id = await stage.submit(job);
      const acceptedMs = performance.now() - sentAt;
      const firstMs = (await first) - sentAt;
      await stage.ended(id);
      const beginnings = target.beginnings();
      const skewMs = (beginnings.at(-1) ?? 0) - (beginnings[0] ?? 0);
      if (beginnings.length !== CORES) throw new Error(`${beginnings.length} cores have begun`);
      const begun = `first request after ${seconds(firstMs)}, skew ${skewMs.toFixed(1)} ms`;
      say(`start: accepted after ${seconds(acceptedMs)}, ${begun}`);
      await stage.settled();
      if (round === 0) continue;
      times.push(firstMs);
      skews.push(skewMs);
    }
  } finally {
    await stage.close();
  }
  const [p50, p99, skew] = [quantile(times, 0.5), quantile(times, 0.99), quantile(skews, 0.99)];
  return new Map([
    [
      START.name,
      { text: `${seconds(p50)} / ${seconds(p99)}`, holds: p50 <= 1_500 && p99 <= 4_000 },
    ],
    [SKEW.name, { text: `${skew.toFixed(1)} ms`, holds: skew <= 50 }],
  ]);
}

export const start: Measurement = { rows: [START, SKEW], measure };
