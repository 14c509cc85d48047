/** House rules about one file at a time, judged by its text. The formatter guarantees its shape. */

import { isTestCode, type Problem } from "./graph-checks.ts";
import type { Module } from "./modules.ts";
import { roomOf } from "./room-of.ts";

const LINES_MAX = 800;
const COLUMNS_MAX = 120;
const FUNCTION_LINES_MAX = 70;

type Lines = readonly string[];

function problemsAt(
  file: string,
  lines: Lines,
  judge: (text: string, index: number) => readonly [rule: string, message: string] | null,
): Problem[] {
  return lines.flatMap((text, index) => {
    const found = judge(text, index);
    return found === null ? [] : [{ file, line: index + 1, rule: found[0], message: found[1] }];
  });
}

/** Checks imports against the table; pure modules import nothing from outside. */
export function importProblems({ file, imports }: Module): Problem[] {
  const room = roomOf(file);
  if (room === undefined || isTestCode(file)) return [];
  return imports.flatMap(({ specifier, target, line, elsewhere }) => {
    if (elsewhere) return [];
    if (!specifier.startsWith(".")) {
      if (!room.pure) return [];
      return [{ file, line, rule: "pure", message: `a pure room imports "${specifier}"` }];
    }
    const to = target === null ? undefined : roomOf(target);
    if (to === undefined || to === room || room.imports.includes(to.name)) return [];
    return [{ file, line, rule: "imports", message: `${room.name} may not import ${to.name}` }];
  });
}

const IMPURE = new RegExp(
  "\\b(Date\\.now|new Date|Math\\.random|performance\\.|setTimeout|setInterval|setImmediate" +
    "|process\\.|console\\.|async\\b|await\\b|Promise\\b|crypto\\b)",
);

/** The line without comments and texts. */
function codeOf(text: string): string {
  if (/^\s*\*|^\s*\/\*/.test(text)) return "";
  // Texts first: an address holds what looks like a comment.
  return text.replace(/"(?:[^"\\]|\\.)*"|`[^`]*`/g, '""').replace(/\/\/.*$/, "");
}

export function purityProblems(file: string, lines: Lines): Problem[] {
  if (roomOf(file)?.pure !== true || isTestCode(file)) return [];
  return problemsAt(file, lines, (text) => {
    const match = IMPURE.exec(codeOf(text));
    return match === null ? null : ["pure", `a pure room uses ${match[0]}`];
  });
}

/** Where timers are no background work of a node, and why. */
const OWN_TIMERS: Readonly<Record<string, string>> = {
  "src/host/": "it is the owner",
  "src/engine/": "the clock of the plan and of its users; an executor core ends with its run",
  "src/protocols/": "deadlines of calls, counted by the call itself",
  "src/runner/": "the beat of one run, which the command waits for",
  "src/reporters/": "deadlines of deliveries, which the end of a run waits for",
  "src/ui/": "the frames of the terminal, stopped when it is given back",
  "src/demo/": "the demo target delays answers on purpose",
  "src/cli/": "a command is one piece of work that ends with its process",
};

/**
 * Timers and promises without an owner. Background work of a process belongs to `host/background.ts`,
 * which names it, lists it and ends it with the process. (AD-2, NET-6) A promise that nobody handles
 * at all is found by the linter (`noFloatingPromises`).
 */
export function ownerlessWork(file: string, lines: Lines): Problem[] {
  const room = roomOf(file);
  if (room === undefined || room.pure || isTestCode(file)) return [];
  if (Object.keys(OWN_TIMERS).some((path) => file.startsWith(path))) return [];
  return problemsAt(file, lines, (text) => {
    const code = codeOf(text);
    const timer = /(?:\bglobalThis\.|(?<![.\w]))(setTimeout|setInterval)\b(?! as)/.exec(code);
    if (timer !== null) return ["timer", `${timer[1]}: let host/background.ts own it`];
    const floating = /(^|[\s(>])void (this\.|[\w.#]+\()/.exec(code);
    return floating === null ? null : ["floating", "a promise without an owner"];
  });
}

/** Functions are found by indentation. */
export function functionProblems(file: string, lines: Lines): Problem[] {
  if (file.endsWith(".test.ts")) return [];
  const modifiers = "(?:(?:public|private|protected|static|override|async|get|set|\\*) ?)*";
  const head = new RegExp(
    `^(\\s*)(?:export )?(?:async )?(?:function\\b.*|${modifiers}[#\\w]+(?:<.*>)?\\(.*\\).*|\\w.*=> )\\{$`,
  );
  const multilineHead = /^(\s*)\)(?:: .*)? \{$/;
  return problemsAt(file, lines, (text, index) => {
    if (/^\s*(if|for|while|switch|else|do|try|catch|return)\b/.test(text)) return null;
    const indent = head.exec(text)?.[1] ?? multilineHead.exec(text)?.[1];
    if (indent === undefined) return null;
    const end = lines.findIndex((line, at) => at > index && line.startsWith(`${indent}}`));
    if (end - index <= FUNCTION_LINES_MAX) return null;
    return ["function", `${end - index} lines; at most ${FUNCTION_LINES_MAX}`];
  });
}

export function textProblems(file: string, lines: Lines): Problem[] {
  const isCode = /\.(ts|tsx|mjs|js)$/.test(file);
  const long: Problem[] =
    isCode && lines.length > LINES_MAX
      ? [
          {
            file,
            line: LINES_MAX,
            rule: "length",
            message: `${lines.length} lines; at most ${LINES_MAX}`,
          },
        ]
      : [];
  return [
    ...long,
    ...problemsAt(file, lines, (text) =>
      isCode && text.length > COLUMNS_MAX
        ? ["columns", `${text.length} columns; at most ${COLUMNS_MAX}`]
        : null,
    ),
    ...problemsAt(file, lines, (text) =>
      /\b(TODO|FIXME)\b(?!\()/.test(text)
        ? ["todo", "a TODO names its owner and its issue: TODO(name): … until #n"]
        : null,
    ),
    ...problemsAt(file, lines, (text) =>
      /\b(describe|it|test)\.only\(/.test(text) ? ["only", "a focused test"] : null,
    ),
    ...problemsAt(file, lines, (text) =>
      /(^|[\s"'`(=])\/(work|home\/\w+|root)\//.test(text)
        ? ["path", "an absolute path of one machine"]
        : null,
    ),
  ];
}
