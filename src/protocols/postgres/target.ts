/**
 * \n A PostgreSQL server, as users write it.
 *
 *   const db = postgres.target("postgres://shop:secret@db.test/shop");
 *   const byId = db.prepared("by_id", "select * from items where id = $1");
 *   const found = await step("find", byId([7]));
 *   await step("order", db.transaction(db.query("insert …"), db.query("update …")));
 */

import { credentialsOf, pathOf } from "../target/credentials.ts";
import type { DescribedCall } from "../target/described-call.ts";
import { DriverConnection } from "../target/driver-connection.ts";
import type { TargetResult } from "../target/result.ts";
import { checkedText, pingCall, statementCall, transactionCall } from "../target/sql.ts";
import { Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import {
  type PostgresCommand,
  PostgresDriver,
  type PostgresLogin,
  type Rows,
} from "./connection.ts";

export interface PostgresOptions extends TargetOptions {
  /** User to log in as; defaults to the user in the address. */
  readonly user?: string;
  readonly password?: string;
  /** Defaults to the path of the address. */
  readonly database?: string;
  /** Uses TLS, like `?sslmode=require` in the address. */
  readonly tls?: boolean;
}

/** Values for the placeholders $1, $2, … of a statement. */
export type Parameters = readonly unknown[];

export type PostgresResponse<Value = Rows> = TargetResult<Value>;

/** A described statement, or a transaction of them. */
export type PostgresCall<Value> = DescribedCall<PostgresCommand, Value>;

export const POSTGRES: TargetProtocol = {
  name: "postgres",
  schemes: {
    postgres: { port: 5432, secure: false },
    postgresql: { port: 5432, secure: false },
  },
  optionNames: ["user", "password", "database", "tls"],
};

const NONE: Parameters = [];
const COPY = /^\s*copy\b.*\bfrom\s+stdin\b/is;
const COPY_EXAMPLE = 'copy("copy items from stdin (format csv)", "1,nut\\n2,bolt\\n")';
const EXAMPLE = 'query("select * from items where id = $1", [7])';

export class PostgresTarget {
  readonly #target: Target<PostgresCommand>;

  constructor(address: string, options: PostgresOptions = {}) {
    this.#target = new Target(
      POSTGRES,
      address,
      options,
      (host, now) => new DriverConnection(host, driver, now),
    );
    const driver = new PostgresDriver(loginOf(this.#target.url, options));
  }

  /** One statement; `value` has its `rows` and `rowCount`. */
  query(text: string, values: Parameters = NONE): PostgresCall<Rows> {
    return statementCall(this.#target, { text: checkedText(text, EXAMPLE), values });
  }

  /** A statement that each connection prepares once, under this name. */
  prepared(name: string, text: string): (values?: Parameters) => PostgresCall<Rows> {
    if (typeof name !== "string" || name === "" || name.length > 63)
      throw new TypeError("a prepared statement has a name of 1 to 63 characters");
    checkedText(text, EXAMPLE);
    return (values = NONE) => statementCall(this.#target, { name, text, values }, name);
  }

  /** `copy items from stdin (format csv)` with its data, encoded once; `rowCount` is the number of copied rows. */
  copy(text: string, data: string | Uint8Array): PostgresCall<Rows> {
    if (!COPY.test(checkedText(text, COPY_EXAMPLE)))
      throw new TypeError(`a copy takes data from stdin: ${COPY_EXAMPLE}`);
    if (typeof data !== "string" && !(data instanceof Uint8Array))
      throw new TypeError(`the data of a copy is text or bytes: ${COPY_EXAMPLE}`);
    const copied = typeof data === "string" ? Buffer.from(data) : data;
    return statementCall(this.#target, { text, values: NONE, copied });
  }

  /**
   * Several statements, all or nothing: one measured call from BEGIN to COMMIT. The first one that fails rolls back the
   * transaction.
   */
  transaction(...calls: readonly PostgresCall<Rows>[]): PostgresCall<readonly Rows[]> {
    return transactionCall(this.#target, calls);
  }

  ping(): PostgresCall<string> {
    return pingCall(this.#target, { text: "select 1", values: NONE });
  }
}

function loginOf(url: URL, options: PostgresOptions): PostgresLogin {
  const { password, user } = credentialsOf(url, options);
  const mode = url.searchParams.get("sslmode") ?? "disable";
  if (!["disable", "require", "verify-full"].includes(mode))
    throw new TypeError(`sslmode=${mode} is not known: disable, require or verify-full`);
  if (user === "") throw new TypeError("postgres.target: the address names no user");
  const database = pathOf(url, options.database);
  return {
    user,
    password,
    database: database === "" ? user : database,
    tls: options.tls ?? mode !== "disable",
  };
}
