/** Types of an OpenAPI document, as `http.target<Paths>(…)` takes them. */

import { isObject, type Json, type Role, Schemas, textOf } from "./openapi-schemas.ts";
import { grouped, interfaceText, objectType, type Property, TypeNames } from "./type-text.ts";
import type { WrittenTypes } from "./written-types.ts";

const METHODS = ["get", "head", "post", "put", "patch", "delete", "options"];
/** Names with another meaning in the text. */
const RESERVED = ["Paths", "BodyValue", "FormValues"];

/** Throws a sentence where `text` is no such document. */
export function openapiTypes(text: string, file: string): WrittenTypes {
  const document = parsed(text, file);
  const schemas = new Schemas(document, new TypeNames(RESERVED));
  const byMethod = METHODS.map((method) => ({
    name: method.toUpperCase(),
    operations: operationsOf(document, method, schemas),
  })).filter(({ operations }) => operations.length > 0);
  if (byMethod.length === 0) throw new Error(`${file} has no paths, so there is nothing to call`);
  const properties = byMethod.map(({ name, operations }) => ({
    name,
    type: objectType(operations),
  }));
  const paths = interfaceText("Paths", properties, "What the server serves, by method and path.");
  const used = ["BodyValue", "FormValues"].filter((name) => paths.includes(`: ${name};`));
  const imports =
    used.length === 0 ? [] : [`import type { ${used.join(", ")} } from "hyperscalejs";\n`];
  return {
    text: [...imports, paths, ...schemas.texts()].join("\n"),
    usage: "http.target<Paths>(base)",
    unsupported: schemas.unsupported,
  };
}

