/** Connections to MySQL and MariaDB through the driver `mysql2`, one statement or transaction at a time. */

import type net from "node:net";
import tls from "node:tls";
import type { Connection as Client, ResultSetHeader } from "mysql2";
import { OptionalPackage } from "../target/driver.ts";
import type {
  Driver,
  DriverAddress,
  DriverEvents,
  Opening,
  Refusal,
  Traffic,
} from "../target/driver-connection.ts";
import { runStatements, statementsSent } from "../target/sql.ts";
import type { MysqlCommand, Rows, Statement } from "./command.ts";

export interface MysqlLogin {
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly tls: boolean;
}

export const mysqlDriver = new OptionalPackage<typeof import("mysql2")>("mysql2", "MySQL");

/** Prepared statements that one connection keeps. */
const PREPARED_MAX = 1_000;

/** Error codes with which the server closes the connection. */
const ENDS_CONNECTION = new Set([
  ...[1053, 1077], // The server is stopping.
  ...[1927, 3169], // The connection was killed: MariaDB, MySQL.
]);

export class MysqlDriver implements Driver<Client, MysqlCommand> {
  readonly #login: MysqlLogin;

  constructor(login: MysqlLogin) {
    this.#login = login;
  }

  open(address: DriverAddress, events: DriverEvents): Opening<Client> {
    const { database, password, user } = this.#login;
    const { host, port } = address;
    const client = mysqlDriver.module.createConnection({
      ...{ host, port, user, password, database },
      ...(this.#login.tls ? { ssl: {} } : {}),
      // Calls have their own deadlines.
      connectTimeout: 0,
      maxPreparedStatements: PREPARED_MAX,
    });
    const parts = partsOf(client);
    if (this.#login.tls) parts.startTLS = (done) => secure(parts, address, events, done);
    parts.stream.once("connect", () => events.connected());
    client.on("error", (error) => events.lost(withoutTls(error)));
    // Packets out of order, which the driver would accept.
    client.on("warn", (error: Error) => events.lost(error));
    const ready = new Promise((resolve, reject) => {
      client.once("error", reject);
      client.once("connect", resolve);
    });
    return { client, ready };
  }

  perform(client: Client, command: MysqlCommand): Promise<readonly Rows[]> {
    return runStatements(command, {
      run: (statement) => performed(client, statement),
      begin: () => performed(client, BEGIN),
      commit: () => performed(client, COMMIT),
      rollback: () => performed(client, ROLLBACK),
      refused: (error) => this.refusal(error) !== null,
    });
  }

  requests(command: MysqlCommand): number {
    return statementsSent(command);
  }

  refusal(error: unknown): Refusal | null {
    // Only server errors have a state.
    if (!(error instanceof Error) || !("sqlState" in error)) return null;
    const { code, errno = 0 } = error as { readonly code?: string; readonly errno?: number };
    return ENDS_CONNECTION.has(errno) ? null : { code: code ?? `${errno}`, text: error.message };
  }

  /** Exceptions of the driver's decoder have no code. */
  isMalformed(error: unknown): boolean {
    const { code } = error as { readonly code?: string };
    if (code === undefined || error instanceof RangeError) return true;
    return code.startsWith("PROTOCOL_") && code !== "PROTOCOL_CONNECTION_LOST";
  }

  traffic(client: Client): Traffic | null {
    return partsOf(client).stream;
  }

  close(client: Client): void {
    client.removeAllListeners();
    client.on("error", () => undefined);
    client.destroy();
    partsOf(client).stream.destroy();
  }
}

const command = (text: string): Statement => ({ text, values: [], prepared: false });
const BEGIN = command("start transaction");
const COMMIT = command("commit");
const ROLLBACK = command("rollback");

function performed(client: Client, { prepared, text, values }: Statement): Promise<Rows> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, result: unknown): void => {
      if (error === null) resolve(rowsOf(result));
      else reject(error);
    };
    if (!prepared) client.query(text, [...values], done);
    // The driver throws for a value that it cannot encode.
    else client.execute(text, values as (string | number | null)[], done);
  });
}

function rowsOf(result: unknown): Rows {
  if (!Array.isArray(result)) {
    const { affectedRows, insertId } = result as ResultSetHeader;
    return { rows: [], rowCount: affectedRows, insertId };
  }
  // CALL returns lists of rows; the first one counts.
  const rows: Rows["rows"] = Array.isArray(result[0]) ? result[0] : result;
  return { rows, rowCount: rows.length, insertId: 0 };
}

/** Maps missing TLS support to a code that is recognised as a TLS error. */
function withoutTls(error: NodeJS.ErrnoException): Error {
  if (error.code !== "HANDSHAKE_NO_SSL_SUPPORT") return error;
  return Object.assign(new Error("the server does not support TLS"), {
    code: "ERR_TLS_NOT_SPOKEN",
  });
}

/** Private parts of the driver's client. */
interface ClientParts {
  stream: net.Socket;
  readonly packetParser: { execute(bytes: Buffer): void };
  startTLS(done: () => void): void;
}

function partsOf(client: Client): ClientParts {
  return client as unknown as ClientParts;
}

/** Starts TLS like every other target; the driver's own way supports neither our names nor our certificates. */
function secure(
  parts: ClientParts,
  address: DriverAddress,
  events: DriverEvents,
  done: () => void,
): void {
  const plain = parts.stream.removeAllListeners("data");
  const secured = tls.connect({ socket: plain, ...address.tls() }, done);
  secured.on("error", (error) => events.lost(error));
  secured.on("data", (bytes) => parts.packetParser.execute(bytes));
  parts.stream = secured;
}
