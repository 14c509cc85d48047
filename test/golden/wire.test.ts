/**
 * The bytes of every message never change by accident: numbers, fields and samples are kept in
 * `wire.golden`. A wanted change is written with `UPDATE_GOLDEN=1 npx vitest run test/golden` and shows up
 * in review; a changed or removed line there breaks clusters of mixed versions.
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { ByteWriter } from "../../src/core/base/bytes.ts";
import { Random } from "../../src/core/base/random.ts";
import { checksumAead } from "../../src/wire/checksum-aead.ts";
import { hello, helloAnswer } from "../../src/wire/hello.ts";
import { electionPacket, swimDatagram } from "../../src/wire/messages/membership.ts";
import { MESSAGES, type MessageName } from "../../src/wire/registry.ts";
import { encode, type FieldShape, type Shape, type Type } from "../../src/wire/schema.ts";
import { sealPacket } from "../../src/wire/seal.ts";
import { generate } from "../../src/wire/testing/generate.ts";

const file = fileURLToPath(new URL("wire.golden", import.meta.url));

function describeShape(shape: Shape): string {
  switch (shape.kind) {
    case "text":
      return `text(${shape.bytesMin}..${shape.bytesMax})`;
    case "bytes":
      return `bytes(..${shape.bytesMax})`;
    case "counter":
      return `counter(..${shape.max})`;
    case "oneOf":
      return `oneOf(${shape.words.join(" ")})`;
    case "list":
      return `list(${describeShape(shape.item)}, ..${shape.countMax})`;
    case "dictionary":
      return `dictionary(${describeShape(shape.value)}, ..${shape.countMax})`;
    case "nullable":
      return `${describeShape(shape.inner)}?`;
    case "struct":
      return `${shape.name}{${shape.fields.map(describeField).join(", ")}}`;
    case "union":
      return `${shape.name}<${shape.variants
        .map(({ kind, number, fields }) => `${number} ${kind}{${fields.map(describeField).join(", ")}}`)
        .join(" | ")}>`;
    default:
      return shape.kind;
  }
}

function describeField({ name, number, shape, fallback }: FieldShape): string {
  return `${number} ${name}${fallback === undefined ? "" : "?"}: ${describeShape(shape)}`;
}

function entry(title: string, type: Type<unknown>): string {
  const random = new Random(`golden/${title}`);
  const samples = Array.from({ length: 2 }, () => {
    const value = generate(type, random);
    return `  ${Buffer.from(encode(type, value, new ByteWriter())).toString("hex")}`;
  });
  return [title, `  ${describeShape(type.shape)}`, ...samples].join("\n");
}

function golden(): string {
  const others: [string, Type<unknown>][] = [
    ["datagram 1 swim", swimDatagram as Type<unknown>],
    ["datagram 2 election", electionPacket as Type<unknown>],
    ["hello", hello as Type<unknown>],
    ["hello answer", helloAnswer as Type<unknown>],
  ];
  const messages = (Object.keys(MESSAGES) as MessageName[]).map((name) => {
    const { number, type, priority, directions } = MESSAGES[name];
    return entry(`message ${number} ${name} ${priority} ${directions.join(" ")}`, type as Type<unknown>);
  });
  const sealed = sealPacket(
    checksumAead,
    Uint8Array.from({ length: 32 }, (_, i) => i),
    {
      kind: "data",
      keyId: 0x0102_0304,
      session: Uint8Array.from({ length: 12 }, (_, i) => 0xa0 + i),
      peer: Uint8Array.from({ length: 8 }, (_, i) => 0xb0 + i),
      counter: 0x0000_1234_5678,
    },
    Uint8Array.of(1, 2, 3),
  );
  const layout = `sealed packet\n  ${Buffer.from(sealed).toString("hex")}`;
  return `${[layout, ...others.map(([title, type]) => entry(title, type)), ...messages].join("\n\n")}\n`;
}

describe("the wire's golden file", () => {
  it("keeps every message, field number and byte", () => {
    const now = golden();
    if (process.env["UPDATE_GOLDEN"] === "1" || !existsSync(file)) writeFileSync(file, now);
    expect(now).toBe(readFileSync(file, "utf8"));
  });
});
