/**
 * llhttp, the parser of Node and undici, as the oracle: its WebAssembly build is extracted from the undici package and
 * driven byte for byte like ours.
 */

import { createRequire } from "node:module";
import type { AnswerRead } from "./read-answer.ts";

const PAUSED = 21;

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  llhttp_alloc(type: number): number;
  llhttp_free(parser: number): void;
  llhttp_execute(parser: number, data: number, length: number): number;
  llhttp_finish(parser: number): number;
  llhttp_get_error_pos(parser: number): number;
  llhttp_get_error_reason(parser: number): number;
  malloc(size: number): number;
  free(pointer: number): void;
}

/** The required part of WebAssembly, which Node's types leave to those of the browser. */
interface WebAssemblyHost {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
}

/** State of one parse, filled by the callbacks below. */
const seen = { toHead: false, status: 0, keepAlive: false, complete: false, body: [] as Buffer[] };

const RESPONSE = 2;
const env = {
  wasm_on_url: () => 0,
  wasm_on_status: () => 0,
  wasm_on_message_begin: () => 0,
  wasm_on_header_field: () => 0,
  wasm_on_header_value: () => 0,
  wasm_on_headers_complete: (_parser: number, status: number, _upgrade: number, keep: number) => {
    seen.status = status;
    seen.keepAlive = keep === 1;
    return seen.toHead || status < 200 ? 1 : 0;
  },
  wasm_on_body: (_parser: number, at: number, length: number) => {
    seen.body.push(Buffer.from(llhttp.memory.buffer.slice(at, at + length)));
    return 0;
  },
  wasm_on_message_complete: () => {
    if (seen.status < 200) return 0;
    seen.complete = true;
    return PAUSED;
  },
};

const llhttp = load();

function load(): Exports {
  const bytes: unknown = createRequire(import.meta.url)("undici/lib/llhttp/llhttp-wasm.js");
  if (!Buffer.isBuffer(bytes)) throw new Error("undici does not hold llhttp where it used to");
  const host = (globalThis as unknown as { readonly WebAssembly: WebAssemblyHost }).WebAssembly;
  const instance = new host.Instance(new host.Module(bytes), { env });
  return instance.exports as Exports;
}

/** Parses one response with llhttp; the connection closes after the last piece. */
export function readWithLlhttp(pieces: readonly Buffer[], toHead: boolean): AnswerRead {
  Object.assign(seen, { toHead, status: 0, keepAlive: false, complete: false, body: [] });
  const parser = llhttp.llhttp_alloc(RESPONSE);
  let before = 0;
  try {
    for (const piece of pieces) {
      const data = llhttp.malloc(Math.max(piece.length, 1));
      new Uint8Array(llhttp.memory.buffer, data, piece.length).set(piece);
      const code = llhttp.llhttp_execute(parser, data, piece.length);
      const at = llhttp.llhttp_get_error_pos(parser) - data;
      llhttp.free(data);
      if (seen.complete) return result("complete", before + at, null);
      if (code !== 0) return result("broken", 0, reason(parser));
      before += piece.length;
    }
    const code = llhttp.llhttp_finish(parser);
    if (seen.complete) return result("complete", before, null);
    return result("incomplete", 0, code === 0 ? null : reason(parser));
  } finally {
    llhttp.llhttp_free(parser);
  }
}

function reason(parser: number): string {
  const at = llhttp.llhttp_get_error_reason(parser);
  const memory = Buffer.from(llhttp.memory.buffer);
  return at === 0 ? "" : memory.toString("latin1", at, memory.indexOf(0, at));
}

function result(end: AnswerRead["end"], taken: number, problem: string | null): AnswerRead {
  const complete = end === "complete";
  return {
    end,
    status: complete ? seen.status : 0,
    body: complete ? Buffer.concat(seen.body).toString("latin1") : "",
    keepAlive: complete && seen.keepAlive,
    taken,
    problem,
  };
}
