/** Connections to PostgreSQL through the driver `pg`, one statement or transaction at a time. */

import type net from "node:net";
import pg from "pg";
import type {
  Driver,
  DriverAddress,
  DriverEvents,
  Opening,
  Refusal,
  Traffic,
} from "../target/driver-connection.ts";
import {
  runStatements,
  type SqlCommand,
  type SqlStatement,
  statementsSent,
} from "../target/sql.ts";
import { copyIn } from "./copy.ts";

interface Statement extends SqlStatement {
  /** Prepared under this name on first use by a connection. */
  readonly name?: string;
  /** Data of a COPY. */
  readonly copied?: Uint8Array;
}

export type PostgresCommand = SqlCommand<Statement>;

export interface PostgresLogin {
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly tls: boolean;
}

export interface Rows {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** Rows found or changed. */
  readonly rowCount: number;
}

/** admin_shutdown, crash_shutdown, cannot_connect_now. */
const ENDS_CONNECTION = /^57P0[1-3]$/;

export class PostgresDriver implements Driver<pg.Client, PostgresCommand> {
  readonly #login: PostgresLogin;

  constructor(login: PostgresLogin) {
    this.#login = login;
  }

  open(address: DriverAddress, events: DriverEvents): Opening<pg.Client> {
    const { database, password, user } = this.#login;
    const { host, port } = address;
    const client = new pg.Client({
      ...{ host, port, user, password, database },
      // Without it, the driver would use PGSSLMODE.
      ssl: this.#login.tls ? address.tls() : false,
      keepAlive: true,
    });
    client.on("error", (error) => events.lost(error));
    client.on("end", () => events.lost(new Error("the server closed the connection")));
    socketOf(client)?.once("connect", () => events.connected());
    return { client, ready: client.connect() };
  }

  perform(client: pg.Client, command: PostgresCommand): Promise<readonly Rows[]> {
    const { statements, transaction } = command;
    const [first] = statements;
    // Fast path of the load: one promise less, and no object per call.
    if (first !== undefined && !transaction && first.copied === undefined)
      return queried(client, first).then(onlyRows);
    return runStatements(command, {
      run: async (statement) => rowsOf(await performed(client, statement)),
      begin: () => client.query("BEGIN"),
      commit: () => client.query("COMMIT"),
      rollback: () => client.query("ROLLBACK"),
      refused: (error) => this.refusal(error) !== null,
    });
  }

  requests(command: PostgresCommand): number {
    return statementsSent(command);
  }

  refusal(error: unknown): Refusal | null {
    if (!(error instanceof pg.DatabaseError) || error.code === undefined) return null;
    // The server closes the connection with these codes.
    if (ENDS_CONNECTION.test(error.code)) return null;
    return { code: error.code, text: error.message };
  }

  /** The driver uses the same class for responses that it cannot decode; only server errors have codes. */
  isMalformed(error: unknown): boolean {
    return error instanceof pg.DatabaseError && error.code === undefined;
  }

  traffic(client: pg.Client): Traffic | null {
    return socketOf(client);
  }

  close(client: pg.Client): void {
    client.removeAllListeners();
    client.on("error", () => undefined);
    socketOf(client)?.destroy();
  }
}

async function performed(
  client: pg.Client,
  statement: Statement,
): Promise<Pick<pg.QueryResult, "rows" | "rowCount">> {
  const { copied, text } = statement;
  if (copied === undefined) return queried(client, statement);
  return { rows: [], rowCount: await copyIn(client, text, copied) };
}

/** The driver copies query objects, so one is used only for named statements. */
function queried(client: pg.Client, statement: Statement): Promise<pg.QueryResult> {
  const { name, text, values } = statement;
  if (name !== undefined) return client.query({ name, text, values: [...values] });
  return values.length === 0 ? client.query(text) : client.query(text, [...values]);
}

function onlyRows(result: pg.QueryResult): readonly Rows[] {
  return [rowsOf(result)];
}

function rowsOf({ rowCount, rows }: Pick<pg.QueryResult, "rows" | "rowCount">): Rows {
  return { rows, rowCount: rowCount ?? 0 };
}

/** Private member of the driver's client. */
function socketOf(client: pg.Client): net.Socket | null {
  const { connection } = client as unknown as { readonly connection?: { stream?: net.Socket } };
  return connection?.stream ?? null;
}
