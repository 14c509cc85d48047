/** DNS messages (RFC 1035): encodes queries and decodes responses into records. */

/** Record types that have a name here; others are queried as TYPE65 and returned as bytes. */
const TYPES: Readonly<Record<string, number>> = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  ANY: 255,
};

const TYPE_NAMES = new Map(Object.entries(TYPES).map(([name, number]) => [number, name]));
const CODES = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];
const HEADER_BYTES = 12;
/** Compression pointers followed within one name. */
const POINTERS_MAX = 32;
const NAME_BYTES_MAX = 255;

export interface DnsRecord {
  readonly name: string;
  readonly type: string;
  /** Seconds. */
  readonly ttl: number;
  /** Address or name as text, strings of TXT, fields of MX, SRV and SOA; bytes for other types. */
  readonly data: string | readonly string[] | Readonly<Record<string, string | number>> | Buffer;
}

export interface DnsAnswer {
  readonly answers: readonly DnsRecord[];
  readonly authoritative: boolean;
  /** The response did not fit; the full one is available over TCP. */
  readonly truncated: boolean;
}

interface DnsReply extends DnsAnswer {
  readonly id: number;
  readonly code: number;
}

export function codeName(code: number): string {
  return CODES[code] ?? `RCODE${code}`;
}

/** Encodes a query with message id 0; the sender sets its own. Throws for an invalid name or type. */
export function encodeQuery(name: string, type: string, recursive: boolean): Buffer {
  const number = TYPES[type] ?? Number(/^TYPE(\d{1,5})$/.exec(type)?.[1] ?? Number.NaN);
  if (!(number >= 0 && number < 65_536)) {
    const known = Object.keys(TYPES).join(", ");
    throw new TypeError(`${JSON.stringify(type)} is not a type: there are ${known}, and TYPE65`);
  }
  const labels = name === "." ? [] : name.replace(/\.$/, "").split(".").map(labelOf);
  const question = Buffer.concat([...labels, Buffer.of(0, number >> 8, number & 255, 0, 1)]);
  if (question.length - 4 > NAME_BYTES_MAX) throw new TypeError(`the name ${name} is too long`);
  const header = Buffer.of(0, 0, recursive ? 1 : 0, 0, 0, 1, 0, 0, 0, 0, 0, 0);
  return Buffer.concat([header, question]);
}

function labelOf(label: string): Buffer {
  const bytes = Buffer.from(label);
  if (bytes.length < 1 || bytes.length > 63)
    throw new TypeError(`${JSON.stringify(label)} is not part of a name`);
  return Buffer.concat([Buffer.of(bytes.length), bytes]);
}

/** Returns null for an incomplete or malformed response. Never throws. */
export function decodeReply(bytes: Buffer): DnsReply | null {
  if (bytes.length < HEADER_BYTES || ((bytes[2] ?? 0) & 0x80) === 0) return null;
  const [questions, records] = [bytes.readUInt16BE(4), bytes.readUInt16BE(6)];
  let at = HEADER_BYTES;
  for (let i = 0; i < questions; i++) {
    const name = readName(bytes, at);
    if (name === null || name.end + 4 > bytes.length) return null;
    at = name.end + 4;
  }
  const answers: DnsRecord[] = [];
  for (let i = 0; i < records; i++) {
    const found = readRecord(bytes, at);
    if (found === null) return null;
    answers.push(found.record);
    at = found.end;
  }
  const flags = bytes.readUInt16BE(2);
  return {
    id: bytes.readUInt16BE(0),
    code: flags & 15,
    answers,
    authoritative: (flags & 0x0400) !== 0,
    truncated: (flags & 0x0200) !== 0,
  };
}

interface Found<Value> {
  readonly value: Value;
  readonly end: number;
}

function readRecord(
  bytes: Buffer,
  from: number,
): { readonly record: DnsRecord; readonly end: number } | null {
  const name = readName(bytes, from);
  if (name === null || name.end + 10 > bytes.length) return null;
  const type = bytes.readUInt16BE(name.end);
  const ttl = bytes.readUInt32BE(name.end + 4);
  const start = name.end + 10;
  const end = start + bytes.readUInt16BE(name.end + 8);
  if (end > bytes.length) return null;
  const data = readData(type, bytes, start, end);
  if (data === null) return null;
  const typeName = TYPE_NAMES.get(type) ?? `TYPE${type}`;
  return { record: { name: name.value, type: typeName, ttl, data }, end };
}

function readData(
  type: number,
  bytes: Buffer,
  start: number,
  end: number,
): DnsRecord["data"] | null {
  switch (TYPE_NAMES.get(type)) {
    case "A":
      return end - start === 4 ? [...bytes.subarray(start, end)].join(".") : null;
    case "AAAA":
      return end - start === 16 ? address6(bytes.subarray(start, end)) : null;
    case "NS":
    case "CNAME":
    case "PTR":
      return readName(bytes, start)?.value ?? null;
    case "TXT":
      return textsOf(bytes, start, end);
    case "MX":
      return fieldsOf(bytes, start, end, ["preference"], "exchange");
    case "SRV":
      return fieldsOf(bytes, start, end, ["priority", "weight", "port"], "target");
    case "SOA":
      return soaOf(bytes, start, end);
    default:
      return Buffer.from(bytes.subarray(start, end));
  }
}

/** Reads 16-bit numbers followed by a name. */
function fieldsOf(
  bytes: Buffer,
  start: number,
  end: number,
  numbers: readonly string[],
  last: string,
): Readonly<Record<string, string | number>> | null {
  const at = start + 2 * numbers.length;
  const name = at < end ? readName(bytes, at) : null;
  if (name === null) return null;
  const fields = numbers.map((field, index) => [field, bytes.readUInt16BE(start + 2 * index)]);
  return { ...Object.fromEntries(fields), [last]: name.value };
}

function soaOf(
  bytes: Buffer,
  start: number,
  end: number,
): Readonly<Record<string, string | number>> | null {
  const primary = readName(bytes, start);
  const mailbox = primary === null ? null : readName(bytes, primary.end);
  if (primary === null || mailbox === null || mailbox.end + 20 > end) return null;
  const serial = bytes.readUInt32BE(mailbox.end);
  return { primary: primary.value, mailbox: mailbox.value, serial };
}

function textsOf(bytes: Buffer, start: number, end: number): readonly string[] | null {
  const texts: string[] = [];
  for (let at = start; at < end; ) {
    const next = at + 1 + (bytes[at] ?? 0);
    if (next > end) return null;
    texts.push(bytes.toString("utf8", at + 1, next));
    at = next;
  }
  return texts;
}

function address6(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16));
  return groups.join(":");
}

/** `end` is the offset after the name itself; compression pointers lead elsewhere. */
function readName(bytes: Buffer, from: number): Found<string> | null {
  const labels: string[] = [];
  let at = from;
  let end = -1;
  let length = 0;
  for (let pointers = 0; pointers <= POINTERS_MAX; ) {
    const size = bytes[at];
    if (size === undefined) return null;
    if (size === 0) return { value: labels.join("."), end: end < 0 ? at + 1 : end };
    if (size >= 0xc0) {
      const low = bytes[at + 1];
      if (low === undefined) return null;
      if (end < 0) end = at + 2;
      at = ((size & 0x3f) << 8) | low;
      pointers++;
      continue;
    }
    length += size + 1;
    if (size > 63 || length > NAME_BYTES_MAX || at + 1 + size > bytes.length) return null;
    labels.push(bytes.toString("utf8", at + 1, at + 1 + size));
    at += 1 + size;
  }
  return null;
}
