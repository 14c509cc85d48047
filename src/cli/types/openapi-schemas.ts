/** JSON Schema, as OpenAPI 3.0 and 3.1 have it, in TypeScript. */

import {
  aliasText,
  grouped,
  interfaceText,
  literal,
  objectType,
  type Property,
  type TypeNames,
} from "./type-text.ts";

export type Json = Readonly<Record<string, unknown>>;

/** Requests have no `readOnly` properties, answers no `writeOnly` ones. */
export type Role = "sent" | "answered";

const SCHEMA_REFERENCE = "#/components/schemas/";
/** Keywords that narrow a type in an unsupported way. */
const NOT_WRITTEN = ["not", "if", "patternProperties", "prefixItems", "dependentSchemas"];
/** Length of a chain of references. */
const REFERENCES_MAX = 32;

export class Schemas {
  readonly unsupported: string[] = [];
  readonly #document: Json;
  readonly #names: TypeNames;
  readonly #given = new Map<string, string>();
  readonly #texts = new Map<string, string>();

  constructor(document: Json, names: TypeNames) {
    this.#document = document;
    this.#names = names;
  }

  /** The requested types, in the order of their names. */
  texts(): string[] {
    const named = [...this.#texts].sort(([left], [right]) => (left < right ? -1 : 1));
    return named.map(([, text]) => text);
  }

  /** `value` itself, or its reference within the document; undefined where there is nothing. */
  resolve(value: unknown): unknown {
    let at = value;
    for (let step = 0; step < REFERENCES_MAX && isObject(at); step++) {
      const reference = at["$ref"];
      if (typeof reference !== "string") return at;
      at = this.#pointed(reference);
    }
    return isObject(at) && typeof at["$ref"] === "string" ? undefined : at;
  }

  /** `place` is reported where something is unsupported. */
  type(schema: unknown, role: Role, place: string): string {
    if (schema === undefined || schema === true) return "unknown";
    if (schema === false) return "never";
    if (!isObject(schema)) return this.unknown(place, "no schema");
    const reference = schema["$ref"];
    if (typeof reference === "string") return this.#referred(reference, role, place);
    for (const keyword of NOT_WRITTEN)
      if (keyword in schema) return this.unknown(place, `"${keyword}"`);
    const type = this.#allOf(schema, role, place);
    return schema["nullable"] === true ? `${type} | null` : type;
  }

  /** Reports what is left open in the text and to the caller. */
  unknown(place: string, what: string): string {
    this.unsupported.push(`${place}: ${what}`);
    return `unknown /* ${what.replaceAll("*/", "* /")} */`;
  }

  #referred(reference: string, role: Role, place: string): string {
    if (!reference.startsWith(SCHEMA_REFERENCE)) return this.unknown(place, `$ref "${reference}"`);
    const name = unescaped(reference.slice(SCHEMA_REFERENCE.length));
    const schema = this.#pointed(reference);
    if (schema === undefined) return this.unknown(place, `$ref "${reference}", which is not there`);
    const differs = role === "sent" && this.#differs(schema, new Set());
    const key = differs ? `${name} sent` : name;
    const known = this.#given.get(key);
    if (known !== undefined) return known;
    const given = this.#names.take(differs ? `${name}Input` : name);
    this.#given.set(key, given);
    this.#texts.set(given, this.#declaration(given, schema, role, reference));
    return given;
  }

