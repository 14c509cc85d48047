import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startDemoTarget } from "../../demo/server.ts";
import { TEMPLATE_NAMES, templates } from "../new/templates.ts";
import { registerNew } from "./new.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
let folder: string;
let home: string;
let output: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "hyperscale-new-"));
  home = process.cwd();
  process.chdir(folder);
  output = "";
  const write = (text: string | Uint8Array): boolean => {
    output += String(text);
    return true;
  };
  vi.spyOn(process.stdout, "write").mockImplementation(write);
  vi.spyOn(process.stderr, "write").mockImplementation(write);
});
afterEach(() => {
  vi.restoreAllMocks();
  process.chdir(home);
  rmSync(folder, { recursive: true });
  process.exitCode = 0;
});

async function run(...args: string[]): Promise<number> {
  process.exitCode = 0;
  const program = new Command();
  registerNew(program);
  await program.parseAsync(["new", ...args], { from: "user" });
  return Number(process.exitCode);
}

describe("hyperscale new", () => {
  it("writes flow.ts and prints the two next commands", async () => {
    expect(await run()).toBe(0);
    expect(readFileSync("flow.ts", "utf8")).toBe(templates.minimal.text("flow", true));
    expect(output).toContain("npx hyperscale demo-target\n");
    expect(output).toContain("npx hyperscale run flow.ts\n");
  });

  it("prints the install line in a project that lacks the package", async () => {
    writeFileSync("package.json", "{}");
    expect(await run()).toBe(0);
    expect(output).toMatch(/not installed in this project\. First: npm install -D \S+/);
    mkdirSync(join("node_modules", "hyperscalejs"), { recursive: true });
    writeFileSync(join("node_modules", "hyperscalejs", "package.json"), "{}");
    output = "";
    expect(await run("other.ts")).toBe(0);
    expect(output).not.toContain("npm install");
  });

  it("keeps an existing file, unless forced", async () => {
    writeFileSync("mine.ts", "precious");
    expect(await run("mine.ts")).toBe(2);
    expect(output).toContain("mine.ts already exists");
    expect(readFileSync("mine.ts", "utf8")).toBe("precious");
    expect(await run("mine.ts", "--force", "--template", "login")).toBe(0);
    expect(readFileSync("mine.ts", "utf8")).toContain('"mine"');
  });

  it("creates missing folders, adds the extension, quotes what a shell would split", async () => {
    expect(await run("tests/my load")).toBe(0);
    expect(existsSync("tests/my load.ts")).toBe(true);
    expect(output).toContain('run "tests/my load.ts"');
  });

  it("rejects other files than workflows, and a folder that cannot be created", async () => {
    expect(await run("flow.py")).toBe(2);
    expect(output).toContain(".ts, .mts, .js or .mjs");
    writeFileSync("wall", "");
    expect(await run("wall/flow.ts")).toBe(2);
    expect(output).toContain("cannot write wall/flow.ts");
  });

  it("writes a project where there is none, and keeps an existing one", async () => {
    expect(await run("load/flow.ts")).toBe(0);
    expect(output).toContain(
      "Beside it package.json and tsconfig.json. First: npm install --prefix load",
    );
    const made = JSON.parse(readFileSync("load/package.json", "utf8"));
    expect(made).toMatchObject({ name: "load", type: "module", private: true });
    // A checkout is installed from its own folder.
    expect(made.devDependencies.hyperscalejs).toBe(`file:${root.replace(/\/$/, "")}`);
    output = "";
    expect(await run("load/deep/second.ts")).toBe(0);
    expect(existsSync("load/deep/package.json")).toBe(false);
    expect(output).not.toContain("Beside it");
    expect(await run("plain/flow.mjs")).toBe(0);
    expect(existsSync("plain/tsconfig.json")).toBe(false);
  });

  it("writes JavaScript without types for a .js file", async () => {
    await run("flow.mjs", "--template", "login");
    expect(spawnSync(process.execPath, ["--check", "flow.mjs"]).status).toBe(0);
  });
});

describe.each(TEMPLATE_NAMES)("the template %s", (name) => {
  it("loads only the demo target on loopback", () => {
    const urls = templates[name].text("x", true).match(/https?:\/\/[^"/`]+/g) ?? [];
    expect(new Set(urls)).toEqual(new Set(["http://127.0.0.1:8089"]));
  });

  it("compiles", () => {
    // Inside the checkout, so that the types of its packages are found.
    const inside = join(root, "node_modules", ".cache", `new-${process.pid}-${name}`);
    mkdirSync(inside, { recursive: true });
    writeFileSync(join(inside, "flow.ts"), templates[name].text("x", true));
    const config = { extends: join(root, "tsconfig.json"), include: ["flow.ts"] };
    const options = {
      compilerOptions: { rootDir: root, typeRoots: [join(root, "node_modules/@types")] },
    };
    writeFileSync(join(inside, "tsconfig.json"), JSON.stringify({ ...config, ...options }));
    const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
    const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", inside], {
      encoding: "utf8",
    });
    rmSync(inside, { recursive: true });
    expect([status, stdout]).toEqual([0, ""]);
  });

  it("passes when it runs", async () => {
    const target = await startDemoTarget({ port: 0 });
    const text = templates[name]
      .text("x", true)
      .replaceAll("8089", String(target.port))
      // The current speed of this machine is not the subject.
      .replace(/latency\.p\d+ < \d+ms/, "latency.p95 < 60s");
    writeFileSync("flow.ts", text);
    const command = join(root, "bin", "hyperscale.js");
    const child = spawn(
      process.execPath,
      [command, "run", "flow.ts", "--duration", "1s", "--ui", "none", "--out", "results"],
      { stdio: "inherit" },
    );
    const [code] = (await once(child, "exit")) as [number | null];
    await target.close();
    expect(code).toBe(0);
    expect(existsSync("results/summary.json")).toBe(true);
  });
});
