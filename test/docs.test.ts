/** Documentation checked against the code: blocks compile, links resolve, flags are named. */

import { execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { afterAll, describe, expect, it } from "vitest";
import { registerRun } from "../src/cli/commands/run.ts";
import { parseThreshold } from "../src/core/load/results/thresholds.ts";
import * as exitCodes from "../src/host/exit-codes.ts";
import * as product from "../src/index.ts";
import { ERROR_KINDS } from "../src/protocols/protocol.ts";
import { rooms } from "../tools/rooms.ts";
import { withRoomTable } from "../tools/write-rooms.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const pages = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "*.md"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  .filter((file) => file !== "" && existsSync(join(root, file)))
  // Test data and forms are no pages.
  .filter((page) => !page.includes("/testdata/") && !page.startsWith(".github/"));

interface Block {
  readonly file: string;
  readonly line: number;
  readonly code: string;
}

function blocksOf(file: string): Block[] {
  const found: Block[] = [];
  let start = -1;
  const lines = read(file).split("\n");
  lines.forEach((text, at) => {
    if (start < 0 && text === "```ts") start = at + 1;
    else if (start >= 0 && text === "```") {
      found.push({ file, line: start + 1, code: lines.slice(start, at).join("\n") });
      start = -1;
    }
  });
  return found;
}

/** Completes code of a page with the parts it may omit: the import, and the workflow around a chain of calls. */
function completed(code: string): string {
  const first = code.split("\n").find((line) => line.trim() !== "" && !/^\s*\/\//.test(line)) ?? "";
  const body = first.trimStart().startsWith(".")
    ? `workflow("example", { vus: 1, duration: "1s" })\n${code}`
    : code;
  if (/^import /m.test(code)) return `${body}\nexport {};\n`;
  const names = Object.keys(product).filter((name) => new RegExp(`\\b${name}\\b`).test(body));
  return `import { ${names.join(", ")} } from "hyperscalejs";\n${body}\nexport {};\n`;
}

/** "hyperscalejs", "hyperscalejs/queue", … as package.json exports them, but from the sources. */
function exportedSources(): Record<string, string[]> {
  const { exports } = JSON.parse(read("package.json")) as { exports: Record<string, unknown> };
  const entries = Object.entries(exports).flatMap(([name, value]) => {
    const built = (value as { default?: string } | null)?.default ?? "";
    if (!built.startsWith("./dist/")) return [];
    const source = built.replace("./dist/", "../../src/").replace(/\.js$/, ".ts");
    return [[`hyperscalejs${name.slice(1)}`, [source]]];
  });
  return Object.fromEntries(entries) as Record<string, string[]>;
}

const scratch = ((): string => {
  mkdirSync(join(root, ".hyperscale"), { recursive: true });
  return mkdtempSync(join(root, ".hyperscale", "docs-"));
})();
afterAll(() => rmSync(scratch, { recursive: true }));

describe("TypeScript in the documents", () => {
  it("compiles as a reader would compile it", () => {
    const blocks = pages.flatMap(blocksOf);
    expect(blocks.length).toBeGreaterThan(10);
    const files = blocks.map(({ code, file, line }) => {
      const path = `${file.replace(/\.md$/, "")}.${line}.ts`;
      mkdirSync(dirname(join(scratch, path)), { recursive: true });
      writeFileSync(join(scratch, path), completed(code));
      return path;
    });
    const config = {
      extends: "../../tsconfig.json",
      compilerOptions: {
        noUnusedLocals: false,
        noUnusedParameters: false,
        rootDir: "../..",
        // Relative imports resolve from the page's folder.
        rootDirs: ["../..", "."],
        paths: exportedSources(),
      },
      include: [],
      files,
    };
    writeFileSync(join(scratch, "tsconfig.json"), JSON.stringify(config));
    const compiler = join(root, "node_modules", ".bin", "tsc");
    const result = spawnSync(compiler, ["-p", join(scratch, "tsconfig.json")], {
      encoding: "utf8",
    });
    expect(result.stdout + result.stderr).toBe("");
    expect(result.status).toBe(0);
  });
});

describe("documents against the product", () => {
  const own = pages
    .flatMap(blocksOf)
    .filter(
      ({ code }) =>
        !/from "(?!hyperscale["/]|node:)/.test(code) && /\b(workflow|flow|mix)\(/.test(code),
    );

  it.each(own)("$file:$line is a workflow that loads", async ({ code, file, line }) => {
    const path = join(scratch, `${file.replace(/\W/g, "-")}-${line}.load.ts`);
    writeFileSync(path, completed(code));
    await import(path);
  });

  it("thresholds in running text are thresholds", () => {
    const text =
      read("docs/guide/thresholds.md") + read("docs/decisions/0009-implicit-thresholds.md");
    const spans = [...text.matchAll(/`([a-z][^`\n]* (?:[<>]=?|[!=]=) \d[^`\n]*)`/g)];
    expect(spans.length).toBeGreaterThan(3);
    for (const [, span = ""] of spans) {
      const result = parseThreshold(span);
      expect(result.ok ? "" : `${span}: ${result.problem}`).toBe("");
    }
  });
});

/** The anchor GitHub makes of a heading. */
function anchorOf(heading: string): string {
  return heading
    .replace(/`/g, "")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");
}

function anchorsOf(file: string): string[] {
  const text = read(file).replace(/^```[\s\S]*?^```/gm, "");
  return [...text.matchAll(/^#{1,6} (.+)$/gm)].map((match) => anchorOf(match[1] ?? ""));
}

/** Links to other files of the repository, as written and as paths from its root. */
function linksOf(page: string): { link: string; target: string; anchor: string | undefined }[] {
  const text = read(page).replace(/^```[\s\S]*?^```/gm, "");
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = ""]) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? page : normalize(join(dirname(page), path)).replace(/\/$/, "");
      return { link, target, anchor };
    });
}

describe("links between documents", () => {
  it.each(pages)("%s leads only to what is there", (page) => {
    const broken = linksOf(page).filter(({ anchor, target }) => {
      if (!existsSync(join(root, target))) return true;
      return anchor !== undefined && !anchorsOf(target).includes(anchor);
    });
    expect(broken.map(({ link }) => link)).toEqual([]);
  });
});

describe("names of the code in the documents", () => {
  const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  }).split("\n");
  const tops = new Set(files.map((file) => file.split("/")[0] ?? ""));
  const folders = new Set(files.filter((file) => file.startsWith("src/")).map(roomFolder));

  /** `engine` of src/engine/core.ts. */
  function roomFolder(file: string): string {
    return file.split("/")[1] ?? "";
  }

  /** Accepts `src/engine/core.ts` and `engine/core.ts`, as modules are named. */
  function missing(span: string): boolean {
    const [top = "", ...rest] = span.split("/");
    if (rest.length === 0 || (!tops.has(top) && !folders.has(top))) return false;
    return !existsSync(join(root, span)) && !existsSync(join(root, "src", span));
  }

  it.each(pages)("%s names only files and folders that are there", (page) => {
    const text = read(page).replace(/^```[\s\S]*?^```/gm, "");
    const spans = [...text.matchAll(/`([\w@.-]+(?:\/[\w.-]+)+)\/?`/g)].map(([, span = ""]) => span);
    expect(spans.filter(missing)).toEqual([]);
  });

  it("docs/internals/glossary.md calls classes and types by their names", () => {
    const sources = files.filter(
      (file) => /^src\/.*\.ts$/.test(file) && existsSync(join(root, file)),
    );
    const declared = new Set(
      sources.flatMap((file) =>
        [...read(file).matchAll(/^export (?:class|interface|type) (\w+)/gm)].map(
          ([, name]) => name,
        ),
      ),
    );
    const spans = [...read("docs/internals/glossary.md").matchAll(/`([A-Z][a-z]+\w*)`/g)];
    expect(spans.length).toBeGreaterThan(20);
    expect(spans.map(([, name]) => name).filter((name) => !declared.has(name))).toEqual([]);
  });
});

describe("docs/guide/running.md", () => {
  const page = read("docs/guide/running.md");

  it("names every flag of run, and no other", () => {
    const program = new Command();
    registerRun(program);
    const flags = program.commands[0]?.options.map((option) => option.long ?? "") ?? [];
    const rows = [...page.matchAll(/^\| `(--[a-z-]+)/gm)].map((match) => match[1]);
    expect(rows.sort()).toEqual([...flags].sort());
  });

  it("names every exit code", () => {
    const rows = [...page.matchAll(/^\| (\d+) +\|/gm)].map((match) => Number(match[1]));
    expect(rows.sort()).toEqual([...Object.values(exitCodes)].sort());
  });
});

