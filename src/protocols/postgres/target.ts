/**
 * A PostgreSQL server as users write it.
 *
 *   const db = postgres.target("postgres://shop:secret@db.test/shop");
 *   const byId = db.prepared("by_id", "select * from items where id = $1");
 *   const found = await step("find", byId([7]));
 *   await step("order", db.transaction(db.query("insert …"), db.query("update …")));
 */

import type { CallRecord } from "../protocol.ts";
import { DescribedCall } from "../target/described-call.ts";
import { DriverConnection } from "../target/driver-connection.ts";
import type { Answer } from "../target/exchange.ts";
import { TargetResult } from "../target/result.ts";
import { Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import {
  type PostgresCommand,
  PostgresDriver,
  type PostgresLogin,
  type Rows,
  type Statement,
} from "./connection.ts";

export interface PostgresOptions extends TargetOptions {
  /** Whom to log in as; the address's own by default. */
  readonly user?: string;
  readonly password?: string;
  /** The address's path by default. */
  readonly database?: string;
  /** Speak TLS; `?sslmode=require` in the address does the same. */
  readonly tls?: boolean;
}

/** What a statement takes for its $1, $2, … */
export type Parameters = readonly unknown[];

export class PostgresResponse<Value = Rows> extends TargetResult<Value> {
  override readonly protocol: string = "postgres";
}

/** A described statement, or a transaction of them. */
export class PostgresCall<Value> extends DescribedCall<PostgresCommand, PostgresResponse<Value>> {
  constructor(
    target: Target<PostgresCommand>,
    command: PostgresCommand,
    title: string,
    decode: (results: readonly Rows[]) => Value,
  ) {
    super(target, {
      command,
      title,
      shown: command.statements.map(({ text }) => text).join("; "),
      result: (record: CallRecord, answer: Answer) =>
        new PostgresResponse(record, answer, (value) => decode(value as readonly Rows[])),
    });
  }
}

export const POSTGRES: TargetProtocol = {
  name: "postgres",
  schemes: {
    postgres: { port: 5432, secure: false },
    postgresql: { port: 5432, secure: false },
  },
  optionNames: ["user", "password", "database", "tls"],
};

const STATEMENTS_MAX = 1_000;
const NONE: Parameters = [];
const TITLE_WORDS = 3;

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
    return this.#one({ text: checkedText(text), values });
  }

  /** A statement that each connection prepares once, under this name. */
  prepared(name: string, text: string): (values?: Parameters) => PostgresCall<Rows> {
    if (typeof name !== "string" || name === "" || name.length > 63)
      throw new TypeError("a prepared statement has a name of 1 to 63 characters");
    checkedText(text);
    return (values = NONE) => this.#one({ name, text, values });
  }

  /**
   * Several statements, all of them or none: one measured call from BEGIN to COMMIT. The first one that
   * fails rolls back what came before it.
   */
  transaction(...calls: readonly PostgresCall<Rows>[]): PostgresCall<readonly Rows[]> {
    if (calls.length === 0 || calls.length > STATEMENTS_MAX)
      throw new RangeError(`a transaction has 1 to ${STATEMENTS_MAX} statements`);
    if (calls.some(({ command }) => command.transaction))
      throw new TypeError("a transaction takes statements, no transactions");
    const statements = calls.flatMap(({ command }) => command.statements);
    const command = { statements, transaction: true };
    return new PostgresCall(this.#target, command, "transaction", (results) => results);
  }

  ping(): PostgresCall<string> {
    const command = { statements: [{ text: "select 1", values: NONE }], transaction: false };
    return new PostgresCall(this.#target, command, "select 1", () => "answers");
  }

  #one(statement: Statement): PostgresCall<Rows> {
    const title = statement.name ?? titleOf(statement.text);
    const command = { statements: [statement], transaction: false };
    return new PostgresCall(this.#target, command, title, ([rows]) => rows ?? NO_ROWS);
  }
}

const NO_ROWS: Rows = { rows: [], rowCount: 0 };

function checkedText(text: unknown): string {
  if (typeof text === "string" && text.trim() !== "") return text;
  throw new TypeError('a statement is a text: query("select * from items where id = $1", [7])');
}

/** "select * from": without what differs from call to call. */
function titleOf(text: string): string {
  return text.trim().split(/\s+/, TITLE_WORDS).join(" ").toLowerCase();
}

function loginOf(url: URL, options: PostgresOptions): PostgresLogin {
  const user = options.user ?? decodeURIComponent(url.username);
  const mode = url.searchParams.get("sslmode") ?? "disable";
  if (!["disable", "require", "verify-full"].includes(mode))
    throw new TypeError(`sslmode=${mode} is not known: disable, require or verify-full`);
  if (user === "") throw new TypeError("postgres.target: the address names no user");
  const database = options.database ?? decodeURIComponent(url.pathname.replace(/^\//, ""));
  return {
    user,
    password: options.password ?? decodeURIComponent(url.password),
    database: database === "" ? user : database,
    tls: options.tls ?? mode !== "disable",
  };
}
