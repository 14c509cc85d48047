/**
 * A MySQL or MariaDB server as users write it.
 *
 *   const db = mysql.target("mysql://shop:secret@db.test/shop");
 *   const byId = "select * from items where id = ?";
 *   const found = await step("find", db.execute(byId, [7]));
 *   await step("order", db.transaction(db.query("insert …"), db.query("update …")));
 */

import type { CallRecord } from "../protocol.ts";
import { DescribedCall } from "../target/described-call.ts";
import { DriverConnection } from "../target/driver-connection.ts";
import type { Answer } from "../target/exchange.ts";
import { TargetResult } from "../target/result.ts";
import { Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import type { MysqlCommand, Rows, Statement } from "./command.ts";
import { MysqlDriver, type MysqlLogin, mysqlDriver } from "./connection.ts";

export interface MysqlOptions extends TargetOptions {
  /** Whom to log in as; the address's own by default. */
  readonly user?: string;
  readonly password?: string;
  /** The address's path by default. */
  readonly database?: string;
  /** Speak TLS; `?ssl-mode=REQUIRED` in the address does the same. */
  readonly tls?: boolean;
}

/** What a statement takes for its question marks. */
export type Parameters = readonly unknown[];

export class MysqlResponse<Value = Rows> extends TargetResult<Value> {
  override readonly protocol: string = "mysql";
}

/** A described statement, or a transaction of them. */
export class MysqlCall<Value> extends DescribedCall<MysqlCommand, MysqlResponse<Value>> {
  constructor(
    target: Target<MysqlCommand>,
    command: MysqlCommand,
    title: string,
    decode: (results: readonly Rows[]) => Value,
  ) {
    super(target, {
      command,
      title,
      shown: command.statements.map(({ text }) => text).join("; "),
      result: (record: CallRecord, answer: Answer) =>
        new MysqlResponse(record, answer, (value) => decode(value as readonly Rows[])),
    });
  }
}

export const MYSQL: TargetProtocol = {
  name: "mysql",
  schemes: {
    mysql: { port: 3306, secure: false },
    mariadb: { port: 3306, secure: false },
  },
  optionNames: ["user", "password", "database", "tls"],
  load: () => mysqlDriver.load(),
};

const STATEMENTS_MAX = 1_000;
const NONE: Parameters = [];
const TITLE_WORDS = 3;

export class MysqlTarget {
  readonly #target: Target<MysqlCommand>;

  constructor(address: string, options: MysqlOptions = {}) {
    this.#target = new Target(
      MYSQL,
      address,
      options,
      (host, now) => new DriverConnection(host, driver, now),
    );
    const driver = new MysqlDriver(loginOf(this.#target.url, options));
  }

  /**
   * One statement; `value` has its `rows`, `rowCount` and `insertId`. The values are written into the
   * text before it is sent.
   */
  query(text: string, values: Parameters = NONE): MysqlCall<Rows> {
    return this.#one({ text: checkedText(text), values, prepared: false });
  }

  /** The same as a prepared statement: each connection prepares a text once. */
  execute(text: string, values: Parameters = NONE): MysqlCall<Rows> {
    return this.#one({ text: checkedText(text), values: checkedValues(values), prepared: true });
  }

  /**
   * Several statements, all of them or none: one measured call until COMMIT. The first one that
   * fails rolls back what came before it.
   */
  transaction(...calls: readonly MysqlCall<Rows>[]): MysqlCall<readonly Rows[]> {
    if (calls.length === 0 || calls.length > STATEMENTS_MAX)
      throw new RangeError(`a transaction has 1 to ${STATEMENTS_MAX} statements`);
    if (calls.some(({ command }) => command.transaction))
      throw new TypeError("a transaction takes statements, no transactions");
    const statements = calls.flatMap(({ command }) => command.statements);
    const command = { statements, transaction: true };
    return new MysqlCall(this.#target, command, "transaction", (results) => results);
  }

  ping(): MysqlCall<string> {
    const statement = { text: "select 1", values: NONE, prepared: false };
    const command = { statements: [statement], transaction: false };
    return new MysqlCall(this.#target, command, "select 1", () => "answers");
  }

  #one(statement: Statement): MysqlCall<Rows> {
    const command = { statements: [statement], transaction: false };
    const title = titleOf(statement.text);
    return new MysqlCall(this.#target, command, title, ([rows]) => rows ?? NO_ROWS);
  }
}

const NO_ROWS: Rows = { rows: [], rowCount: 0, insertId: 0 };

function checkedText(text: unknown): string {
  if (typeof text === "string" && text.trim() !== "") return text;
  throw new TypeError('a statement is a text: query("select * from items where id = ?", [7])');
}

/** The binary protocol has no way to say undefined. */
function checkedValues(values: Parameters): Parameters {
  const at = values.findIndex((value) => value === undefined || typeof value === "function");
  if (at < 0) return values;
  throw new TypeError(`value ${at + 1} of a statement is ${typeof values[at]}: null says NULL`);
}

/** "select * from": without what differs from call to call. */
function titleOf(text: string): string {
  return text.trim().split(/\s+/, TITLE_WORDS).join(" ").toLowerCase();
}

const TLS_MODES = ["DISABLED", "REQUIRED", "VERIFY_IDENTITY"];

function loginOf(url: URL, options: MysqlOptions): MysqlLogin {
  const user = options.user ?? decodeURIComponent(url.username);
  const mode = url.searchParams.get("ssl-mode") ?? "DISABLED";
  if (!TLS_MODES.includes(mode))
    throw new TypeError(`ssl-mode=${mode} is not known: ${TLS_MODES.join(", ")}`);
  if (user === "") throw new TypeError("mysql.target: the address names no user");
  return {
    user,
    password: options.password ?? decodeURIComponent(url.password),
    database: options.database ?? decodeURIComponent(url.pathname.replace(/^\//, "")),
    tls: options.tls ?? mode !== "DISABLED",
  };
}
