/**
 * The module graph of the tree, read from the text of its files: who imports what from whom. The
 * formatter guarantees the shape of import and export statements, so no compiler is needed.
 */

import { posix } from "node:path";

/** Path from the root of the repository → text. */
export type Tree = ReadonlyMap<string, string>;

interface Import {
  /** As written: "./x.ts", "node:fs", "pino". */
  readonly specifier: string;
  /** The file of the tree it leads to; null for packages. */
  readonly target: string | null;
  /** Names taken from it; "*" takes all. */
  readonly names: readonly string[];
  /** Named by its address only (`new URL`): loaded elsewhere, by another process or thread. */
  readonly elsewhere: boolean;
  readonly line: number;
}

export interface Module {
  readonly file: string;
  readonly imports: readonly Import[];
  /** Names it exports, with the line of each. */
  readonly exports: ReadonlyMap<string, number>;
}

const IMPORT = /^(import|export)\b(\s+type\b)?([^;"'`]*?)\bfrom\s+"([^"]+)"/gm;
const BARE_IMPORT = /^import\s+"([^"]+)"/gm;
const DYNAMIC_IMPORT = /\bimport\(\s*"([^"]+)"\s*\)/g;
const URL_IMPORT = /new URL\(\s*["`](\.[^"`$]+)["`],\s*import\.meta\.url\s*\)/g;
const DECLARATION =
  /^export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:function\*?|class|const|let|interface|type)\s+([\w$]+)/gm;
const EXPORT_LIST = /^export\s+(?:type\s+)?\{([^}]*)\}\s*(?:;|$|from)/gm;

/** The graph of all TypeScript and JavaScript files of the tree. */
export function readModules(tree: Tree): ReadonlyMap<string, Module> {
  const modules = new Map<string, Module>();
  for (const [file, commented] of tree) {
    if (!/\.(ts|tsx|mjs|js)$/.test(file)) continue;
    const text = withoutComments(commented);
    modules.set(file, { file, imports: importsOf(file, text, tree), exports: exportsOf(text) });
  }
  return modules;
}

/** Comments that begin a line become empty ones: what they quote is neither imported nor exported. */
function withoutComments(text: string): string {
  return text.replace(/^[ \t]*\/\*[\s\S]*?\*\//gm, (comment) => comment.replace(/[^\n]/g, " "));
}

function importsOf(file: string, text: string, tree: Tree): Import[] {
  const found: Import[] = [];
  const add = (
    specifier: string,
    names: readonly string[],
    elsewhere: boolean,
    at: number,
  ): void => {
    const line = text.slice(0, at).split("\n").length;
    found.push({ specifier, target: resolve(file, specifier, tree), names, elsewhere, line });
  };
  for (const match of text.matchAll(IMPORT)) {
    const [, , , clause = "", specifier = ""] = match;
    add(specifier, namesOf(clause), false, match.index);
  }
  for (const match of text.matchAll(BARE_IMPORT)) add(match[1] ?? "", [], false, match.index);
  for (const match of text.matchAll(DYNAMIC_IMPORT)) add(match[1] ?? "", ["*"], false, match.index);
  for (const match of text.matchAll(URL_IMPORT)) add(match[1] ?? "", [], true, match.index);
  return found;
}

/** "{ a, type B, c as d }" → a, B, c; "* as x" and a default import take everything. */
function namesOf(clause: string): string[] {
  const braces = /\{([\s\S]*)\}/.exec(clause);
  if (braces === null) return ["*"];
  const before = clause.slice(0, braces.index).replaceAll(",", "").trim();
  return [...(before === "" ? [] : ["default"]), ...listed(braces[1] ?? "", "before")];
}

/** The names of a braced list, as they are called before or after `as`. */
function listed(list: string, side: "before" | "after"): string[] {
  return list
    .split(",")
    .map((item) =>
      item
        .replace(/\/\/.*$/gm, "")
        .trim()
        .replace(/^type\s+/, ""),
    )
    .filter((item) => item !== "")
    .map((item) => {
      const [before = "", after = before] = item.split(/\s+as\s+/);
      return side === "before" ? before : after;
    });
}

function exportsOf(text: string): Map<string, number> {
  const names = new Map<string, number>();
  const lineAt = (at: number): number => text.slice(0, at).split("\n").length;
  for (const match of text.matchAll(DECLARATION)) names.set(match[1] ?? "", lineAt(match.index));
  for (const match of text.matchAll(EXPORT_LIST)) {
    for (const name of listed(match[1] ?? "", "after")) names.set(name, lineAt(match.index));
  }
  return names;
}

/** A built name (`.js`) stands for its source (`.ts`). */
function resolve(file: string, specifier: string, tree: Tree): string | null {
  if (!specifier.startsWith(".")) return null;
  const plain = specifier.replace(/[?#].*$/, "");
  const target = posix.normalize(posix.join(posix.dirname(file), plain));
  const source = target.replace(/\.js$/, ".ts");
  if (tree.has(target)) return target;
  return tree.has(source) ? source : null;
}

/** Every file that is loaded, or whose types are used, when these are. */
export function reachable(
  modules: ReadonlyMap<string, Module>,
  entries: readonly string[],
): ReadonlySet<string> {
  const seen = new Set<string>();
  const next = [...entries];
  for (let file = next.pop(); file !== undefined; file = next.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    for (const { target } of modules.get(file)?.imports ?? []) {
      if (target !== null) next.push(target);
    }
  }
  return seen;
}

/** Groups that import each other in a circle, largest first. (Tarjan's strongly connected components.) */
export function circles(edges: ReadonlyMap<string, Iterable<string>>): string[][] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (node: string): number => {
    const at = index.size;
    index.set(node, at);
    let lowest = at;
    stack.push(node);
    for (const next of edges.get(node) ?? []) {
      if (!index.has(next)) lowest = Math.min(lowest, visit(next));
      else if (stack.includes(next))
        lowest = Math.min(lowest, low.get(next) ?? at, index.get(next) ?? at);
    }
    low.set(node, lowest);
    if (lowest === at) {
      const group = stack.splice(stack.indexOf(node));
      if (group.length > 1) found.push(group.sort());
    }
    return lowest;
  };
  for (const node of edges.keys()) if (!index.has(node)) visit(node);
  return found.sort((a, b) => b.length - a.length);
}
