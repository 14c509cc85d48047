/** An executor core as a child process: commands in, events out, and a report of its death. */

import { type ChildProcess, fork } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { CoreCommand, CoreEvent } from "../core/load/job/core-messages.ts";

/** User to run as, other than that of this process, with their environment, and process group. */
export interface SpawnAs {
  readonly uid?: number;
  readonly gid?: number;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Leads a process group: programs that its code started are killed with it. */
  readonly detached?: boolean;
}

interface CoreProcessOptions {
  readonly number: number;
  /** User that its code runs as. */
  readonly as?: SpawnAs;
  /** Opens a debugger port without waiting for a debugger. */
  readonly inspect: boolean;
  readonly onEvent: (event: CoreEvent) => void;
  /** Called once, when the process exits unexpectedly. */
  readonly onLost: (what: string) => void;
}

/** Grace period before a core that does not exit is killed. */
const EXIT_GRACE_MS = 500;

export class CoreProcess {
  readonly number: number;
  readonly #child: ChildProcess;
  readonly #isLeader: boolean;
  #expected = false;
  #alive = true;
  /** End of its stderr, for the report of a crash. */
  #stderr = "";

  constructor(options: CoreProcessOptions) {
    this.number = options.number;
    this.#isLeader = options.as?.detached === true;
    this.#child = fork(coreEntry(), [], {
      ...options.as,
      serialization: "advanced",
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      execArgv: [
        "--enable-source-maps",
        // Larger young generation: short-lived response objects die there instead of being copied.
        "--max-semi-space-size=32",
        // The path of a call is long and made of small functions: allow more inlining.
        "--max-inlined-bytecode-size=900",
        "--max-inlined-bytecode-size-cumulative=2500",
        ...(options.inspect ? ["--inspect=0"] : []),
      ],
    });
    this.#child.on("message", (event) => options.onEvent(event as CoreEvent));
    this.#child.stdout?.on("data", (text) => this.#print(String(text), options));
    this.#child.stderr?.on("data", (text) => {
      this.#stderr = (this.#stderr + String(text)).slice(-2_000);
      if (options.inspect) this.#print(String(text), options);
    });
    this.#child.on("error", () => {});
    this.#child.on("exit", (code, signal) => {
      this.#alive = false;
      this.#killGroup();
      if (this.#expected) return;
      const how = signal === null ? `exit code ${code}` : signal;
      const words = lastLine(this.#stderr);
      options.onLost(`executor core ${this.number} (pid ${this.pid}) ended with ${how}${words}`);
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get alive(): boolean {
    return this.#alive;
  }

  send(command: CoreCommand): void {
    if (this.#alive && this.#child.connected) this.#child.send(command, () => {});
  }

  /** Kills an unresponsive process; its loss is reported like any other. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Terminates the process; resolves when it has exited. */
  end(): Promise<void> {
    this.#expected = true;
    if (!this.#alive) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.kill(), EXIT_GRACE_MS);
      this.#child.once("exit", () => {
        clearTimeout(timer);
        resolve();
      });
      this.send({ kind: "exit" });
    });
  }

  #killGroup(): void {
    if (!this.#isLeader || this.pid === 0) return;
    try {
      process.kill(-this.pid, "SIGKILL");
    } catch {
      // Nothing is left of it.
    }
  }

  #print(text: string, options: CoreProcessOptions): void {
    for (const line of text.split("\n"))
      if (line !== "") options.onEvent({ kind: "log", line, isComplaint: false });
  }
}

function lastLine(stderr: string): string {
  const line = stderr
    .split("\n")
    .filter((text) => text.trim() !== "")
    .at(-1);
  return line === undefined ? "" : `: ${line.trim()}`;
}

/** Path of the executor core's entry: beside us when built, in dist/ when tests run from source. */
export function coreEntry(): string {
  const here = fileURLToPath(new URL("./core-main.js", import.meta.url));
  return existsSync(here) ? here : here.replace(/\/src\/engine\//, "/dist/engine/");
}
