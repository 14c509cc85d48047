// `npm run nightly`: what is too long for every change, one part after the other. Each has a limit, after which it is
// ended and has failed. `npm run nightly -- combinations` runs that part alone.

import { spawn } from "node:child_process";

/** Script of package.json, its arguments, and after how many minutes it has failed. */
const PARTS = [
  ["sim:membership", ["--seeds", "300", "--minutes", "10"], 90],
  ["sim:ledger", ["--seeds", "300", "--minutes", "10"], 90],
  ["sim:cluster", ["--seeds", "100", "--minutes", "10"], 90],
  ["combinations", ["--count", "2000", "--jobs", "2"], 90],
  ["calibrate:compare", [], 30],
];

const named = process.argv.slice(2);
const unknown = named.find((name) => !PARTS.some(([script]) => script === name));
if (unknown !== undefined) {
  const known = PARTS.map(([script]) => script).join(", ");
  process.stderr.write(`nightly: there is no part "${unknown}"; the parts are ${known}\n`);
  process.exit(2);
}

const lines = [];
for (const [script, args, minutesMax] of PARTS) {
  if (named.length > 0 && !named.includes(script)) continue;
  const beganAt = performance.now();
  const problem = await run(script, args, minutesMax * 60_000);
  const minutes = ((performance.now() - beganAt) / 60_000).toFixed(1);
  lines.push(`${problem === null ? "✓" : "✗"} ${script}: ${minutes} min${problem ?? ""}`);
  if (problem !== null) process.exitCode = 1;
}
process.stdout.write(`\n${lines.join("\n")}\n`);

/** Null when it succeeded. The part has a process group, so that whatever it started ends with it. */
function run(script, args, msMax) {
  const child = spawn("npm", ["run", "--silent", script, "--", ...args], {
    stdio: "inherit",
    detached: true,
  });
  const end = () => process.kill(-child.pid, "SIGKILL");
  const stop = () => {
    end();
    process.exit(130);
  };
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, stop);
  return new Promise((resolve) => {
    let isLate = false;
    const limit = setTimeout(() => {
      isLate = true;
      end();
    }, msMax);
    child.once("error", (error) => resolve(`, ${error.message}`));
    child.once("exit", (code, signal) => {
      clearTimeout(limit);
      for (const name of ["SIGINT", "SIGTERM"]) process.removeListener(name, stop);
      if (code === 0) resolve(null);
      else
        resolve(
          isLate
            ? `, ended at its limit of ${msMax / 60_000} min`
            : `, ended with ${code ?? signal}`,
        );
    });
  });
}