  #declaration(name: string, schema: unknown, role: Role, place: string): string {
    const comment = isObject(schema) ? textOf(schema["description"] ?? schema["title"]) : null;
    const properties = isPlainObject(schema) ? this.#properties(schema, role, place) : null;
    return properties === null
      ? aliasText(name, this.type(schema, role, place), comment)
      : interfaceText(name, properties, comment);
  }

  /** Whether any property is only sent, or only answered. */
  #differs(schema: unknown, seen: Set<unknown>): boolean {
    if (typeof schema !== "object" || schema === null || seen.has(schema)) return false;
    seen.add(schema);
    const { $ref, readOnly, writeOnly } = schema as Json;
    if (readOnly === true || writeOnly === true) return true;
    if (typeof $ref === "string") return this.#differs(this.#pointed($ref), seen);
    return Object.values(schema).some((inner) => this.#differs(inner, seen));
  }

  #allOf(schema: Json, role: Role, place: string): string {
    const parts: string[] = [];
    for (const [keyword, joint] of [
      ["allOf", " & "],
      ["oneOf", " | "],
      ["anyOf", " | "],
    ] as const) {
      const list = schema[keyword];
      if (!Array.isArray(list) || list.length === 0) continue;
      const types = list.map((one, at) => this.type(one, role, `${place}/${keyword}/${at}`));
      parts.push([...new Set(types)].map(grouped).join(joint));
    }
    if (parts.length === 0) return this.#single(schema, role, place);
    const own = this.#single(schema, role, place);
    if (own !== "unknown") parts.push(own);
    return parts.length === 1 ? String(parts[0]) : parts.map(grouped).join(" & ");
  }

  #single(schema: Json, role: Role, place: string): string {
    if ("const" in schema) return this.#literals([schema["const"]], place);
    if (Array.isArray(schema["enum"])) return this.#literals(schema["enum"], place);
    const named = schema["type"];
    const types = Array.isArray(named) ? named : [named ?? impliedType(schema)];
    return [...new Set(types.map((type) => this.#ofType(type, schema, role, place)))].join(" | ");
  }

  #literals(values: readonly unknown[], place: string): string {
    if (values.some((value) => typeof value === "object" && value !== null))
      return this.unknown(place, "an enum of objects");
    return [...new Set(values.map(literal))].join(" | ") || "never";
  }

  #ofType(type: unknown, schema: Json, role: Role, place: string): string {
    switch (type) {
      case undefined:
        return "unknown";
      case "string":
      case "boolean":
      case "null":
      case "number":
        return type;
      case "integer":
        return "number";
      case "array":
        return `readonly ${grouped(this.type(schema["items"], role, `${place}/items`))}[]`;
      case "object":
        return this.#object(schema, role, place);
      default:
        return this.unknown(place, `type ${literal(type)}`);
    }
  }

  #object(schema: Json, role: Role, place: string): string {
    const properties = this.#properties(schema, role, place);
    const more = schema["additionalProperties"];
    // By default other properties are allowed; a type that says so would accept misspelt names.
    if (properties.length > 0 && (more === undefined || typeof more === "boolean"))
      return objectType(properties);
    if (properties.length === 0 && more === false) return objectType([]);
    const inner = more === undefined || more === true ? "unknown" : null;
    const value = inner ?? this.type(more, role, `${place}/additionalProperties`);
    const rest = `{ readonly [name: string]: ${value} }`;
    return properties.length === 0 ? rest : `${objectType(properties)} & ${rest}`;
  }

  #properties(schema: Json, role: Role, place: string): Property[] {
    const required = Array.isArray(schema["required"]) ? schema["required"] : [];
    const all = isObject(schema["properties"]) ? Object.entries(schema["properties"]) : [];
    const hidden = role === "sent" ? "readOnly" : "writeOnly";
    const shown = all.filter(([, one]) => !isObject(one) || one[hidden] !== true);
    return shown.map(([name, one]) => ({
      name,
      type: this.type(one, role, `${place}/properties/${name}`),
      optional: !required.includes(name),
      comment: isObject(one) ? textOf(one["description"]) : null,
    }));
  }

  #pointed(reference: string): unknown {
    if (!reference.startsWith("#/")) return undefined;
    let at: unknown = this.#document;
    for (const part of reference.slice(2).split("/")) {
      const name = unescaped(part);
      at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
    }
    return at;
  }
}

/** Only properties: can be an interface. */
function isPlainObject(schema: unknown): schema is Json {
  if (!isObject(schema) || !isObject(schema["properties"])) return false;
  if (Object.keys(schema["properties"]).length === 0 || schema["nullable"] === true) return false;
  const besides = ["$ref", "allOf", "oneOf", "anyOf", "enum", "const", ...NOT_WRITTEN];
  if (besides.some((keyword) => keyword in schema)) return false;
  const { additionalProperties, type } = schema;
  return (type ?? "object") === "object" && !isObject(additionalProperties);
}

function impliedType(schema: Json): string | undefined {
  if ("properties" in schema || "additionalProperties" in schema) return "object";
  return "items" in schema ? "array" : undefined;
}

/** RFC 6901, in the fragment of an address. */
function unescaped(part: string): string {
  const text = part.replaceAll("~1", "/").replaceAll("~0", "~");
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