function parsed(text: string, file: string): Json {
  let document: unknown;
  try {
    document = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    if (/^\s*[{[]/.test(text)) throw new Error(`${file} is no proper JSON: ${String(error)}`);
    throw new Error(
      `${file} is not JSON. YAML is not read: convert it first, with "npx js-yaml ${file} > openapi.json"`,
    );
  }
  if (isObject(document) && typeof document["swagger"] === "string")
    throw new Error(
      `${file} is Swagger ${document["swagger"]}, not OpenAPI 3: convert it first, ` +
        `with "npx swagger2openapi ${file} -o openapi.json"`,
    );
  if (!isObject(document) || !/^3\./.test(String(document["openapi"])))
    throw new Error(`${file} is no OpenAPI 3 document: it has no "openapi": "3.…"`);
  return document;
}

function operationsOf(document: Json, method: string, schemas: Schemas): Property[] {
  const paths = isObject(document["paths"]) ? document["paths"] : {};
  const operations: Property[] = [];
  for (const [path, given] of Object.entries(paths)) {
    const item = schemas.resolve(given);
    const operation = isObject(item) ? schemas.resolve(item[method]) : undefined;
    if (!path.startsWith("/") || !isObject(item) || !isObject(operation)) continue;
    const described = new Operation(schemas, [item, operation], `${method.toUpperCase()} ${path}`);
    const comment = textOf(operation["summary"]) ?? textOf(operation["description"]);
    operations.push({ name: path, type: described.type(path), comment });
  }
  return operations;
}

interface Parameter {
  readonly name: string;
  readonly in: unknown;
  readonly required: boolean;
  readonly schema: unknown;
  readonly comment: string | null;
}

class Operation {
  readonly #schemas: Schemas;
  readonly #operation: Json;
  readonly #parameters: readonly Parameter[];
  /** "GET /items/{id}": reported where something is unsupported. */
  readonly #place: string;

  constructor(schemas: Schemas, [item, operation]: readonly [Json, Json], place: string) {
    this.#schemas = schemas;
    this.#operation = operation;
    this.#place = place;
    const all = new Map<string, Parameter>();
    // Parameters of the operation override those of its path.
    for (const list of [item["parameters"], operation["parameters"]])
      for (const given of Array.isArray(list) ? list : []) {
        const parameter = this.#parameter(schemas.resolve(given));
        if (parameter !== null) all.set(`${String(parameter.in)} ${parameter.name}`, parameter);
      }
    this.#parameters = [...all.values()];
  }

  type(path: string): string {
    const properties: Property[] = [];
    const names = [...path.matchAll(/\{([^{}]*)\}/g)].map(([, name = ""]) => name);
    if (names.length > 0) properties.push({ name: "values", type: this.#values(names) });
    const options = this.#options();
    if (options.length > 0) properties.push({ name: "options", type: objectType(options) });
    properties.push({ name: "response", type: this.#response() });
    return objectType(properties);
  }

  #parameter(given: unknown): Parameter | null {
    if (!isObject(given) || typeof given["name"] !== "string") {
      this.#schemas.unknown(this.#place, "a parameter that is not in the document");
      return null;
    }
    const { content, description, name, required, schema } = given;
    const inner = isObject(content) ? { type: "object" } : schema;
    const comment = textOf(description);
    return { name, in: given["in"], required: required === true, schema: inner, comment };
  }

  #values(names: readonly string[]): string {
    const known = new Map(this.#in("path").map((parameter) => [parameter.name, parameter]));
    return objectType(
      names.map((name) => ({
        name,
        type: this.#sendable(known.get(name)?.schema, false),
        comment: known.get(name)?.comment,
      })),
    );
  }

  #options(): Property[] {
    const options: Property[] = [];
    const query = this.#in("query");
    if (query.length > 0) {
      const properties = query.map((one) => ({
        name: one.name,
        type: this.#sendable(one.schema, true),
        optional: !one.required,
        comment: one.comment,
      }));
      const optional = !query.some(({ required }) => required);
      options.push({ name: "params", type: objectType(properties), optional });
    }
    const headers = this.#in("header");
    if (headers.length > 0) {
      const properties = headers.map(({ comment, name, schema }) => ({
        ...{ name, comment, optional: true },
        type: this.#sendable(schema, false),
      }));
      options.push({ name: "headers", type: objectType(properties), optional: true });
    }
    const body = this.#body();
    return body === null ? options : [...options, body];
  }

  #in(place: string): readonly Parameter[] {
    return this.#parameters.filter((parameter) => parameter.in === place);
  }

  /** Values possible in an address or a header: everything else is given as text. */
  #sendable(schema: unknown, lists: boolean): string {
    const resolved = this.#schemas.resolve(schema);
    if (!isObject(resolved)) return "string | number";
    const { items, type } = resolved;
    if (Array.isArray(resolved["enum"]) || type === "number" || type === "integer")
      return this.#schemas.type(schema, "sent", this.#place);
    if (type === "string") return "string";
    if (type === "boolean" && lists) return "boolean";
    if (type === "array" && lists) return `readonly ${grouped(this.#sendable(items, false))}[]`;
    return "string | number";
  }

  #body(): Property | null {
    const body = this.#schemas.resolve(this.#operation["requestBody"]);
    if (!isObject(body) || !isObject(body["content"])) return null;
    const content = Object.entries(body["content"]);
    const comment = textOf(body["description"]);
    const optional = body["required"] !== true;
    const json = this.#json(body["content"], "sent", "requestBody");
    if (json !== null) return { name: "json", type: json, optional, comment };
    const types = content.map(([type]) => type).join(", ");
    const isForm = /^(multipart\/form-data|application\/x-www-form-urlencoded)\b/.test(types);
    this.#schemas.unknown(this.#place, `the fields of a body that is ${types}`);
    return isForm
      ? { name: "form", type: "FormValues", optional, comment: comment ?? types }
      : { name: "body", type: "BodyValue", optional, comment: comment ?? types };
  }

  /** Type of answers below 300: others are failures, whose `json()` should not be relied on. */
  #response(): string {
    const responses = this.#operation["responses"];
    const all = isObject(responses) ? Object.entries(responses) : [];
    const good = all.filter(([status]) => /^2(\d\d|XX)$/i.test(status));
    const taken = good.length > 0 ? good : all.filter(([status]) => status === "default");
    const types = new Set<string>();
    for (const [status, given] of taken) {
      const response = this.#schemas.resolve(given);
      const content = isObject(response) ? response["content"] : undefined;
      const json = isObject(content) ? this.#json(content, "answered", status) : null;
      if (json !== null) types.add(json);
    }
    return types.size === 0 ? "unknown" : [...types].join(" | ");
  }

  #json(content: Json, role: Role, place: string): string | null {
    const entries = Object.entries(content);
    const found = entries.find(([type]) => /^application\/(json|[\w.+-]+\+json)\b/i.test(type));
    if (found === undefined || !isObject(found[1])) return null;
    return this.#schemas.type(found[1]["schema"], role, `${this.#place} ${place}`);
  }
}
