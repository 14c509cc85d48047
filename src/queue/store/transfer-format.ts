/**
 * The file that `queue export` writes and `queue import` reads: lines of JSON.
 *
 *     {"hyperscale_queue":1,"schema":7,"epoch":"4","next_ids":"12001","columns":{"tasks":["id",…],…}}
 *     {"table":"tasks","row":{"id":"1001","executor":"sleep",…}}
 *     {"end":true,"counts":{"tasks":1,…}}
 *
 * Values are PostgreSQL's text output, because that is exact for every type: a JSON null and no value differ, times
 * keep their microseconds. What belongs to an installation and not to the work stays there: registered nodes, the
 * leader, and the shared token.
 */

import { QueueError } from "../../core/queue/errors.ts";

export const FORMAT_VERSION = 1;
/** Characters of a line: a row has an input and a result of 1 MiB each and a history; escapes make them longer. */
export const LINE_LENGTH_MAX = 64 * 1024 * 1024;

interface TransferTable {
  readonly name: string;
  /** A unique order, so that equal stores give equal files. */
  readonly order: string;
  /** Rows in memory at once: few where one may be large. */
  readonly rowsAtOnce: number;
}

/** Ordered so that every row finds what it refers to. Sums of finished tasks are recomputed. */
export const TRANSFER_TABLES: readonly TransferTable[] = [
  { name: "task_queues", order: "queue", rowsAtOnce: 500 },
  { name: "task_schedules", order: "schedule_id", rowsAtOnce: 16 },
  { name: "tasks", order: "id", rowsAtOnce: 16 },
  { name: "task_dependencies", order: "depends_on, task_id", rowsAtOnce: 500 },
  { name: "task_arrivals", order: "task_id", rowsAtOnce: 500 },
  { name: "task_graphs", order: "idempotency_key", rowsAtOnce: 16 },
  { name: "task_log_lines", order: "task_id, attempt_id, line", rowsAtOnce: 500 },
  { name: "task_progress", order: "task_id, attempt_id", rowsAtOnce: 16 },
  { name: "stored_files", order: "hash", rowsAtOnce: 500 },
  { name: "stored_file_chunks", order: "hash, chunk", rowsAtOnce: 4 },
  { name: "task_files", order: "task_id, name", rowsAtOnce: 500 },
];

export type TransferCounts = Readonly<Record<string, number>>;
export type TransferRow = Readonly<Record<string, string | null>>;

export interface TransferHeader {
  readonly hyperscale_queue: number;
  /** The newest migration of the exported store. */
  readonly schema: number;
  /** Epochs continue from here. */
  readonly epoch: string;
  /** Start of the next block of task ids: no id is used twice. */
  readonly next_ids: string;
  readonly columns: Readonly<Record<string, readonly string[]>>;
}

type TransferLine =
  | { readonly kind: "row"; readonly table: string; readonly row: TransferRow }
  | { readonly kind: "end"; readonly counts: TransferCounts };

export function refuse(problem: string): QueueError {
  return new QueueError("INVALID_PARAMS", problem);
}

export function parseHeader(text: string): TransferHeader {
  const value = parseObject(text, 1);
  const { hyperscale_queue: version, schema, epoch, next_ids, columns } = value;
  if (typeof version !== "number") throw refuse("line 1 does not begin an export of a queue");
  if (version !== FORMAT_VERSION)
    throw refuse(`the file has format ${version}; this program reads ${FORMAT_VERSION}`);
  const lists = new Map(Object.entries(Object(columns)));
  const fits =
    typeof schema === "number" &&
    isWhole(epoch) &&
    isWhole(next_ids) &&
    TRANSFER_TABLES.every(({ name }) => isTexts(lists.get(name)));
  if (!fits) throw refuse("line 1 does not say what the file holds");
  return value as unknown as TransferHeader;
}

export function parseLine(text: string, line: number): TransferLine {
  const { table, row, end, counts } = parseObject(text, line);
  if (end === true && isRecord(counts, (count) => Number.isSafeInteger(count)))
    return { kind: "end", counts: counts as TransferCounts };
  if (typeof table === "string" && isRecord(row, isCell))
    return { kind: "row", table, row: row as TransferRow };
  throw refuse(`line ${line} is neither a row nor the end`);
}

function parseObject(text: string, line: number): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (isRecord(value, () => true)) return value;
  } catch {
    // Reported below: the text may be long and is not repeated.
  }
  throw refuse(`line ${line} is not an object of JSON: the file is cut or was changed`);
}

function isRecord(
  value: unknown,
  fits: (part: unknown) => boolean,
): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every(fits);
}

function isCell(value: unknown): boolean {
  return value === null || typeof value === "string";
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((part) => typeof part === "string");
}

function isWhole(value: unknown): boolean {
  return typeof value === "string" && /^\d{1,18}$/.test(value);
}
