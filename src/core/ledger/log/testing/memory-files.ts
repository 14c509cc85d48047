/** The file port in memory; never fails by itself. Operations happen when they are requested. */

import { assert } from "../../../base/assert.ts";
import {
  FILE_DONE,
  type FileEffect,
  type FileOperation,
  type FileResult,
  type FileWork,
} from "../files.ts";

export class MemoryFiles {
  readonly files = new Map<string, Uint8Array>();
  /** Every operation, in order. */
  readonly log: FileOperation[] = [];
  /** Called before each operation: an error code makes it fail. */
  fault: (operation: FileOperation) => string | null = () => null;

  perform(operation: FileOperation): FileResult {
    this.log.push(operation);
    const code = this.fault(operation);
    if (code !== null) return { ok: false, code, message: `${code}: injected` };
    switch (operation.kind) {
      case "list":
        return { ok: true, bytes: 0, files: this.#list(operation.directory) };
      case "read": {
        const { path, offset, into } = operation;
        const part = this.#file(path).subarray(offset, offset + into.length);
        into.set(part);
        return { ok: true, bytes: part.length, files: [] };
      }
      case "create":
        this.files.set(operation.path, new Uint8Array(operation.bytes));
        return FILE_DONE;
      case "write": {
        let at = operation.offset;
        for (const chunk of operation.chunks) {
          this.#resize(
            operation.path,
            Math.max(this.#file(operation.path).length, at + chunk.length),
          );
          this.#file(operation.path).set(chunk, at);
          at += chunk.length;
        }
        return { ok: true, bytes: at - operation.offset, files: [] };
      }
      case "resize":
        this.#resize(operation.path, operation.bytes);
        return FILE_DONE;
      case "rename":
        this.files.set(operation.to, this.#file(operation.from));
        this.files.delete(operation.from);
        return FILE_DONE;
      case "remove":
        this.files.delete(operation.path);
        return FILE_DONE;
      default:
        return FILE_DONE;
    }
  }

  /** File work that belongs to no machine. */
  carryOut<Value>(work: FileWork<Value>): Value {
    let next = work.next(FILE_DONE);
    while (next.done !== true) {
      const request = next.value;
      const waits = request.kind === "turn" || request.kind === "until";
      next = work.next(waits ? FILE_DONE : this.perform(request));
    }
    return next.value;
  }

  #list(directory: string): { readonly name: string; readonly bytes: number }[] {
    const prefix = directory === "" ? "" : `${directory}/`;
    return [...this.files]
      .filter(([path]) => path.startsWith(prefix))
      .map(([path, { length }]) => ({ name: path.slice(prefix.length), bytes: length }));
  }

  #resize(path: string, bytes: number): void {
    const before = this.#file(path);
    if (before.length === bytes) return;
    const after = new Uint8Array(bytes);
    after.set(before.subarray(0, bytes));
    this.files.set(path, after);
  }

  #file(path: string): Uint8Array {
    const file = this.files.get(path);
    assert(file !== undefined, `there is a file ${path}`);
    return file;
  }
}

interface Steps<Input, Effect> {
  step(
    input: Input | { kind: "done"; id: number; result: FileResult } | { kind: "turn" },
    now: never,
  ): readonly Effect[];
  readonly wantsTurn: boolean;
}

/** Steps a machine and carries out its operations until it wants nothing more; its events. */
export function settle<Input, Effect extends { readonly kind: string }>(
  machine: Steps<Input, FileEffect | Effect>,
  files: MemoryFiles,
  input: Input,
  now: number,
  onEvent: (event: Effect) => void = () => {},
): Effect[] {
  const events: Effect[] = [];
  const pending: FileEffect[] = [];
  const take = (effects: readonly (FileEffect | Effect)[]): void => {
    for (const effect of effects) {
      if (effect.kind === "file") pending.push(effect as FileEffect);
      else events.push(effect as Effect);
    }
    for (const effect of effects) if (effect.kind !== "file") onEvent(effect as Effect);
  };
  take(machine.step(input, now as never));
  for (;;) {
    const next = pending.shift();
    if (next !== undefined) {
      const result = files.perform(next.operation);
      take(machine.step({ kind: "done", id: next.id, result }, now as never));
    } else if (machine.wantsTurn) take(machine.step({ kind: "turn" }, now as never));
    else return events;
  }
}
