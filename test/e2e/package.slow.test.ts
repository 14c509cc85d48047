/** The package as it would be published: packed, unpacked elsewhere, compiled against and run there. */

import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type DemoTarget, startDemoTarget } from "../../src/demo/server.ts";
import { Scratch } from "./cli.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
let demo: DemoTarget;
let here: Scratch;

/** Not synchronous: the target they load runs in this process. */
async function program(command: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(command, args, { cwd: here.path });
  return stdout;
}

beforeAll(async () => {
  demo = await startDemoTarget({ port: 0 });
  here = new Scratch();
  // Builds what is old, and writes a project where there is none.
  expect((await here.run("new", "flow.ts", "--template", "login")).code).toBe(0);
  await program("npm", "pack", "--silent", "--offline", root);
  const archive = readdirSync(here.path).find((name) => name.endsWith(".tgz")) ?? "none";
  await program("tar", "-xzf", archive);
  const modules = join(here.path, "node_modules");
  mkdirSync(modules);
  renameSync(join(here.path, "package"), join(modules, "hyperscalejs"));
  // Packages that npm would install from a registry are linked from the checkout.
  for (const name of readdirSync(join(root, "node_modules")))
    if (name !== "hyperscalejs") symlinkSync(join(root, "node_modules", name), join(modules, name));
});
afterAll(async () => {
  here.remove();
  await demo.close();
});

it("has types that an editor finds with the written tsconfig.json, wrong options included", async () => {
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  await program(process.execPath, tsc, "-p", ".");
  here.write(
    "wrong.ts",
    `import { workflow } from "hyperscalejs";
export default workflow("w", { vus: 2, durtion: "1s" });`,
  );
  const refusal: unknown = await program(process.execPath, tsc, "-p", ".").catch((error) => error);
  expect(refusal).toMatchObject({ stdout: expect.stringMatching(/wrong\.ts.*durtion/s) });
});

it("runs what `hyperscale new` wrote, by its own command and from a program", async () => {
  here.write(
    "flow.ts",
    here.read("flow.ts").replaceAll("8089", String(demo.port)).replace("200ms", "60s"),
  );
  const bin = join("node_modules", "hyperscalejs", "bin", "hyperscale.js");
  await program(
    process.execPath,
    bin,
    "run",
    "flow.ts",
    "--iterations",
    "20",
    "--ui",
    "none",
    "--out",
    "out",
  );
  expect(here.files("out")).toContain("report.html");
  here.write(
    "program.mjs",
    `import { run } from "hyperscalejs";
const summary = await run("flow.ts", { iterations: 10 }).summary;
console.log(summary.verdict, summary.workflows[0].steps.map(({ ok }) => ok).join());`,
  );
  expect((await program(process.execPath, "program.mjs")).trim()).toBe("passed 10,10,10");
});
