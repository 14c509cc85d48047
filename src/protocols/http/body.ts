/** Encodes `body`, `json` and `form` of a request: bytes or a source of them, and their content type. */

import { BlobSource, StreamSource } from "./body-source.ts";
import { FilePart } from "./file-part.ts";
import {
  type EncodedBody,
  encodeForm,
  entriesOf,
  type FormEntry,
  fileOf,
  multipart,
} from "./multipart.ts";
import { isPlainObject, jsonText, nameOf, type PlainObject } from "./plain-data.ts";

/**
 * Text, bytes, files, forms and streams are sent unchanged; plain objects and arrays become JSON. Each has its matching
 * content type.
 */
export type BodyValue =
  | string
  | ArrayBuffer
  | ArrayBufferView
  | Blob
  | FormData
  | URLSearchParams
  | ReadableStream
  | AsyncIterable<Uint8Array | string>
  | PlainObject;

/** Undefined values are omitted; lists become one field per item. */
export type FormValues = Readonly<Record<string, FormValue | readonly FormValue[]>>;
type FormValue = string | number | boolean | Blob | FilePart | undefined;

const JSON_TYPE = "application/json";
const BYTES_TYPE = "application/octet-stream";

export function encodeJson(value: unknown, path: string): EncodedBody {
  return { content: Buffer.from(jsonText(value, path)), contentType: JSON_TYPE };
}

/** Throws, naming the value, for anything that cannot be sent. */
export function encodeBody(value: BodyValue): EncodedBody {
  if (typeof value === "string") {
    return { content: Buffer.from(value), contentType: "text/plain; charset=utf-8" };
  }
  if (typeof value !== "object" || value === null) {
    const hint = typeof value === "function" ? "call it" : "write json, or make it a text";
    throw new TypeError(`body is ${nameOf(value)}, which cannot be sent: ${hint}`);
  }
  if (ArrayBuffer.isView(value)) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    return { content: bytes, contentType: BYTES_TYPE };
  }
  if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) {
    return { content: Buffer.from(value), contentType: BYTES_TYPE };
  }
  if (Array.isArray(value) || isPlainObject(value)) {
    return isStream(value) ? streamed(value) : encodeJson(value, "body");
  }
  if (value instanceof URLSearchParams) {
    return {
      content: Buffer.from(value.toString()),
      contentType: "application/x-www-form-urlencoded",
    };
  }
  if (value instanceof FormData) return multipart(entriesOf(value));
  if (value instanceof Blob) return { content: new BlobSource(value), contentType: value.type };
  if (isStream(value)) return streamed(value);
  return encodeJson(value, "body");
}

function isStream(value: object): value is AsyncIterable<unknown> {
  return Symbol.asyncIterator in value;
}

function streamed(value: AsyncIterable<unknown>): EncodedBody {
  return { content: new StreamSource(value), contentType: BYTES_TYPE };
}

export function encodeFormValues(values: FormValues): EncodedBody {
  if (typeof values !== "object" || values === null || !isPlainObject(values)) {
    throw new TypeError(
      `form is ${nameOf(values)}: write { field: value }, or give a ready one as body`,
    );
  }
  const entries: FormEntry[] = [];
  for (const [name, value] of Object.entries(values)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined) entries.push({ name, value: formValue(item, `form.${name}`) });
    }
  }
  return encodeForm(entries);
}

function formValue(value: unknown, path: string): FormEntry["value"] {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (value instanceof FilePart) return value;
  if (value instanceof Blob) return fileOf(value);
  throw new TypeError(
    `${path} is ${nameOf(value)}: a field is text, a number, true or false, a file(…) or a Blob`,
  );
}
