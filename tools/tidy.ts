/**
 * House rules that no general linter knows, checked over the whole tree:
 *
 * - who may import whom (`rooms.ts`), and no import cycles between rooms;
 * - pure rooms touch no clock, randomness, promise, console or Node module;
 * - hard limits on the length of files, functions and lines;
 * - no bare TODO, no leftover `.only`, no machine paths, no download addresses in the lockfile.
 *
 * Exceptions stand in `exceptions` below, each with its reason.
 */

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { roomOf } from "./rooms.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const LINES_MAX = 500;
const TEST_LINES_MAX = 800;
const COLUMNS_MAX = 120;
const FUNCTION_LINES_MAX = 70;

/** File → rule → reason. A rule without a reason is not an exception but a leak. */
const exceptions: Readonly<Record<string, Readonly<Record<string, string>>>> = {};

interface Problem {
  readonly file: string;
  readonly line: number;
  readonly rule: string;
  readonly message: string;
}

const problems: Problem[] = [];

function report(file: string, line: number, rule: string, message: string): void {
  if (exceptions[file]?.[rule] !== undefined) return;
  problems.push({ file, line, rule, message });
}

function trackedFiles(): string[] {
  const listing = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  });
  return listing.split("\n").filter((name) => name !== "" && existsSync(join(root, name)));
}

function checkImports(file: string, lines: readonly string[]): void {
  const room = roomOf(file);
  if (room === undefined || file.endsWith(".test.ts") || file.includes("/testing/")) return;
  lines.forEach((text, index) => {
    const match = /(?:^\s*(?:import|export)\b[^"']*from\s+|^import\s+|\bimport\()"([^"]+)"/.exec(
      text,
    );
    const multi = /^\}\s*from\s+"([^"]+)"/.exec(text);
    const specifier = match?.[1] ?? multi?.[1];
    if (specifier === undefined) return;
    if (!specifier.startsWith(".")) {
      if (room.pure && !(room.packages ?? []).includes(specifier)) {
        report(file, index + 1, "pure", `a pure room imports "${specifier}"`);
      }
      return;
    }
    const target = posix.normalize(posix.join(posix.dirname(file), specifier));
    const targetRoom = roomOf(target);
    if (targetRoom === undefined || targetRoom === room) return;
    if (!room.imports.includes(targetRoom.name)) {
      report(file, index + 1, "imports", `${room.name} may not import ${targetRoom.name}`);
    }
  });
}

const IMPURE = new RegExp(
  "\\b(Date\\.now|new Date|Math\\.random|performance\\.|setTimeout|setInterval|setImmediate" +
    "|process\\.|console\\.|async\\b|await\\b|Promise\\b|crypto\\b)",
);

function checkPurity(file: string, lines: readonly string[]): void {
  const room = roomOf(file);
  if (room?.pure !== true || file.endsWith(".test.ts")) return;
  lines.forEach((text, index) => {
    const code = text.replace(/\/\/.*$/, "").replace(/"[^"]*"|`[^`]*`/g, '""');
    if (/^\s*\*|^\s*\/\*/.test(text)) return;
    const match = IMPURE.exec(code);
    if (match !== null) report(file, index + 1, "pure", `a pure room uses ${match[0]}`);
  });
}

/** Functions are found by indentation, which the formatter guarantees. */
function checkFunctions(file: string, lines: readonly string[]): void {
  if (file.endsWith(".test.ts")) return;
  const modifiers = "(?:(?:public|private|protected|static|override|async|get|set|\\*) ?)*";
  const head = new RegExp(
    `^(\\s*)(?:export )?(?:async )?(?:function\\b.*|${modifiers}[#\\w]+(?:<.*>)?\\(.*\\).*|\\w.*=> )\\{$`,
  );
  const multilineHead = /^(\s*)\)(?:: .*)? \{$/;
  lines.forEach((text, index) => {
    if (/^\s*(if|for|while|switch|else|do|try|catch|return)\b/.test(text)) return;
    const indent = head.exec(text)?.[1] ?? multilineHead.exec(text)?.[1];
    if (indent === undefined) return;
    const end = lines.findIndex((line, at) => at > index && line.startsWith(`${indent}}`));
    if (end - index > FUNCTION_LINES_MAX) {
      report(file, index + 1, "function", `${end - index} lines; at most ${FUNCTION_LINES_MAX}`);
    }
  });
}

function checkText(file: string, lines: readonly string[]): void {
  const limit = file.includes(".test.") ? TEST_LINES_MAX : LINES_MAX;
  if (/\.(ts|tsx|mjs|js)$/.test(file) && lines.length > limit) {
    report(file, limit, "length", `${lines.length} lines; at most ${limit}`);
  }
  lines.forEach((text, index) => {
    if (/\.(ts|tsx|mjs|js)$/.test(file) && text.length > COLUMNS_MAX) {
      report(file, index + 1, "columns", `${text.length} columns; at most ${COLUMNS_MAX}`);
    }
    if (/\b(TODO|FIXME)\b(?!\()/.test(text) && !file.startsWith("tools/tidy")) {
      report(
        file,
        index + 1,
        "todo",
        "a TODO names its owner and its issue: TODO(name): … until #n",
      );
    }
    if (/\b(describe|it|test)\.only\(/.test(text))
      report(file, index + 1, "only", "a focused test");
    if (/(^|[\s"'`(=])\/(work|home\/\w+|root)\//.test(text)) {
      report(file, index + 1, "path", "an absolute path of one machine");
    }
  });
}

for (const file of trackedFiles()) {
  if (!/\.(ts|tsx|mjs|js|md|json|css|html|sql|sh)$/.test(file)) continue;
  if (file === "package-lock.json") {
    if (readFileSync(join(root, file), "utf8").includes('"resolved"')) {
      report(file, 1, "lockfile", "contains download addresses");
    }
    continue;
  }
  const lines = readFileSync(join(root, file), "utf8").split("\n");
  checkText(file, lines);
  if (!file.endsWith(".ts") && !file.endsWith(".tsx")) continue;
  checkImports(file, lines);
  checkPurity(file, lines);
  checkFunctions(file, lines);
}

for (const { file, line, rule, message } of problems) {
  process.stdout.write(`${file}:${line}: [${rule}] ${message}\n`);
}
process.stdout.write(
  problems.length === 0 ? "tidy: all house rules hold\n" : `tidy: ${problems.length} problems\n`,
);
process.exit(problems.length === 0 ? 0 : 1);
