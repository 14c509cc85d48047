/** `npm run chaos:queue`: the full chaos run; see chaos.ts. */

import { parseArgs } from "node:util";
import { chaos } from "../processes/queue/chaos.ts";
import { TestPostgres } from "../processes/queue/server.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "180" },
    tasks: { type: "string", default: "20000" },
    workers: { type: "string", default: "4" },
    restarts: { type: "string", default: "2" },
    seed: { type: "string", default: String(Date.now() % 100_000) },
  },
});
const server = await TestPostgres.start();
let code = 1;
try {
  console.log(`chaos: seed ${values.seed}`);
  const result = await chaos({
    server,
    seconds: Number(values.seconds),
    tasks: Number(values.tasks),
    workers: Number(values.workers),
    restarts: Number(values.restarts),
    seed: Number(values.seed),
    say: (text) => console.log(text),
  });
  console.log(result);
  const lost = result.acknowledged - result.tasks;
  console.log(
    result.problems.length === 0 && lost === 0
      ? `chaos: ${result.tasks} tasks, each ended once, every history legal, nothing lost`
      : `chaos: FAILED (${lost} lost)`,
  );
  code = result.problems.length === 0 && lost === 0 ? 0 : 1;
} finally {
  await server.stop();
}
process.exit(code);
