/**
 * House rules about the tree as a whole: nothing without a caller, no circles, no permission that
 * nobody uses. Each check takes the module graph and returns what breaks the rule.
 */

import { circles, type Module, reachable, type Tree } from "./modules.ts";
import type { NamedRoom } from "./rooms.ts";

export interface Problem {
  readonly file: string;
  readonly line: number;
  readonly rule: string;
  readonly message: string;
}

type Modules = ReadonlyMap<string, Module>;

/** Where processes begin, and what the package exports. */
const ENTRIES: readonly string[] = [
  "src/cli/main.ts",
  "src/cli/commands/ledger-node.ts",
  "src/engine/core-main.ts",
  "src/index.ts",
  "src/queue/index.ts",
  "src/client/index.ts",
  "src/queue/isolation/child-main.ts",
];
/** Protocols that are part of "hyperscalejs" itself; each of the others is "hyperscalejs/<folder>". */
const INSIDE = /^src\/protocols\/(?:graphql|http|http1|http2|websocket)\//;

/** All of them, with the door of each protocol that is imported by its own name. */
export function entriesOf(files: Iterable<string>): readonly string[] {
  const doors = [...files].filter(
    (file) => /^src\/protocols\/[^/]+\/index\.ts$/.test(file) && !INSIDE.test(file),
  );
  return [...ENTRIES, ...doors];
}

/** Not compiled into the package. */
export function isTestCode(file: string): boolean {
  return file.includes(".test.") || file.includes("/testing/");
}

function isProduct(file: string): boolean {
  return file.startsWith("src/") && /\.tsx?$/.test(file) && !isTestCode(file);
}

/** Files of the product that no entry reaches, but for rooms that wait for their driver. */
export function unreachedFiles(
  modules: Modules,
  entries: readonly string[],
  isPlanned: (file: string) => boolean,
): Problem[] {
  const reached = reachable(modules, entries);
  return [...modules.keys()]
    .filter((file) => isProduct(file) && !reached.has(file) && !isPlanned(file))
    .map((file) => ({ file, line: 1, rule: "unreached", message: "no entry point reaches it" }));
}

/** The other way round: a planned room that a process reaches is planned no longer. */
export function reachedPlans(
  modules: Modules,
  entries: readonly string[],
  isPlanned: (file: string) => boolean,
): Problem[] {
  const message = "is marked as planned, but an entry point reaches it: drop the mark";
  return [...reachable(modules, entries)]
    .filter((file) => isProduct(file) && isPlanned(file))
    .map((file) => ({ file, line: 1, rule: "planned", message }));
}

/** Exported names that no other file imports. Entries export for users, planned rooms for later. */
export function deadExports(
  modules: Modules,
  entries: readonly string[],
  isPlanned: (file: string) => boolean,
): Problem[] {
  const taken = new Map<string, Set<string>>();
  for (const { imports } of modules.values()) {
    for (const { target, names } of imports) {
      if (target === null) continue;
      const known = taken.get(target) ?? new Set();
      for (const name of names) known.add(name);
      taken.set(target, known);
    }
  }
  const problems: Problem[] = [];
  for (const { file, exports } of modules.values()) {
    if (!/^(src|sim|web|bench|test|tools)\//.test(file)) continue;
    // Exports in test files are the text of workflows that they write.
    if (entries.includes(file) || isPlanned(file) || file.includes(".test.")) continue;
    const names = taken.get(file);
    if (names?.has("*")) continue;
    for (const [name, line] of exports) {
      if (names?.has(name)) continue;
      problems.push({ file, line, rule: "dead-export", message: `nobody imports ${name}` });
    }
  }
  return problems;
}

/** The target rooms that files of each room import. */
function edgesInUse(
  modules: Modules,
  roomOf: (file: string) => NamedRoom | undefined,
): Map<string, Set<string>> {
  const used = new Map<string, Set<string>>();
  for (const { file, imports } of modules.values()) {
    const room = roomOf(file);
    if (room === undefined || isTestCode(file)) continue;
    const targets = used.get(room.name) ?? new Set();
    used.set(room.name, targets);
    for (const { target, elsewhere } of imports) {
      const to = target === null || elsewhere ? undefined : roomOf(target);
      if (to !== undefined && to !== room) targets.add(to.name);
    }
  }
  return used;
}

/** Allowed imports between rooms that no file uses. */
export function unusedEdges(
  modules: Modules,
  rooms: readonly NamedRoom[],
  roomOf: (file: string) => NamedRoom | undefined,
): Problem[] {
  const used = edgesInUse(modules, roomOf);
  return rooms.flatMap(({ name, imports }) =>
    imports
      .filter((target) => !used.get(name)?.has(target))
      .map((target) => ({
        file: "tools/rooms.ts",
        line: 1,
        rule: "unused-edge",
        message: `${name} may import ${target} and does not`,
      })),
  );
}

/** Rooms that import each other, over any number of steps. */
export function roomCircles(
  modules: Modules,
  roomOf: (file: string) => NamedRoom | undefined,
): Problem[] {
  return circles(edgesInUse(modules, roomOf)).map((group) => ({
    file: "tools/rooms.ts",
    line: 1,
    rule: "room-circle",
    message: `rooms import each other: ${group.join(", ")}`,
  }));
}

/** Files that import each other, also when only for types. */
export function fileCircles(modules: Modules): Problem[] {
  const edges = new Map<string, string[]>();
  for (const { file, imports } of modules.values()) {
    if (!isProduct(file)) continue;
    edges.set(
      file,
      imports.flatMap(({ target, elsewhere }) => (target === null || elsewhere ? [] : [target])),
    );
  }
  return circles(edges).map((group) => ({
    file: group[0] ?? "",
    line: 1,
    rule: "file-circle",
    message: `import each other: ${group.join(", ")}`,
  }));
}

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly scripts?: Readonly<Record<string, string>>;
}

/** Packages that are installed for nobody. Types of a package count as used when it is. */
export function unusedDependencies(modules: Modules, tree: Tree): Problem[] {
  const {
    dependencies = {},
    devDependencies = {},
    scripts = {},
  } = JSON.parse(tree.get("package.json") ?? "{}") as Manifest;
  const imported = new Set<string>();
  const importedBySrc = new Set<string>();
  for (const { file, imports } of modules.values()) {
    for (const { specifier } of imports) {
      const name = packageOf(specifier);
      imported.add(name);
      if (isProduct(file)) importedBySrc.add(name);
    }
  }
  const problem = (name: string, message: string): Problem => ({
    ...{ file: "package.json", line: 1, rule: "dependency" },
    message: `${name}: ${message}`,
  });
  const texts = [...tree].filter(([file]) => !/^package(-lock)?\.json$|\.md$/.test(file));
  const mentioned = (name: string): boolean =>
    Object.values(scripts).some((script) => script.split(/\s+/).includes(name)) ||
    texts.some(([, text]) => text.includes(`"${name}`) || text.includes(`/${name}/`));
  return [
    ...Object.keys(dependencies)
      .filter((name) => !importedBySrc.has(name))
      .map((name) => problem(name, "no file of src/ imports it")),
    ...Object.keys(devDependencies)
      .map((name) => [name, name.replace(/^@types\//, "")] as const)
      .filter(([, name]) => name !== "node" && !imported.has(name) && !mentioned(name))
      .map(([name]) => problem(name, "nothing in the repository names it")),
  ];
}

function packageOf(specifier: string): string {
  const [first = "", second = ""] = specifier.split("/");
  return first.startsWith("@") ? `${first}/${second}` : first;
}
