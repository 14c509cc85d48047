/** Streams and a host for tests: a terminal emulator that shows what was written, and manual time. */

import headless from "@xterm/headless";
import type { Host, InputStream, OutputStream } from "../ports.ts";

type Listener = (error?: Error) => void;

/** A terminal that records every byte; `screen()` is what a person would see. */
export class TestTerminal implements OutputStream {
  readonly isTTY = true;
  columns: number;
  rows: number;
  /** Return value of write(): false is a terminal that is behind. */
  accepting = true;
  written = "";
  readonly #emulator;
  readonly #listeners = new Map<string, Set<Listener>>();

  constructor(columns: number, rows: number) {
    this.columns = columns;
    this.rows = rows;
    this.#emulator = new headless.Terminal({
      cols: columns || 80,
      rows: rows || 24,
      allowProposedApi: true,
      convertEol: true,
    });
  }

  write(text: string): boolean {
    this.written += text;
    this.#emulator.write(text);
    return this.accepting;
  }

  on(event: string, listener: Listener): void {
    const known = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, known.add(listener));
  }

  off(event: string, listener: Listener): void {
    this.#listeners.get(event)?.delete(listener);
  }

  emit(event: "resize" | "drain" | "error"): void {
    for (const listener of this.#listeners.get(event) ?? []) listener();
  }

  listenerCount(): number {
    return [...this.#listeners.values()].reduce((sum, { size }) => sum + size, 0);
  }

  resize(columns: number, rows: number): void {
    this.columns = columns;
    this.rows = rows;
    this.#emulator.resize(columns, rows);
    this.emit("resize");
  }

  /** The visible rows, without trailing blanks. */
  async screen(): Promise<string[]> {
    await new Promise<void>((resolve) => this.#emulator.write("", resolve));
    const { active } = this.#emulator.buffer;
    return Array.from(
      { length: this.rows },
      (_, row) =>
        active
          .getLine(active.baseY + row)
          ?.translateToString(true)
          .trimEnd() ?? "",
    );
  }

  get alternate(): boolean {
    return this.#emulator.buffer.active.type === "alternate";
  }
}

export class TestKeyboard implements InputStream {
  readonly isTTY = true;
  raw = false;
  flowing = false;
  #listener: ((chunk: string) => void) | null = null;

  setRawMode(raw: boolean): void {
    this.raw = raw;
  }

  on(_event: "data", listener: (chunk: string) => void): void {
    this.#listener = listener;
  }

  off(): void {
    this.#listener = null;
  }

  resume(): void {
    this.flowing = true;
  }

  pause(): void {
    this.flowing = false;
  }

  type(keys: string): void {
    this.#listener?.(keys);
  }
}

/** Time moves only in advance(). */
export class TestHost implements Host {
  time = 0;
  interrupts = 0;
  readonly exitTasks = new Set<() => void>();
  readonly continueTasks = new Set<() => void>();
  #timers: { readonly at: number; readonly task: () => void }[] = [];

  now(): number {
    return this.time;
  }

  after(delayMs: number, task: () => void): () => void {
    const timer = { at: this.time + delayMs, task };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  interrupt(): void {
    this.interrupts += 1;
  }

  onExit(task: () => void): () => void {
    this.exitTasks.add(task);
    return () => this.exitTasks.delete(task);
  }

  onContinue(task: () => void): () => void {
    this.continueTasks.add(task);
    return () => this.continueTasks.delete(task);
  }

  get pending(): number {
    return this.#timers.length;
  }

  advance(ms: number): void {
    const until = this.time + ms;
    for (;;) {
      const due = this.#timers.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== due);
      this.time = Math.max(this.time, due.at);
      due.task();
    }
    this.time = until;
  }
}
