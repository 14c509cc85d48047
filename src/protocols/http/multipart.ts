/**
 * Encodes forms as browsers do: multipart/form-data (RFC 7578, with the escapes of the WHATWG form algorithm, which
 * every server reads) when a file is among the values, else urlencoded.
 */

import { randomBytes } from "node:crypto";
import { BlobSource, type BodyContent, isSource, JoinedSource } from "./body-source.ts";

/** One value of a form: text, or a file with its name and type. */
export interface FormEntry {
  readonly name: string;
  readonly value: string | FormFile;
}

export interface FormFile {
  readonly fileName: string;
  readonly contentType: string;
  readonly content: BodyContent;
}

export interface EncodedBody {
  readonly content: BodyContent;
  readonly contentType: string;
}

export function encodeForm(entries: readonly FormEntry[]): EncodedBody {
  return entries.some(({ value }) => typeof value !== "string")
    ? multipart(entries)
    : urlencoded(entries);
}

function urlencoded(entries: readonly FormEntry[]): EncodedBody {
  const search = new URLSearchParams();
  for (const { name, value } of entries) search.append(name, String(value));
  return {
    content: Buffer.from(search.toString()),
    contentType: "application/x-www-form-urlencoded",
  };
}

export function multipart(entries: readonly FormEntry[]): EncodedBody {
  // 128 random bits do not occur in content by chance, and authors of the content cannot predict them.
  const boundary = `hyperscale-${randomBytes(16).toString("hex")}`;
  const parts: BodyContent[] = [];
  for (const { name, value } of entries) {
    const field = escaped(withLineEnds(name));
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="${field}"`;
    if (typeof value === "string") {
      parts.push(Buffer.from(`${head}\r\n\r\n${withLineEnds(value)}\r\n`));
      continue;
    }
    const fileName = escaped(value.fileName);
    const type = value.contentType === "" ? "application/octet-stream" : value.contentType;
    parts.push(Buffer.from(`${head}; filename="${fileName}"\r\ncontent-type: ${type}\r\n\r\n`));
    parts.push(value.content, LINE_END);
  }
  parts.push(Buffer.from(`--${boundary}--\r\n`));
  const buffers = parts.filter((part): part is Buffer => !isSource(part));
  return {
    content: buffers.length === parts.length ? Buffer.concat(buffers) : new JoinedSource(parts),
    contentType: `multipart/form-data; boundary=${boundary}`,
  };
}

const LINE_END = Buffer.from("\r\n");

/** Returns the entries of a FormData; its files are Blobs with a name. */
export function entriesOf(form: FormData): FormEntry[] {
  const entries: FormEntry[] = [];
  for (const [name, value] of form) {
    entries.push({ name, value: typeof value === "string" ? value : fileOf(value) });
  }
  return entries;
}

/** A Blob without a name is called "blob", as in browsers. */
export function fileOf(blob: Blob): FormFile {
  const name = "name" in blob && typeof blob.name === "string" ? blob.name : "blob";
  return { fileName: name, contentType: blob.type, content: new BlobSource(blob) };
}

/** Converts lone line breaks to CRLF, as the form algorithm requires for names and texts. */
function withLineEnds(text: string): string {
  return text.replace(/\r?\n|\r/g, "\r\n");
}

/** Escapes quotes and line breaks, which would end the header. */
function escaped(text: string): string {
  return text.replaceAll("\n", "%0A").replaceAll("\r", "%0D").replaceAll('"', "%22");
}
