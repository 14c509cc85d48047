/**
 * Data for iterations: rows from CSV, JSON, arrays, the files of a folder or a generator function. The order is one of
 *
 *   sequential   row after row over all users and cores, beginning again at the end
 *   random       any row, independently
 *   once         each row exactly once over all users and cores; users stop when none is left
 *
 * `shuffle` mixes the rows of the first and the last, again in each round, by the seed of the run. With `per: "user"` a
 * row belongs to the number of a user instead of an iteration.
 *
 * Every core has all rows; the next row is chosen by index, and indices of the ordered kinds are leased in blocks from
 * the manager, so that no two cores ever use the same one.
 */

import { readFile, stat } from "node:fs/promises";
import { basename, extname, resolve } from "node:path";
import { deepFreeze } from "../core/base/freeze.ts";
import { didYouMean } from "../core/base/nearest.ts";
import { DefinitionError } from "./errors.ts";
import { matchingFiles } from "./file-pattern.ts";

type FeedOrder = "sequential" | "random" | "once";

interface FeedOptions {
  readonly order?: FeedOrder;
  /** Orders the rows of "sequential" and "once" randomly by the seed of the run. */
  readonly shuffle?: boolean;
  /** "iteration" (default): each has a row. "user": each virtual user keeps the row of its number. */
  readonly per?: "iteration" | "user";
}

export class Feed<Row> {
  readonly order: FeedOrder;
  readonly shuffle: boolean;
  readonly perUser: boolean;
  readonly source: string;
  readonly #load: (folder: string) => Promise<RowSource<Row>>;
  readonly #files: FilesRead;

  constructor(
    source: string,
    options: FeedOptions,
    load: (folder: string) => Promise<RowSource<Row>>,
    files: FilesRead = async () => [],
  ) {
    const { order = "sequential", per = "iteration", shuffle = false } = options;
    if (per !== "iteration" && per !== "user")
      throw new DefinitionError(`${source}: per is "${String(per)}"; it must be iteration or user`);
    if (shuffle && order === "random")
      throw new DefinitionError(`${source}: random rows cannot be shuffled as well`);
    this.shuffle = shuffle;
    this.perUser = per === "user";
    if (order !== "sequential" && order !== "random" && order !== "once") {
      throw new DefinitionError(
        `${source}: order is "${String(order)}"; it must be sequential, random or once`,
      );
    }
    this.source = source;
    this.order = order;
    this.#load = load;
    this.#files = files;
  }

  load(folder: string): Promise<RowSource<Row>> {
    return this.#load(folder);
  }

  /** Files required where the rows are loaded. */
  files(folder: string): Promise<readonly string[]> {
    return this.#files(folder);
  }
}

/** Files it reads, by paths as the workflow names them. */
type FilesRead = (folder: string) => Promise<readonly string[]>;

export interface RowSource<Row> {
  /** Infinity for a generator. */
  readonly length: number;
  row(index: number): Row;
}

/** Columns are named by the first line; every value is text. */
export type CsvRow = Readonly<Record<string, string>>;

export interface FileRow {
  /** From the folder of the workflow: for `file(path)`. */
  readonly path: string;
  readonly name: string;
  readonly bytes: number;
}

/** Type of a column: text, a number, or "true" and "false". */
type ColumnKind = StringConstructor | NumberConstructor | BooleanConstructor;
type Columns = Readonly<Record<string, ColumnKind>>;

interface CsvOptions<Given> extends FeedOptions {
  readonly delimiter?: string;
  /** Columns of the rows, each with its type; a file without one of them is rejected. */
  readonly columns: Given;
}

function csv<Row = CsvRow>(path: string, options?: Partial<CsvOptions<never>>): Feed<Row>;
function csv<Given extends Columns>(
  path: string,
  options: CsvOptions<Given>,
): Feed<{ readonly [Name in keyof Given]: ReturnType<Given[Name]> }>;
function csv(path: string, options: Partial<CsvOptions<Columns>> = {}): Feed<unknown> {
  const source = `feed.csv("${path}")`;
  const { columns, delimiter = "," } = options;
  if (columns !== undefined) checkColumns(columns, source);
  const load = async (folder: string): Promise<RowSource<unknown>> => {
    const { parse } = await import("csv-parse/sync");
    const text = await read(path, folder);
    let names: readonly string[] = [];
    const header = (given: string[]): string[] => {
      names = given;
      return given;
    };
    let rows: CsvRow[];
    try {
      rows = parse(text, { columns: header, skip_empty_lines: true, bom: true, delimiter });
    } catch (cause) {
      throw new DefinitionError(`${path} is not proper CSV: ${(cause as Error).message}`, {
        cause,
      });
    }
    if (columns === undefined) return arrayRows(rows, source);
    const missing = Object.keys(columns).find((name) => !names.includes(name));
    if (missing !== undefined)
      throw new DefinitionError(
        `${path} has no column "${missing}"${didYouMean(missing, names)} (its columns: ${names.join(", ")})`,
      );
    return arrayRows(
      rows.map((row, at) => typedRow(row, columns, `${path}: row ${at + 1}`)),
      source,
    );
  };
  return new Feed(source, options, load, async () => [path]);
}

