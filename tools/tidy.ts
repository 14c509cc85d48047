/**
 * House rules that no general linter knows, checked over the whole tree:
 *
 * - who may import whom (`rooms.ts`); no circles between rooms or files; no allowed edge without a user;
 * - nothing without a caller: files no entry reaches, exports nobody imports, packages nobody loads;
 * - pure rooms touch no clock, randomness, promise, console or Node module;
 * - timers and promises of services are owned by `host/background.ts`;
 * - requirement ids in comments lead to a row of docs/requirements.md, and rows to code;
 * - hard limits on the length of files, functions and lines;
 * - no bare TODO, no leftover `.only`, no machine paths, no download addresses in the lockfile;
 * - comments and test names in plain English (`language.ts`).
 *
 * Exceptions stand in `exceptions` below, each with its reason. `--figures` prints counts instead.
 */

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  deadExports,
  entriesOf,
  fileCircles,
  type Problem,
  reachedPlans,
  roomCircles,
  unreachedFiles,
  unusedDependencies,
  unusedEdges,
} from "./graph-checks.ts";
import { languageProblems } from "./language.ts";
import { readModules } from "./modules.ts";
import { checkRequirements } from "./requirements.ts";
import { isPlanned, roomOf } from "./room-of.ts";
import { rooms } from "./rooms.ts";
import {
  functionProblems,
  importProblems,
  ownerlessWork,
  purityProblems,
  textProblems,
} from "./text-checks.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** File → rule → reason. A rule without a reason is not an exception but a leak. */
const exceptions: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "bench/http/peers/k6.js": { "dead-export": "read by k6" },
  "src/runner/testing/bundle.ts": { "dead-export": "loaded by address, as a bundle is" },
  "tools/language.ts": { language: "it names the words it looks for" },
  "tools/text-checks.ts": { todo: "it names the words it looks for" },
  "tools/tidy.ts": { todo: "it names the words it looks for" },
  "tools/tidy.test.ts": {
    todo: "it plants what is refused",
    path: "it plants what is refused",
    only: "it plants what is refused",
    language: "it plants what is refused",
  },
};

function readTree(): ReadonlyMap<string, string> {
  const listing = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  });
  const files = listing
    .split("\n")
    .filter((file) => /\.(ts|tsx|mjs|js|md|json|css|html|sql|sh)$/.test(file))
    .filter((file) => existsSync(join(root, file)));
  return new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")]));
}

function check(): Problem[] {
  const tree = readTree();
  const modules = readModules(tree);
  const entries = entriesOf(modules.keys());
  const problems = [
    ...unreachedFiles(modules, entries, isPlanned),
    ...reachedPlans(modules, entries, isPlanned),
    ...deadExports(modules, entries, isPlanned),
    ...unusedEdges(modules, rooms, roomOf),
    ...roomCircles(modules, roomOf),
    ...fileCircles(modules),
    ...unusedDependencies(modules, tree),
    ...checkRequirements(root),
  ];
  for (const module of modules.values()) problems.push(...importProblems(module));
  for (const [file, text] of tree) {
    if (file === "package-lock.json") {
      if (text.includes('"resolved"'))
        problems.push({ file, line: 1, rule: "lockfile", message: "contains download addresses" });
      continue;
    }
    const lines = text.split("\n");
    problems.push(...textProblems(file, lines));
    if (!/\.tsx?$/.test(file)) continue;
    problems.push(...purityProblems(file, lines), ...ownerlessWork(file, lines));
    problems.push(...functionProblems(file, lines));
    problems.push(...languageProblems(file, lines));
  }
  return problems.filter(({ file, rule }) => exceptions[file]?.[rule] === undefined);
}

const problems = check();
if (process.argv.includes("--figures")) {
  const counts = new Map<string, number>();
  for (const { rule } of problems) counts.set(rule, (counts.get(rule) ?? 0) + 1);
  for (const [rule, count] of counts)
    process.stdout.write(`${String(count).padStart(6)} ${rule}\n`);
} else {
  for (const { file, line, rule, message } of problems) {
    process.stdout.write(`${file}:${line}: [${rule}] ${message}\n`);
  }
}
process.stdout.write(
  problems.length === 0 ? "tidy: all house rules hold\n" : `tidy: ${problems.length} problems\n`,
);
process.exit(problems.length === 0 ? 0 : 1);
