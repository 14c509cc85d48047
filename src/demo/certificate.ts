/**
 * A self-signed certificate for loopback, made on the spot, so that tests and the demo target speak TLS on a machine
 * that has only Node. Just the DER that X.509 v3 requires (RFC 5280 §4.1): ECDSA on P-256, the given names as
 * subjectAltName. Never for anything that others must trust.
 */

import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { isIPv4 } from "node:net";

interface CertificateOptions {
  /** DNS names and IPv4 addresses. */
  readonly hosts?: readonly string[];
  readonly validFrom?: Date;
  readonly validTo?: Date;
}

export interface Certificate {
  /** PEM. */
  readonly key: string;
  readonly cert: string;
}

const DAY_MS = 86_400_000;
const VALID_DAYS = 365;

const OID_ECDSA_SHA256 = "2a8648ce3d040302";
const OID_COMMON_NAME = "550403";
const OID_SUBJECT_ALT_NAME = "551d11";

export function makeCertificate(options: CertificateOptions = {}): Certificate {
  const hosts = options.hosts ?? ["localhost", "127.0.0.1"];
  const validFrom = options.validFrom ?? new Date(Date.now() - DAY_MS);
  const validTo = options.validTo ?? new Date(Date.now() + VALID_DAYS * DAY_MS);
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const algorithm = sequence(oid(OID_ECDSA_SHA256));
  const name = sequence(set(sequence(oid(OID_COMMON_NAME), utf8(hosts[0] ?? "localhost"))));
  const body = sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(serialNumber()),
    algorithm,
    name,
    sequence(time(validFrom), time(validTo)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    explicit(3, sequence(sequence(oid(OID_SUBJECT_ALT_NAME), octets(alternatives(hosts))))),
  );
  const signature = sign("sha256", body, privateKey);
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: pem(sequence(body, algorithm, bits(signature))),
  };
}

function alternatives(hosts: readonly string[]): Buffer {
  return sequence(
    ...hosts.map((host) =>
      isIPv4(host)
        ? tagged(0x87, Buffer.from(host.split(".").map(Number)))
        : tagged(0x82, Buffer.from(host, "latin1")),
    ),
  );
}

function tagged(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const size = content.length;
  const length =
    size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

const sequence = (...parts: readonly Buffer[]): Buffer => tagged(0x30, ...parts);
const set = (...parts: readonly Buffer[]): Buffer => tagged(0x31, ...parts);
const explicit = (index: number, part: Buffer): Buffer => tagged(0xa0 + index, part);
const oid = (hex: string): Buffer => tagged(0x06, Buffer.from(hex, "hex"));
const octets = (part: Buffer): Buffer => tagged(0x04, part);
const bits = (part: Buffer): Buffer => tagged(0x03, Buffer.from([0]), part);
const utf8 = (text: string): Buffer => tagged(0x0c, Buffer.from(text));
const integer = (value: Buffer): Buffer => tagged(0x02, value);

/** 16 random bytes, encoded as a positive number in its shortest form. */
function serialNumber(): Buffer {
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  return serial;
}

/** UTCTime, which ends in 2049: YYMMDDHHMMSSZ. */
function time(date: Date): Buffer {
  const text = date.toISOString().replace(/[-:T]|\.\d+/g, "");
  return tagged(0x17, Buffer.from(text.slice(2)));
}

function pem(der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}
