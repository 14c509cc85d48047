/**
 * Data for iterations: rows from CSV, JSON, arrays or a generator function. The order is one of
 *
 *   sequential   row after row over all users and cores, beginning again at the end
 *   random       any row, independently
 *   once         each row exactly once over all users and cores; users stop when none is left
 *
 * `shuffle` mixes the rows of the first and the last, each round anew, by the seed of the run. With
 * `per: "user"` a row belongs to the number of a user instead of an iteration.
 *
 * Rows live in every core; which row is next is decided by index, and indices of the ordered kinds
 * are leased in blocks from the manager, so that no two cores ever use the same one.
 */

import { readFile } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { deepFreeze } from "../core/base/freeze.ts";
import { DefinitionError } from "./errors.ts";

type FeedOrder = "sequential" | "random" | "once";

interface FeedOptions {
  readonly order?: FeedOrder;
  /** The rows of "sequential" and "once" in an order drawn from the seed of the run. */
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

  constructor(
    source: string,
    options: FeedOptions,
    load: (folder: string) => Promise<RowSource<Row>>,
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
  }

  load(folder: string): Promise<RowSource<Row>> {
    return this.#load(folder);
  }
}

export interface RowSource<Row> {
  /** Infinity for a generator. */
  readonly length: number;
  row(index: number): Row;
}

/** Columns are named by the first line; every value is text. */
export type CsvRow = Readonly<Record<string, string>>;

export const feed = {
  csv: <Row = CsvRow>(
    path: string,
    options: FeedOptions & { readonly delimiter?: string } = {},
  ): Feed<Row> =>
    new Feed(`feed.csv("${path}")`, options, async (folder) => {
      const { parse } = await import("csv-parse/sync");
      const text = await read(path, folder);
      let rows: Row[];
      try {
        rows = parse(text, {
          columns: true,
          skip_empty_lines: true,
          bom: true,
          delimiter: options.delimiter ?? ",",
        }) as Row[];
      } catch (cause) {
        throw new DefinitionError(`${path} is not proper CSV: ${(cause as Error).message}`, {
          cause,
        });
      }
      return arrayRows(rows, `feed.csv("${path}")`);
    }),

  json: <Row = unknown>(path: string, options: FeedOptions = {}): Feed<Row> =>
    new Feed(`feed.json("${path}")`, options, async (folder) => {
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
    }),

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
    throw new DefinitionError(`cannot read the data file ${full}`, { cause });
  }
}
