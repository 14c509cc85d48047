/** docs/guide/editor.md checked against the compiler and a run: every line of its tables is tried. */

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { withParts } from "../src/core/load/job/manifest.ts";
import { unknownName } from "../src/core/load/results/threshold-names.ts";
import { parseThreshold } from "../src/core/load/results/thresholds.ts";
import * as product from "../src/index.ts";
import { manifestOf } from "../src/workflow/definition.ts";
import { workflowsOf } from "../src/workflow/module.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = readFileSync(join(root, "docs", "guide", "editor.md"), "utf8");
const scratch = ((): string => {
  mkdirSync(join(root, ".hyperscale"), { recursive: true });
  return mkdtempSync(join(root, ".hyperscale", "editor-"));
})();
afterAll(() => rmSync(scratch, { recursive: true }));

interface Line {
  readonly written: string;
  readonly editor: string;
  readonly otherwise: string;
}

/** The rows of the table under a heading. */
function linesOf(heading: string): Line[] {
  const section = page.split(`## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const cell = (text = ""): string => text.trim().replace(/^`(.*)`$/, "$1");
  return section
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => {
      const [, written, editor, otherwise] = line.split("|");
      return { written: cell(written), editor: cell(editor), otherwise: cell(otherwise) };
    });
}

const inBodies = linesOf("In the body of a flow");
const inDeclarations = linesOf("In options and declarations");
const imported = Object.keys(product).filter((name) => name !== "once");
const head = [
  `import { ${imported.join(", ")} } from "hyperscalejs";`,
  'import { browse, buy, load, options, paid, shop } from "./names.ts";',
  "",
].join("\n");

/** Missing names for which a run of the module is rejected at its start. */
function namesMissing(module: unknown): string[] {
  const manifests = withParts(workflowsOf(module).map(manifestOf));
  return manifests.flatMap(({ name, thresholds }) =>
    thresholds.flatMap(({ expression }) => {
      const parsed = parseThreshold(expression);
      if (!parsed.ok) return parsed.problem;
      const known = { manifests, errorKinds: product.ERROR_KINDS, texts: null };
      return unknownName(parsed.threshold, name, known) ?? [];
    }),
  );
}

function write(name: string, code: string): string {
  const path = join(scratch, name);
  writeFileSync(path, code);
  return path;
}

const [, names = ""] = /```ts\n([\s\S]*?)```/.exec(page) ?? [];
write("names.ts", `import { counter, feed, flow, http } from "hyperscalejs";\n${names}`);
const bodies = inBodies.map(({ written }, at) => {
  const body = `async ({ step, check, poll, pause, data, setup, state }) => {\n${written}\n}`;
  return write(`body-${at}.ts`, `${head}export default flow("own", options, ${body});\n`);
});
const declarations = inDeclarations.map(({ written }, at) =>
  write(`declared-${at}.ts`, `${head}export default ${written};\n`),
);

/** Compiler messages by file: the last line of each is the one that explains it. */
function diagnostics(): Map<string, string[]> {
  const config = {
    extends: "../../tsconfig.json",
    compilerOptions: { noUnusedLocals: false, noUnusedParameters: false, rootDir: "../.." },
    include: ["*.ts"],
  };
  write("tsconfig.json", JSON.stringify(config));
  const compiler = join(root, "node_modules", ".bin", "tsc");
  const { stdout } = spawnSync(compiler, ["-p", scratch, "--pretty", "false"], {
    encoding: "utf8",
  });
  const said = new Map<string, string[]>();
  for (const message of stdout.split(/\n(?=\S)/)) {
    const [, file = "", text = ""] =
      /([\w-]+\.ts)\(\d+,\d+\): error TS\d+: ([\s\S]*)$/.exec(message) ?? [];
    const last = text.trim().split("\n").at(-1)?.trim() ?? "";
    said.set(file, [...(said.get(file) ?? []), last]);
  }
  return said;
}

/** Types of options are interfaces, which the compiler names; written out they took 400 characters. */
const MESSAGE_LENGTH_MAX = 320;

describe("the compiler reports what docs/guide/editor.md documents", () => {
  const said = diagnostics();

  it("and nothing of the names that the page is written against", () => {
    expect(inBodies.length).toBeGreaterThan(5);
    expect(inDeclarations.length).toBeGreaterThan(10);
    expect(said.get("names.ts")).toBeUndefined();
  });

  const numbered = (kind: string, lines: readonly Line[]) =>
    lines.map((line, at) => ({ ...line, file: `${kind}-${at}.ts` }));

  it.each([...numbered("body", inBodies), ...numbered("declared", inDeclarations)])(
    "$written",
    ({ editor, file }) => {
      // The page leaves out the names of long types.
      const [start = "", ...ends] = editor.split("…");
      const [only = "", ...more] = said.get(file) ?? [];
      expect(more).toEqual([]);
      expect(only.length, only).toBeLessThan(MESSAGE_LENGTH_MAX);
      if (ends.length === 0) expect(only).toBe(editor);
      expect(only.slice(0, start.length)).toBe(start);
      expect(only.slice(only.length - (ends[0]?.length ?? 0))).toBe(ends[0] ?? "");
    },
  );
});

describe("reports mistakes at run time when there is no compiler", () => {
  const withMessage = (lines: readonly Line[], files: readonly string[]) =>
    lines
      .map((line, at) => ({ ...line, path: files[at] ?? "" }))
      .filter(({ otherwise }) => otherwise !== "");

  it.each(withMessage(inBodies, bodies))("in a body: $written", async ({ otherwise, path }) => {
    const { default: flow } = (await import(path)) as { default: product.Flow };
    const { error } = await product.once(flow, {
      data: { account: { user: "ada", password: "x" } },
      answers: { pay: { status: 200 } },
    });
    expect(String((error as Error | undefined)?.message)).toContain(otherwise);
  });

  it.each(withMessage(inDeclarations, declarations))("$written", async ({ otherwise, path }) => {
    const load = async (): Promise<void> => {
      for (const problem of namesMissing(await import(path))) throw new Error(problem);
    };
    await expect(load()).rejects.toThrow(otherwise);
  });
});
