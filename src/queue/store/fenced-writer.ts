/**
 * Writes of one leadership. Every statement carries the epoch and is void in the database once a newer leader has
 * begun, so a paused leader's write fails instead of taking effect. (TQ-12)
 *
 * A database that does not answer is retried until this leadership ends: every statement is either repeatable as it is
 * or its caller checks the outcome (`repeated`).
 */

import { DatabaseUnavailable, QueueError } from "../../core/queue/errors.ts";
import type { Background } from "../../host/background.ts";
import type { Log } from "../../host/ports/log.ts";
import type { ConnectionName, Database, Row } from "./database.ts";

const RETRY_MS_FIRST = 50;
const RETRY_MS_MAX = 1_000;

interface Written {
  readonly row: Row;
  /** The statement was sent more than once: an earlier attempt may have taken effect. */
  readonly repeated: boolean;
}

export class FencedWriter {
  readonly epoch: number;
  readonly background: Background;
  readonly #database: Database;
  readonly #run: string;
  readonly #log: Log;
  readonly #onFenced: () => void;
  #ended = false;

  constructor(options: {
    readonly database: Database;
    readonly epoch: number;
    readonly run: string;
    readonly log: Log;
    readonly background: Background;
    readonly onFenced: () => void;
  }) {
    this.epoch = options.epoch;
    this.background = options.background;
    this.#database = options.database;
    this.#run = options.run;
    this.#log = options.log;
    this.#onFenced = options.onFenced;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Ends writing. */
  end(): void {
    this.#ended = true;
  }

  /** One attempt. Throws `DatabaseUnavailable` when the outcome is unknown. */
  async once(
    connection: ConnectionName,
    statement: string,
    parameters: readonly unknown[],
  ): Promise<Row> {
    if (this.#ended) throw notLeader();
    const rows = await this.#database.query(
      statement,
      [this.epoch, this.#run, ...parameters],
      connection,
    );
    const row = rows[0];
    if (row === undefined || Number(row["guarded"]) === 0) {
      this.#ended = true;
      this.#log.event("warn", "leader.fenced", { epoch: this.epoch, statement });
      this.#onFenced();
      throw notLeader();
    }
    return row;
  }

  /** Retries until the database answers or the leadership ends. */
  async write(
    connection: ConnectionName,
    statement: string,
    parameters: readonly unknown[],
  ): Promise<Written> {
    for (let attempt = 0; ; attempt++) {
      try {
        return { row: await this.once(connection, statement, parameters), repeated: attempt > 0 };
      } catch (error) {
        if (!(error instanceof DatabaseUnavailable)) throw error;
        await this.pause(statement, attempt, error);
      }
    }
  }

  /** Reads that belong to a write: retried in the same way. */
  async read(
    statement: string,
    parameters: readonly unknown[],
    connection?: ConnectionName,
  ): Promise<readonly Row[]> {
    for (let attempt = 0; ; attempt++) {
      if (this.#ended) throw notLeader();
      try {
        return await this.#database.query(statement, parameters, connection);
      } catch (error) {
        if (!(error instanceof DatabaseUnavailable)) throw error;
        await this.pause(statement, attempt, error);
      }
    }
  }

  async pause(statement: string, attempt: number, error: Error): Promise<void> {
    this.#log.event(attempt === 0 ? "warn" : "debug", "database.unavailable", {
      statement,
      attempt,
      reason: error.message,
    });
    await this.background.pause(Math.min(RETRY_MS_MAX, RETRY_MS_FIRST * 2 ** attempt));
  }
}

export function notLeader(): QueueError {
  return new QueueError("NOT_LEADER", "this node no longer leads; the new leader will answer");
}