describe("decisions", () => {
  const folder = "docs/decisions";
  const decisions = readdirSync(join(root, folder))
    .filter((file) => file !== "README.md")
    .sort();
  const heads = decisions.map((file) => {
    const [title = "", empty, status = "", ...rest] = read(`${folder}/${file}`).split("\n");
    const sections = rest.filter((line) => line.startsWith("#"));
    return { file, title, empty, status, sections };
  });

  it("are numbered 1, 2, 3 … without gaps, in the name of the file and in the title", () => {
    expect(decisions.map((file) => /^\d{4}(?=-[a-z0-9-]+\.md$)/.exec(file)?.[0])).toEqual(
      decisions.map((_, at) => String(at + 1).padStart(4, "0")),
    );
    expect(heads.map(({ title }) => /^# (\d+)\. \S/.exec(title)?.[1])).toEqual(
      decisions.map((_, at) => String(at + 1)),
    );
  });

  it.each(heads)(
    "$file has a status, a context, a choice and a cost",
    ({ empty, sections, status }) => {
      expect(empty).toBe("");
      const successor = /^Status: (?:accepted|superseded by (\d+))$/.exec(status);
      expect(successor, status).not.toBeNull();
      expect(Number(successor?.[1] ?? 1)).toBeLessThanOrEqual(decisions.length);
      expect(sections).toEqual(["## Context", "## Choice", "## Cost"]);
    },
  );

  it("are listed in order and by their titles in docs/decisions/README.md", () => {
    const rows = [...read(`${folder}/README.md`).matchAll(/^\| (\d+) +\| \[(.+)\]\((.+?)\)/gm)];
    expect(rows.map(([, number, title, file]) => [`# ${number}. ${title}`, file])).toEqual(
      heads.map(({ file, title }) => [title, file]),
    );
  });

  it("are named by their number wherever a link gives one", () => {
    const wrong = pages.flatMap((page) =>
      [...read(page).matchAll(/\[[Dd]ecision (\d+)\]\(([^)#\s]+)\)/g)]
        .filter(([, number, link = ""]) => Number(number) !== Number.parseInt(basename(link), 10))
        .map(([text]) => `${page}: ${text}`),
    );
    expect(wrong).toEqual([]);
  });
});

describe("other tables", () => {
  it("docs/guide/workflows.md explains every kind of error", () => {
    const page = read("docs/guide/workflows.md");
    const rows = [...page.matchAll(/^\| `([a-z]+)` +\|/gm)].map((match) => match[1]);
    expect(rows).toEqual(expect.arrayContaining([...ERROR_KINDS]));
  });

  it("modules.md shows the enforced import table (npx tsx tools/write-rooms.ts writes it)", () => {
    const page = read("docs/internals/modules.md");
    expect(withRoomTable(page)).toBe(page);
  });

  it("modules.md describes each module in one line", () => {
    const [section = ""] = read("docs/internals/modules.md").split(/^## Import table$/m);
    const said = [...section.matchAll(/^\| `([a-z0-9/*]+)` +\| \S/gm)].map(([, room]) => room);
    expect(said.sort()).toEqual(rooms.map(({ name }) => name).sort());
  });

  it("every page can be reached from README.md", () => {
    const reached = new Set(["README.md"]);
    for (const page of reached) {
      for (const target of linksOf(page).map(({ target }) => target)) {
        // A link to a folder leads to every page in it.
        for (const other of pages) {
          if (other === target || other.startsWith(`${target}/`)) reached.add(other);
        }
      }
    }
    expect(pages.filter((page) => !reached.has(page))).toEqual([]);
  });
});
