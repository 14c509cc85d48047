/**
 * Lifecycle of a process that serves: agent, ledger node, queue node.
 *
 *     starting ── serve() ──► serving ── stop(why) ──► stopping ──► exit 0
 *         │                      │  └── SIGHUP: reload     │ late or failed: exit 1
 *         │ failed(): exit 1     │ fatal(): exit 70        │ second stop: exit 130
 *
 * The last lines get a chance to reach their reader; a process never waits longer than its deadline for its own end. An
 * uncaught error is fatal: what it left half done is unknown.
 */

import { errorText } from "../../core/base/error-text.ts";
import { Background } from "../background.ts";
import { EXIT_DEFECT, EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_PASSED } from "../exit-codes.ts";
import type { AuditRequester } from "../ports/audit.ts";
import type { Log, LogThreshold } from "../ports/log.ts";
import { JsonLog, type LineSink } from "./json-log.ts";
import { Descriptor, LineWriter } from "./line-writer.ts";
import { TerminalLog } from "./terminal-log.ts";

const STDOUT = 1;
const STDERR = 2;
/** How long the last lines may wait for their reader. */
const LAST_LINES_MS_MAX = 300;
/** Time for background work to end once the service has stopped. */
const BACKGROUND_MS_MAX = 1_000;

export interface Lines extends LineSink {
  /** Resolves when everything has been written, or after `msMax`. */
  drained(msMax: number): Promise<void>;
}

export interface ServiceOptions {
  /** "agent", "ledger", "queue": the first part of the events in the log. */
  readonly service: string;
  readonly node: string;
  readonly logLevel: LogThreshold;
  /** Sink of log lines; stderr when undefined. */
  readonly logLines?: Lines | undefined;
  /** Whether a person reads the log at a terminal: lines are text then, not JSON. */
  readonly isTerminal?: boolean;
  /** Whether an uncaught error concerns only one task; the process then goes on. */
  readonly contains?: (error: unknown) => boolean;
  /** Ends the process; replaced in tests. */
  readonly exit?: (code: number) => void;
}

export interface Serving {
  /** Stops the service for a requester; fields of the answer are part of the last line. */
  readonly stop: (requester: AuditRequester) => Promise<object | undefined>;
  /** A stop that takes longer is cut short. */
  readonly stopMsMax: number;
  /** SIGHUP; without it SIGHUP stops, as a closed terminal should. */
  readonly reload?: (requester: AuditRequester) => void;
}

export class ServiceProcess {
  readonly log: Log;
  readonly background: Background;
  readonly #service: string;
  readonly #out = new LineWriter(new Descriptor(STDOUT));
  readonly #errors = new LineWriter(new Descriptor(STDERR));
  readonly #logLines: Lines;
  readonly #exit: (code: number) => void;
  #serving: Serving | null = null;
  #stopping = false;
  #ending = false;

