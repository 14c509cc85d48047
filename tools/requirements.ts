/**
 * Requirement ids in comments and test names ("SW-3", "VSR-12..15") lead to docs/requirements.md: one
 * row per id with a sentence written by hand, and two columns found here, so that they cannot go stale.
 *
 *   npx tsx tools/requirements.ts            checks the page against the sources
 *   npx tsx tools/requirements.ts --write    rewrites the two columns, drops rows that nothing names
 *
 * A family of ids is what stands before the dash; the headings of the page ("## SW: …") are the list of
 * families. Invariants that are defined where they are checked (M1, I8, W2) have no dash and no row.
 */

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const REQUIREMENTS_PAGE = "docs/requirements.md";
const PLACES_MAX = 3;
const TABLE_HEAD = "| id | requirement | implemented in | shown by |\n| --- | --- | --- | --- |";

/** Written like an id, and names of something else. */
const STANDARDS = new Set(["AES", "CRC", "FNV", "P", "SHA", "SSH", "UTF"]);

interface RequirementProblem {
  readonly file: string;
  readonly line: number;
  readonly rule: string;
  readonly message: string;
}

export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

interface Mention {
  readonly id: string;
  readonly file: string;
  readonly line: number;
}

interface Row {
  readonly id: string;
  readonly sentence: string;
  readonly line: number;
}

/** A part of the page below one heading; a family's ends with its table. */
interface Section {
  readonly family: string | null;
  readonly text: string;
  readonly rows: readonly Row[];
}

const ID = /(?<![\w-])([A-Z][A-Z0-9]*)-(\d+)([a-z]?)(?:\.(\d+))?(?:\.\.(\d+))?(?![\w-])/g;

/** "AD-28.1..3" is three ids, "B-52a" is one. */
export function idsIn(text: string): string[] {
  const found: string[] = [];
  for (const [, family, number, letter, part, last] of text.matchAll(ID)) {
    const stem = part === undefined ? `${family}-` : `${family}-${number}${letter}.`;
    const first = part ?? number;
    const tail = part === undefined ? letter : "";
    if (last === undefined) found.push(`${stem}${first}${tail}`);
    else for (let at = Number(first); at <= Number(last); at++) found.push(`${stem}${at}`);
  }
  return found;
}

/** A list or a range that only a reader would complete: "SW-3, 4", "SW-3 to SW-5". */
const SHORTHAND = /(?<![\w-])[A-Z][A-Z0-9]*-\d+(?:,? and|,| to) (?:[A-Z][A-Z0-9]*-)?\d+(?![\w.])/;
const isShorthand = (text: string): boolean => {
  const match = SHORTHAND.exec(text)?.[0] ?? "";
  return match.includes(" to ") || /(?:and|,) \d/.test(match);
};

const isEvidence = (path: string): boolean =>
  /\.test\.tsx?$|^(?:sim|test|bench)\/|\/testing\//.test(path);

/** Text of a line for readers: its comment; in tests the whole line, because names count. */
function saidIn(path: string, line: string): string {
  if (path.endsWith(".md") || isEvidence(path)) return line;
  if (/^\s*(?:\/?\*|--)/.test(line)) return line;
  const at = /(?:^|\s)(?:\/\/|\/\*|-- )/.exec(line)?.index;
  return at === undefined ? "" : line.slice(at);
}

function mentionsIn(files: readonly SourceFile[]): Mention[] {
  return files.flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, index) => {
      if (!line.includes("-")) return [];
      return idsIn(saidIn(path, line)).map((id) => ({ id, file: path, line: index + 1 }));
    }),
  );
}

const familyOf = (id: string): string => id.slice(0, id.indexOf("-"));

/** Numbers as numbers: SW-9 before SW-10, AD-28.4 before AD-28.10. */
function compareIds(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}

function sectionsOf(page: string): Section[] {
  let line = 1;
  return page.split(/^(?=## )/m).map((text) => {
    const family = /^## ([A-Z][A-Z0-9]*): /.exec(text)?.[1] ?? null;
    const rows: Row[] = [];
    text.split("\n").forEach((content, at) => {
      const cells = /^\| ([A-Z][\w.-]+) \| (.+?) \| [^|]*\| [^|]*\|$/.exec(content);
      const [, id, sentence] = cells ?? [];
      if (family === null || id === undefined || sentence === undefined) return;
      rows.push({ id, sentence, line: line + at });
    });
    line += text.split("\n").length - 1;
    return { family, text, rows };
  });
}

