/**
 * Environment of the views: streams, a clock, timers and the process, all injected so that tests run on their own time.
 * `nodeHost` is the real one.
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
  /** Runs `task` once; returns a function that cancels it. Never keeps the process alive. */
  after(delayMs: number, task: () => void): () => void;
  /** Ctrl-C while the terminal is raw. */
  interrupt(): void;
  /** Last resort: called when the process ends without finish(). Returns a function that unregisters it. */
  onExit(task: () => void): () => void;
  /** The process was stopped and continued: the terminal shows something else now. */
  onContinue(task: () => void): () => void;
}

/** Whether the report is opened in a browser when the run has finished; a key changes it meanwhile. */
export interface ReportOpening {
  isWanted: boolean;
  /** Why no browser can be opened here; null when one can. */
  readonly problem: string | null;
}

export interface ViewOptions {
  readonly mode: "auto" | "full" | "ci" | "json" | "none";
  readonly stdout: OutputStream;
  readonly stdin: InputStream;
  readonly env: Environment;
  /** None: there will be no report, and no key for it. */
  readonly report?: ReportOpening;
  readonly host?: Host;
}

export const nodeHost: Host = {
  now: () => performance.now(),
  after(delayMs, task) {
    const timer = setTimeout(task, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
  // The same path as a signal from outside, so that there is one way of being interrupted.
  interrupt: () => process.kill(process.pid, "SIGINT"),
  onExit(task) {
    process.on("exit", task);
    return () => process.off("exit", task);
  },
  onContinue(task) {
    // Windows has no such signal and rejects the listener.
    if (process.platform === "win32") return () => {};
    process.on("SIGCONT", task);
    return () => process.off("SIGCONT", task);
  },
};
