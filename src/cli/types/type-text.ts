/** Pieces of TypeScript as text: names, comments, properties. */

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;
const INDENT = "  ";

export interface Property {
  readonly name: string;
  readonly type: string;
  readonly optional?: boolean;
  readonly comment?: string | null | undefined;
}

export function literal(value: unknown): string {
  return JSON.stringify(value);
}

/** `{ … }` over several lines; one without properties accepts nothing. */
export function objectType(properties: readonly Property[]): string {
  if (properties.length === 0) return "{ readonly [name: string]: never }";
  return `{\n${properties.map((property) => indented(propertyText(property))).join("\n")}\n}`;
}

export function interfaceText(
  name: string,
  properties: readonly Property[],
  comment?: string | null,
): string {
  return `${commentText(comment)}export interface ${name} ${objectType(properties)}\n`;
}

export function aliasText(name: string, type: string, comment?: string | null): string {
  return `${commentText(comment)}export type ${name} = ${type};\n`;
}

function propertyText({ comment, name, optional = false, type }: Property): string {
  const shown = IDENTIFIER.test(name) ? name : literal(name);
  return `${commentText(comment)}readonly ${shown}${optional ? "?" : ""}: ${type};`;
}

/** Ends with a line end unless empty. */
function commentText(text: string | null | undefined): string {
  const lines = (text ?? "").replaceAll("*/", "* /").split(/\r?\n/);
  const said = lines.map((line) => line.trim()).filter((line) => line !== "");
  if (said.length === 0) return "";
  if (said.length === 1) return `/** ${said[0]} */\n`;
  return `/**\n${said.map((line) => ` * ${line}\n`).join("")} */\n`;
}

function indented(text: string): string {
  return text.replace(/^(?=.)/gm, INDENT);
}

/** Wraps a type before `[]`, or in an intersection. */
export function grouped(type: string): string {
  return /^[\w$]+$/.test(type) ? type : `(${type})`;
}

/** Unique names of types. */
export class TypeNames {
  readonly #taken: Set<string>;

  /** `reserved` names are never used. */
  constructor(reserved: readonly string[]) {
    this.#taken = new Set(reserved);
  }

  /** The first free one of `candidates`, or the last with a number. */
  take(...candidates: readonly string[]): string {
    const names = candidates.map(pascalCase);
    const last = names.at(-1) ?? "Type";
    let name = names.find((candidate) => !this.#taken.has(candidate));
    for (let number = 2; name === undefined; number++)
      if (!this.#taken.has(`${last}${number}`)) name = `${last}${number}`;
    this.#taken.add(name);
    return name;
  }
}

/** "order.line-item" becomes "OrderLineItem". */
function pascalCase(text: string): string {
  const words = text.split(/[^A-Za-z0-9_$]+/).filter((word) => word !== "");
  const joined = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
  return /^[A-Za-z_$]/.test(joined) ? joined : `Type${joined}`;
}