function checkColumns(columns: unknown, source: string): void {
  const kinds: readonly unknown[] = [String, Number, Boolean];
  const isObject = typeof columns === "object" && columns !== null && !Array.isArray(columns);
  if (!isObject || !Object.values(columns).every((kind) => kinds.includes(kind)))
    throw new DefinitionError(
      `${source}: columns are names, each with String, Number or Boolean: columns: { user: String }`,
    );
}

function typedRow(row: CsvRow, columns: Columns, where: string): Readonly<Record<string, unknown>> {
  const entries = Object.entries(columns).map(([name, kind]) => {
    const text = row[name] ?? "";
    const value = readAs(kind, text);
    if (value === undefined) {
      const wanted = kind === Number ? "a number" : "true or false";
      throw new DefinitionError(`${where}: ${name} is "${text}"; it must be ${wanted}`);
    }
    return [name, value] as const;
  });
  return Object.fromEntries(entries);
}

/** Undefined where the text does not match the type. */
function readAs(kind: ColumnKind, text: string): string | number | boolean | undefined {
  if (kind === String) return text;
  const trimmed = text.trim();
  if (kind === Boolean) return /^(true|false)$/.test(trimmed) ? trimmed === "true" : undefined;
  const number = Number(trimmed);
  return trimmed === "" || !Number.isFinite(number) ? undefined : number;
}

export const feed = {
  csv,

  json: <Row = unknown>(path: string, options: FeedOptions = {}): Feed<Row> => {
    const load = async (folder: string): Promise<RowSource<Row>> => {
      const text = await read(path, folder);
      let rows: unknown;
      try {
        // Lines of JSON are as common as one array.
        rows = /\.(ndjson|jsonl)$/.test(extname(path)) ? parseLines(text) : JSON.parse(text);
      } catch (cause) {
        throw new DefinitionError(`${path} is not proper JSON: ${(cause as Error).message}`, {
          cause,
        });
      }
      if (!Array.isArray(rows)) throw new DefinitionError(`${path} must hold a JSON array of rows`);
      return arrayRows(rows as Row[], `feed.json("${path}")`);
    };
    return new Feed(`feed.json("${path}")`, options, load, async () => [path]);
  },

  /** A row for each file of a folder, or of a pattern such as "pictures/*.png". */
  files: (pattern: string, options: FeedOptions = {}): Feed<FileRow> => {
    const source = `feed.files("${pattern}")`;
    const files: FilesRead = async (folder) => {
      const found = await matchingFiles(pattern, folder);
      if (found.length === 0) throw new DefinitionError(`${source} finds no file in ${folder}`);
      return found;
    };
    const load = async (folder: string): Promise<RowSource<FileRow>> => {
      const rows: FileRow[] = [];
      for (const path of await files(folder)) {
        const { size: bytes } = await stat(resolve(folder, path));
        rows.push({ path, name: basename(path), bytes });
      }
      return arrayRows(rows, source);
    };
    return new Feed(source, options, load, files);
  },

  rows: <Row>(rows: readonly Row[], options: FeedOptions = {}): Feed<Row> =>
    new Feed("feed.rows(…)", options, async () => arrayRows(rows, "feed.rows(…)")),

  /** Row number n of all users and cores; never ends. */
  generate: <Row>(make: (index: number) => Row): Feed<Row> =>
    new Feed("feed.generate(…)", {}, async () => ({
      length: Number.POSITIVE_INFINITY,
      row: make,
    })),
};

function parseLines(text: string): unknown[] {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line) as unknown);
}

function arrayRows<Row>(rows: readonly Row[], source: string): RowSource<Row> {
  if (rows.length === 0) throw new DefinitionError(`${source} has no rows`);
  for (const row of rows) deepFreeze(row);
  return { length: rows.length, row: (index) => rows[index % rows.length] as Row };
}

async function read(path: string, folder: string): Promise<string> {
  const full = resolve(folder, path);
  try {
    return await readFile(full, "utf8");
  } catch (cause) {
    const isAbsent = (cause as NodeJS.ErrnoException).code === "ENOENT";
    if (isAbsent) throw new DefinitionError(`cannot read the data file ${full}: no such file`);
    throw new DefinitionError(`cannot read the data file ${full}`, { cause });
  }
}
