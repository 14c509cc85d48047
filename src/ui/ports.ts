/**
 * The world as the views see it: streams, a clock, timers and the process, all given from outside so
 * that tests run on their own time. `nodeHost` is the real one.
 */

import type { Environment } from "./style.ts";

export interface OutputStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): boolean;
  on(event: "resize" | "drain" | "error", listener: (error?: Error) => void): unknown;
  off(event: "resize" | "drain" | "error", listener: (error?: Error) => void): unknown;
}

export interface InputStream {
  readonly isTTY?: boolean;
  setRawMode?(raw: boolean): unknown;
  on(event: "data", listener: (chunk: Uint8Array | string) => void): unknown;
  off(event: "data", listener: (chunk: Uint8Array | string) => void): unknown;
  resume(): unknown;
  pause(): unknown;
  unref?(): unknown;
}

export interface Host {
  /** Milliseconds on a clock that only goes forward. */
  now(): number;
  /** Runs `task` once; the answer cancels it. Never keeps the process alive. */
  after(delayMs: number, task: () => void): () => void;
  /** Ctrl-C while the terminal is raw. */
  interrupt(): void;
  /** Last resort: called when the process ends without finish(). The answer takes it back. */
  onExit(task: () => void): () => void;
  /** The process was stopped and goes on: the terminal holds something else now. */
  onContinue(task: () => void): () => void;
}

/** Whether the report is shown in a browser when the run is over; a key changes it meanwhile. */
export interface ReportWish {
  isWanted: boolean;
  /** Why no browser can be opened here; null when one can. */
  readonly problem: string | null;
}

export interface ViewOptions {
  readonly mode: "auto" | "full" | "ci" | "json" | "none";
  readonly stdout: OutputStream;
  readonly stdin: InputStream;
  readonly env: Environment;
  /** None: there will be no report, and no key asks for it. */
  readonly report?: ReportWish;
  readonly host?: Host;
}

export const nodeHost: Host = {
  now: () => performance.now(),
  after(delayMs, task) {
    const timer = setTimeout(task, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
  // The same road as a signal from outside, so that there is one way of being interrupted.
  interrupt: () => process.kill(process.pid, "SIGINT"),
  onExit(task) {
    process.on("exit", task);
    return () => process.off("exit", task);
  },
  onContinue(task) {
    // Windows knows no such signal and refuses the listener.
    if (process.platform === "win32") return () => {};
    process.on("SIGCONT", task);
    return () => process.off("SIGCONT", task);
  },
};
