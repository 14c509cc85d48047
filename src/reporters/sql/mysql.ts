/** MySQL and MariaDB, by the driver `mysql2`. */

import type { Connection } from "mysql2";
import { loadDriver } from "../../protocols/target/driver.ts";
import { definePush } from "../definition.ts";
import { type PointObject, pointBatches } from "../encoders/point-json.ts";
import { REQUEST_MS_MAX } from "../limits.ts";
import { type Session, SessionTransport } from "../pipeline/session.ts";
import { ReporterError } from "../settings.ts";
import { TABLE, tableName } from "./table.ts";

/** Points per statement: some 8,000 rows, far below the limit of a packet. */
const POINTS_MAX = 500;
/** Transient SQL states: connection errors and conflicts; and a lock timeout. */
const PASSING_STATE = /^(08|40)/;
const PASSING_NUMBERS: ReadonlySet<number> = new Set([1_205, 1_206, 1_226, 1_927]);

export const mysql = definePush({
  name: "mysql",
  about: "MySQL and MariaDB, with the package mysql2",
  target: "env:MYSQL_URL",
  settings: { table: TABLE },
  evidence: "real server",
  testedWith: "MariaDB 10.11",
  transport: ({ settings, target }) => {
    const table = tableName("mysql", settings.table);
    if (!target.startsWith("mysql://"))
      throw new ReporterError("report mysql: its address must begin with mysql://");
    return new SessionTransport({
      prepare: async () => void (await driver()),
      open: (signal) => opened(target, table, signal),
      isRefusal,
    });
  },
  encode: (frame) => pointBatches(frame, POINTS_MAX),
});

async function driver(): Promise<typeof import("mysql2")> {
  const loaded = await loadDriver<{ readonly default: typeof import("mysql2") }>(
    "mysql2",
    "report mysql",
  );
  return loaded.default;
}

async function opened(url: string, table: string, signal: AbortSignal): Promise<Session> {
  const { createConnection } = await driver();
  const client = createConnection({ uri: url, connectTimeout: REQUEST_MS_MAX });
  const destroy = (): void => client.destroy();
  signal.addEventListener("abort", destroy, { once: true });
  // The next batch notices a connection that broke in between.
  client.on("error", () => {});
  await new Promise<void>((resolve, reject) => {
    client.connect((error) => (error === null ? resolve() : reject(error)));
  });
  await performed(client, "SET time_zone = '+00:00'");
  await performed(client, tableOf(table));
  return {
    write: async (body) => {
      const points = JSON.parse(body.toString("utf8")) as readonly PointObject[];
      await performed(client, `INSERT INTO ${table} VALUES ?`, [points.flatMap(rowsOf)]);
    },
    close: () => new Promise((resolve) => client.end(() => resolve())),
    destroy,
  };
}

function performed(
  client: Connection,
  statement: string,
  values: readonly unknown[] = [],
): Promise<void> {
  return new Promise((resolve, reject) => {
    client.query(statement, [...values], (error) => (error === null ? resolve() : reject(error)));
  });
}

/** Only errors reported by the server have a state. */
function isRefusal(error: unknown): boolean {
  const { errno = 0, sqlState } = error as { readonly errno?: number; readonly sqlState?: string };
  if (sqlState === undefined) return false;
  return !PASSING_STATE.test(sqlState) && !PASSING_NUMBERS.has(errno);
}

/** Every value of every point is a row: "p99" of the figure "latency_ms". */
function rowsOf({ at, figure, kind, labels, scope, type, unit, values }: PointObject): unknown[][] {
  const { run_id = null, step = null, workflow = null } = labels;
  const moment = at.replace("T", " ").replace("Z", "");
  const place = [moment, kind, scope, figure, type, unit, run_id, workflow, step];
  return Object.entries(values).map((pair) => [...place, JSON.stringify(labels), ...pair]);
}

function tableOf(table: string): string {
  const texts = ["kind", "scope", "figure", "type", "unit"].map((name) => `${name} text NOT NULL`);
  return `CREATE TABLE IF NOT EXISTS ${table} (
    at datetime(3) NOT NULL, ${texts.join(", ")}, run_id varchar(191), workflow text, step text,
    labels json NOT NULL, name text NOT NULL, value double NOT NULL, KEY (run_id), KEY (at)
  ) CHARACTER SET utf8mb4`;
}