/** At most three places; a file is named once, sources without the folder they all lie in. */
function placesOf(mentions: readonly Mention[], evidence: boolean): string {
  const files = [...new Set(mentions.map(({ file }) => file))]
    .filter((file) => isEvidence(file) === evidence)
    .map((file) => file.replace(/^src\//, ""))
    .sort();
  const shown = files.slice(0, PLACES_MAX).map((file) => `\`${file}\``);
  const rest = files.length - shown.length;
  return shown.join(", ") + (rest > 0 ? ` +${rest}` : "");
}

export class Requirements {
  readonly #page: string;
  readonly #sections: readonly Section[];
  readonly #files: readonly SourceFile[];
  readonly #inCode = new Map<string, Mention[]>();
  readonly #inDocs: readonly Mention[];

  constructor(page: string, files: readonly SourceFile[]) {
    this.#page = page;
    this.#files = files;
    this.#sections = sectionsOf(page);
    const mentions = mentionsIn(files);
    this.#inDocs = mentions.filter(({ file }) => file.endsWith(".md"));
    for (const mention of mentions) {
      if (mention.file.endsWith(".md")) continue;
      const known = this.#inCode.get(mention.id);
      if (known === undefined) this.#inCode.set(mention.id, [mention]);
      else known.push(mention);
    }
  }

  get rows(): readonly Row[] {
    return this.#sections.flatMap(({ rows }) => rows);
  }

  /** Ids of rows that nothing but documents names any more. */
  get vanished(): readonly string[] {
    return this.rows.map(({ id }) => id).filter((id) => !this.#inCode.has(id));
  }

  get withTest(): number {
    return this.rows.filter(({ id }) => this.#places(id, true) !== "").length;
  }

  /** The page with the columns as the sources have them, in the order of the numbers. */
  written(): string {
    const texts = this.#sections.map(({ family, rows, text }) => {
      if (family === null) return text;
      const left = rows.filter(({ id }) => this.#inCode.has(id));
      if (left.length === 0) return "";
      const intro = text.slice(0, text.indexOf("| id |")).trimEnd();
      const lines = left
        .toSorted((a, b) => compareIds(a.id, b.id))
        .map(({ id, sentence }) => this.#line(id, sentence));
      return `${intro}\n\n${TABLE_HEAD}\n${lines.join("\n")}\n\n`;
    });
    return `${texts.join("").trimEnd()}\n`;
  }

  problems(): RequirementProblem[] {
    const rows = new Set(this.rows.map(({ id }) => id));
    return [
      ...this.#problemsOfRows(),
      ...[...[...this.#inCode.values()].flat(), ...this.#inDocs].flatMap((mention) =>
        this.#problemOf(mention, rows),
      ),
      ...this.#shorthands(),
    ];
  }

  #line(id: string, sentence: string): string {
    return `| ${id} | ${sentence} | ${this.#places(id, false)} | ${this.#places(id, true)} |`;
  }

  #places(id: string, evidence: boolean): string {
    return placesOf(this.#inCode.get(id) ?? [], evidence);
  }

  #problemsOfRows(): RequirementProblem[] {
    const seen = new Set<string>();
    const found: RequirementProblem[] = [];
    const say = (line: number, message: string): void => {
      found.push({ file: REQUIREMENTS_PAGE, line, rule: "requirements", message });
    };
    for (const { family, rows } of this.#sections) {
      for (const { id, line } of rows) {
        if (seen.has(id)) say(line, `${id} has two rows`);
        if (familyOf(id) !== family) say(line, `${id} stands in the family ${family}`);
        if (!this.#inCode.has(id)) say(line, `nothing in the sources names ${id}`);
        seen.add(id);
      }
    }
    if (found.length === 0 && this.written() !== this.#page) {
      say(1, "is out of date: npx tsx tools/requirements.ts --write");
    }
    return found;
  }

  #problemOf({ file, id, line }: Mention, rows: ReadonlySet<string>): RequirementProblem[] {
    const family = familyOf(id);
    if (rows.has(id) || STANDARDS.has(family)) return [];
    // Data in tests may look like an id; only what looks like one of ours must lead somewhere.
    const ours = this.#sections.some((section) => section.family === family);
    if (!ours && (isEvidence(file) || file.endsWith(".md"))) return [];
    const message = `${id} has no row in ${REQUIREMENTS_PAGE}`;
    return [{ file, line, rule: "requirements", message }];
  }

  #shorthands(): RequirementProblem[] {
    return this.#files.flatMap(({ path, text }) =>
      text.split("\n").flatMap((content, index) => {
        if (!isShorthand(saidIn(path, content))) return [];
        const message = "write each id in full, or a range as SW-3..5";
        return [{ file: path, line: index + 1, rule: "requirements", message }];
      }),
    );
  }
}

/** Everything that may name a requirement, except the page and this tool, which speak about ids. */
function requirementsOf(root: string): Requirements {
  const listing = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  });
  const files = listing
    .split("\n")
    .filter((path) =>
      /^(?:src|sim|test|tools|web|bench|docs|bin|examples)\/.*\.(?:tsx?|m?js|sql|md)$/.test(path),
    )
    .filter((path) => path !== REQUIREMENTS_PAGE && !path.startsWith("tools/requirements"))
    .filter((path) => existsSync(join(root, path)))
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
  return new Requirements(readFileSync(join(root, REQUIREMENTS_PAGE), "utf8"), files);
}

export function checkRequirements(root: string): RequirementProblem[] {
  return requirementsOf(root).problems();
}

function main(root: string, write: boolean): number {
  if (write) {
    const stale = requirementsOf(root);
    for (const id of stale.vanished) process.stdout.write(`${id}: nothing names it, row removed\n`);
    writeFileSync(join(root, REQUIREMENTS_PAGE), stale.written());
  }
  const current = requirementsOf(root);
  const problems = current.problems();
  for (const { file, line, message } of problems) {
    process.stdout.write(`${file}:${line}: ${message}\n`);
  }
  const total = current.rows.length;
  process.stdout.write(`${current.withTest} of ${total} requirements have a named test\n`);
  return problems.length === 0 ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL("..", import.meta.url));
  process.exit(main(root, process.argv.includes("--write")));
}