  constructor(options: ServiceOptions) {
    const { service, node, logLevel, logLines, contains, exit } = options;
    this.#service = service;
    this.#logLines = logLines ?? this.#errors;
    this.#exit = exit ?? ((code) => process.exit(code));
    const lines = options.isTerminal === true ? new TerminalLog(this.#logLines) : this.#logLines;
    this.log = new JsonLog(logLevel, { node }, lines);
    this.background = new Background((work, error) => {
      this.log.event("error", "work.failed", { work, problem: errorText(error) });
    });
    const uncaught = (reason: string) => (error: unknown) => {
      if (contains?.(error) === true)
        this.log.event("error", `${service}.contained`, { reason, problem: errorText(error) });
      else this.fatal(reason, error);
    };
    process.on("uncaughtException", uncaught("an error nobody expected"));
    process.on("unhandledRejection", uncaught("a promise nobody owned"));
  }

  /** Writes one JSON line to stdout, for tools. */
  say(event: object): void {
    this.#out.write(`${JSON.stringify(event)}\n`);
  }

  /** Writes one line to stdout, for a person at a terminal. */
  greet(text: string): void {
    this.#out.write(`${text}\n`);
  }

  /** From here on the process ends gracefully; everything before survives being cut off. */
  serve(serving: Serving): void {
    this.#serving = serving;
  }

  /** The first call ends gracefully, the second at once. Without a requester `why` names the signal. */
  stop(why: string, requester: AuditRequester = bySystem(why)): void {
    const serving = this.#serving;
    if (serving === null || this.#stopping) {
      this.#exit(EXIT_INTERRUPTED);
      return;
    }
    this.#stopping = true;
    this.log.event("info", `${this.#service}.stopping`, { why });
    this.#stop(requester, serving);
  }

  reload(): void {
    const { reload } = this.#serving ?? {};
    if (reload === undefined) {
      this.stop("SIGHUP");
      return;
    }
    try {
      reload(bySystem("SIGHUP"));
    } catch (error) {
      // Keeps the keys in use: a typing mistake in a file must not cut a node off.
      this.log.event("error", "keys.notReloaded", { problem: errorText(error) });
    }
  }

  /** The process cannot go on: an invariant broke or the disk failed. */
  fatal(reason: string, error: unknown): void {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.log.event("error", `${this.#service}.fatal`, { reason, detail });
    this.#end(EXIT_DEFECT);
  }

  /** Reports a failed start: one line for people. */
  failed(command: string, problem: string, code: number = EXIT_FAILURE): void {
    this.#errors.write(`hyperscale ${command}: ${problem}\n`);
    this.#end(code);
  }

  #stop(requester: AuditRequester, serving: Serving): void {
    const late = setTimeout(() => {
      this.log.event("error", `${this.#service}.stopLate`, { msMax: serving.stopMsMax });
      this.#end(EXIT_FAILURE);
    }, serving.stopMsMax);
    this.#stopped(requester, serving).then(
      () => this.#end(EXIT_PASSED),
      (error: unknown) => {
        this.log.event("error", `${this.#service}.stopFailed`, { problem: errorText(error) });
        this.#end(EXIT_FAILURE);
      },
    );
    late.unref();
  }

  async #stopped(requester: AuditRequester, serving: Serving): Promise<void> {
    const last = await serving.stop(requester);
    const left = await this.background.stop(BACKGROUND_MS_MAX);
    if (left.length > 0) this.log.event("warn", "work.left", { left });
    if (last !== undefined) this.say({ event: "stopped", ...last });
    this.log.event("info", `${this.#service}.stopped`, {});
  }

  /** Only the first reason counts: later failures are consequences. */
  #end(code: number): void {
    if (this.#ending) return;
    this.#ending = true;
    const writers = [this.#out, this.#errors, this.#logLines];
    const end = (): void => this.#exit(code);
    Promise.all(writers.map((writer) => writer.drained(LAST_LINES_MS_MAX))).then(end, end);
  }
}

function bySystem(name: string): AuditRequester {
  return { kind: "system", name };
}

/** Signals become calls; in a process whose node runs in a thread they become messages to it. */
export function onSignals(target: { stop(why: string): void; reload(): void }): void {
  process.on("SIGTERM", () => target.stop("SIGTERM"));
  process.on("SIGINT", () => target.stop("SIGINT"));
  process.on("SIGHUP", () => target.reload());
}

/** Why a service did not start, and what to do about it; `see` names the settings of its addresses. */
export function startProblem(error: unknown, see: string): string {
  if (!(error instanceof Error)) return String(error);
  const { code, address, port } = error as NodeJS.ErrnoException & {
    address?: string;
    port?: number;
  };
  switch (code) {
    case "EADDRINUSE":
      return `${address}:${port} is taken: is this node running already? See ${see}`;
    case "EADDRNOTAVAIL":
      return `${address}:${port} is not an address of this machine; see ${see}`;
    case "EACCES":
    case "EROFS":
      return `${error.message}; no right to use it`;
    default:
      return error.message;
  }
}
