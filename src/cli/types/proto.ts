/** Types of a .proto file, as `grpc.target<Methods>(…)` takes them. */

import type { Enum, Field, Method, Root, Service, Type } from "protobufjs";
import { readProtoFiles } from "../../protocols/grpc/schema.ts";
import {
  aliasText,
  grouped,
  interfaceText,
  literal,
  objectType,
  type Property,
  TypeNames,
} from "./type-text.ts";
import type { WrittenTypes } from "./written-types.ts";

/** Requests accept more than answers have: fields can be omitted, 64-bit numbers be numbers. */
type Role = "sent" | "answered";

/** Names with another meaning in the text. */
const RESERVED = ["Methods", "Uint8Array"];

export async function protoTypes(file: string): Promise<WrittenTypes> {
  const root = await readProtoFiles([file]);
  const services = servicesOf(root);
  if (services.every(({ methodsArray }) => methodsArray.length === 0))
    throw new Error(`${file} has no service with methods, so there is nothing to call`);
  return {
    text: new ProtoWriter(services).text(),
    usage: "grpc.target<Methods>(address, { proto })",
    unsupported: [],
  };
}

class ProtoWriter {
  readonly #services: readonly Service[];
  readonly #names = new TypeNames(RESERVED);
  /** By role and full name; a type has its name before its fields are processed: it may be recursive. */
  readonly #given = new Map<string, string>();
  readonly #texts = new Map<string, string>();

  constructor(services: readonly Service[]) {
    this.#services = services;
  }

  text(): string {
    const methods = this.#services.flatMap((service) => service.methodsArray);
    const properties = methods.map((method) => this.#method(method));
    const named = [...this.#texts].sort(([left], [right]) => (left < right ? -1 : 1));
    return [
      interfaceText("Methods", properties, "What the server serves, by `package.Service/Method`."),
      ...named.map(([, text]) => text),
    ].join("\n");
  }

  #method(method: Method): Property {
    method.resolve();
    const { resolvedRequestType, resolvedResponseType } = method;
    const asks = method.requestStream === true;
    const answers = method.responseStream === true;
    const kind = asks ? (answers ? "bidi" : "clientStream") : answers ? "serverStream" : "unary";
    return {
      name: `${withoutDot(method.parent?.fullName ?? "")}/${method.name}`,
      comment: method.comment,
      type: objectType([
        { name: "kind", type: literal(kind) },
        { name: "request", type: this.#message(resolvedRequestType as Type, "sent") },
        { name: "response", type: this.#message(resolvedResponseType as Type, "answered") },
      ]),
    };
  }

  #message(type: Type, role: Role): string {
    return this.#named(type, role, (name) => {
      const properties = type.fieldsArray.map((field) => this.#field(field.resolve(), role));
      return interfaceText(name, properties, type.comment);
    });
  }

  /** Values newer than the file arrive as their numbers. */
  #enum(type: Enum): string {
    return this.#named(type, "answered", (name) => {
      const values = [...Object.keys(type.values).map(literal), "number"];
      return aliasText(name, values.join(" | "), type.comment);
    });
  }

  #named(type: Type | Enum, role: Role, write: (name: string) => string): string {
    const key = `${type.fullName} ${role}`;
    const known = this.#given.get(key);
    if (known !== undefined) return known;
    const full = withoutDot(type.fullName);
    const suffix = role === "sent" ? "Input" : "";
    const name = this.#names.take(`${type.name}${suffix}`, `${full}${suffix}`);
    this.#given.set(key, name);
    this.#texts.set(name, write(name));
    return name;
  }

  #field(field: Field, role: Role): Property {
    const { comment, map, name, partOf, repeated, required, resolvedType } = field;
    const value = this.#value(field, role);
    const sent = role === "sent";
    if (map) return { name, comment, type: `{ readonly [key: string]: ${value} }`, optional: sent };
    if (repeated) return { name, comment, type: `readonly ${grouped(value)}[]`, optional: sent };
    // A oneof or an `optional`: absent where it was not set.
    if (isSet(partOf)) return { name, comment, type: value, optional: true };
    const isMessage = resolvedType !== null && !isEnum(resolvedType);
    const type = isMessage && !required ? `${value} | null` : value;
    return { name, comment, type, optional: sent && !required };
  }

  #value({ resolvedType, type }: Field, role: Role): string {
    if (resolvedType !== null)
      return isEnum(resolvedType) ? this.#enum(resolvedType) : this.#message(resolvedType, role);
    const sent = role === "sent";
    if (type.endsWith("64")) return sent ? "string | number | bigint" : "string";
    if (type === "bool") return "boolean";
    if (type === "string") return "string";
    // Text is sent as base64.
    if (type === "bytes") return sent ? "Uint8Array | string" : "Uint8Array";
    return "number";
  }
}

/** Includes methods of imported files. Ordered by name: files are read concurrently. */
function servicesOf(root: Root): Service[] {
  const services: Service[] = [];
  const visit = (space: { readonly nestedArray: readonly object[] }): void => {
    for (const nested of space.nestedArray) {
      if ("methodsArray" in nested) services.push(nested as Service);
      if ("nestedArray" in nested) visit(nested as Root);
    }
  };
  visit(root);
  return services.sort((left, right) => (left.fullName < right.fullName ? -1 : 1));
}

function isEnum(type: Type | Enum): type is Enum {
  return "valuesById" in type;
}

function isSet(value: object | null | undefined): boolean {
  return value !== null && value !== undefined;
}

/** Full names of protobufjs begin with a dot. */
function withoutDot(name: string): string {
  return name.replace(/^\./, "");
}
