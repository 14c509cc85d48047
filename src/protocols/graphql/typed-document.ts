/**
 * Documents created by other tools: a syntax tree as `graphql-tag` and code generators emit it, or an object whose text
 * is the document. Their type determines data and variables. Trees without their source are printed, following the
 * grammar of executable documents.
 */

import { DOCUMENT_DEPTH_MAX } from "./document.ts";

/** Common part of TypedDocumentNode and TypedDocumentString of code generators. */
export interface TypedDocument<Data, Variables> {
  /** Only for the compiler. */
  readonly __apiType?: (variables: Variables) => Data;
  toString(): string;
}

/** Trees are constants of a file; each is printed once. */
const texts = new WeakMap<object, string>();

export function textOf(document: unknown): string {
  if (typeof document === "string") return document;
  if (typeof document !== "object" || document === null) throw new TypeError(NO_DOCUMENT);
  let text = texts.get(document);
  if (text === undefined) {
    text = textAnew(document as Node);
    texts.set(document, text);
  }
  return text;
}

const NO_DOCUMENT = "a GraphQL document is text, or what gql`…` or a code generator made of one";

/** A node of a syntax tree; its fields depend on its kind. */
interface Node {
  readonly kind?: string;
  readonly [part: string]: unknown;
}

function textAnew(document: Node): string {
  if (document instanceof String) return document.toString();
  if (document.kind !== "Document") throw new TypeError(NO_DOCUMENT);
  const { body } = partOf(partOf(document, "loc"), "source");
  // Fragments interpolated into the template are in the tree only.
  const definitions = nodesOf(document, "definitions");
  if (typeof body === "string" && definitions.length === 1) return body;
  return definitions.map((definition) => definitionText(definition)).join("\n");
}

function definitionText(node: Node): string {
  const directives = directivesText(node);
  const selection = selectionText(node, 0);
  if (node.kind === "FragmentDefinition") {
    const on = nameOf(partOf(node, "typeCondition"));
    return `fragment ${nameOf(node)} on ${on}${directives}${selection}`;
  }
  if (node.kind !== "OperationDefinition") throw unknownNode(node);
  const variables = nodesOf(node, "variableDefinitions").map(variableText).join(", ");
  const name = node["name"] === undefined ? "" : ` ${nameOf(node)}`;
  const listed = variables === "" ? "" : `(${variables})`;
  return `${String(node["operation"])}${name}${listed}${directives}${selection}`;
}

function variableText(node: Node): string {
  const { name } = partOf(node, "variable");
  const given = node["defaultValue"] as Node | undefined;
  const otherwise = given === undefined ? "" : ` = ${valueText(given, 0)}`;
  return `$${wordOf(name)}: ${typeText(partOf(node, "type"), 0)}${otherwise}${directivesText(node)}`;
}

function typeText(node: Node, depth: number): string {
  checkDepth(depth);
  if (node.kind === "NonNullType") return `${typeText(partOf(node, "type"), depth + 1)}!`;
  if (node.kind === "ListType") return `[${typeText(partOf(node, "type"), depth + 1)}]`;
  if (node.kind !== "NamedType") throw unknownNode(node);
  return nameOf(node);
}

function selectionText(node: Node, depth: number): string {
  checkDepth(depth);
  if (node["selectionSet"] === undefined) return "";
  const parts = nodesOf(partOf(node, "selectionSet"), "selections");
  return ` { ${parts.map((part) => selectedText(part, depth + 1)).join(" ")} }`;
}

function selectedText(node: Node, depth: number): string {
  const rest = `${directivesText(node)}${selectionText(node, depth)}`;
  switch (node.kind) {
    case "Field": {
      const alias = node["alias"] === undefined ? "" : `${wordOf(node["alias"])}: `;
      return `${alias}${nameOf(node)}${argumentsText(node)}${rest}`;
    }
    case "FragmentSpread":
      return `...${nameOf(node)}${rest}`;
    case "InlineFragment": {
      const on = node["typeCondition"];
      return `...${on === undefined ? "" : ` on ${nameOf(on as Node)}`}${rest}`;
    }
    default:
      throw unknownNode(node);
  }
}

function directivesText(node: Node): string {
  return nodesOf(node, "directives")
    .map((directive) => ` @${nameOf(directive)}${argumentsText(directive)}`)
    .join("");
}

function argumentsText(node: Node): string {
  const listed = nodesOf(node, "arguments").map(namedValueText);
  return listed.length === 0 ? "" : `(${listed.join(", ")})`;
}

function namedValueText(node: Node, depth = 0): string {
  return `${nameOf(node)}: ${valueText(partOf(node, "value"), depth)}`;
}

function valueText(node: Node, depth: number): string {
  checkDepth(depth);
  switch (node.kind) {
    case "Variable":
      return `$${nameOf(node)}`;
    case "StringValue":
      // JSON escapes are valid GraphQL escapes.
      return JSON.stringify(node["value"]);
    case "NullValue":
      return "null";
    case "IntValue":
    case "FloatValue":
    case "BooleanValue":
    case "EnumValue":
      return String(node["value"]);
    case "ListValue":
      return `[${nodesOf(node, "values")
        .map((value) => valueText(value, depth + 1))
        .join(", ")}]`;
    case "ObjectValue":
      return `{${nodesOf(node, "fields")
        .map((field) => namedValueText(field, depth + 1))
        .join(", ")}}`;
    default:
      throw unknownNode(node);
  }
}

function partOf(node: Node, part: string): Node {
  return (node[part] ?? {}) as Node;
}

function nodesOf(node: Node, part: string): readonly Node[] {
  return (node[part] ?? []) as readonly Node[];
}

function nameOf(node: Node): string {
  return wordOf(node["name"]);
}

function wordOf(name: unknown): string {
  return String((name as Node | undefined)?.["value"] ?? "");
}

function checkDepth(depth: number): void {
  if (depth > DOCUMENT_DEPTH_MAX)
    throw new RangeError(`a GraphQL document is at most ${DOCUMENT_DEPTH_MAX} levels deep`);
}

function unknownNode(node: Node): TypeError {
  return new TypeError(`a request cannot hold ${String(node.kind)}`);
}
