/**
 * Validates a GraphQL document before anything is sent: its syntax, by recursive descent over the grammar of executable
 * documents, and the rules that need no schema: operation names are distinct, used fragments and variables are defined.
 * (OPT-9)
 */

import { GraphqlSyntaxError, Lexer, type Token } from "./lexer.ts";

const DOCUMENT_CHARACTERS_MAX = 1024 * 1024;
/** Nesting depth of selections, lists and objects. */
export const DOCUMENT_DEPTH_MAX = 128;

type OperationKind = "query" | "mutation" | "subscription";

export interface Operation {
  readonly kind: OperationKind;
  /** Null for an anonymous operation. */
  readonly name: string | null;
  readonly variables: readonly Variable[];
}

interface Variable {
  readonly name: string;
  /** Non-null type without a default: every request must provide it. */
  readonly required: boolean;
}

export function readDocument(text: string): readonly Operation[] {
  if (typeof text !== "string") throw new TypeError("a GraphQL document is text");
  if (text.length > DOCUMENT_CHARACTERS_MAX)
    throw new RangeError(`a GraphQL document has at most ${DOCUMENT_CHARACTERS_MAX} characters`);
  return new DocumentReader(text).document();
}

/** Fragments and variables used by one definition. */
interface Uses {
  readonly fragments: Map<string, Token>;
  readonly variables: Map<string, Token>;
}

interface Definition extends Uses {
  readonly operation: Operation;
  readonly token: Token;
}

class DocumentReader {
  readonly #text: string;
  readonly #lexer: Lexer;
  #token: Token;
  #depth = 0;
  readonly #operations: Definition[] = [];
  readonly #fragments = new Map<string, Uses>();
  #uses: Uses = noUses();

  constructor(text: string) {
    this.#text = text;
    this.#lexer = new Lexer(text);
    this.#token = this.#lexer.next();
  }

  document(): readonly Operation[] {
    if (this.#atEnd()) this.#refuse("it is empty");
    while (!this.#atEnd()) this.#definition();
    this.#checkOperations();
    this.#checkUses();
    return this.#operations.map(({ operation }) => operation);
  }

  #definition(): void {
    this.#uses = noUses();
    const described = this.#description();
    const token = this.#token;
    if (token.text === "{" && !described) {
      this.#selectionSet();
      this.#addOperation({ kind: "query", name: null, variables: [] }, token);
    } else if (token.text === "fragment") this.#fragment();
    else if (isOperationKind(token.text)) this.#operation(token.text);
    else this.#refuse(`expected query, mutation, fragment or {, found ${shown(token)}`);
  }

  #description(): boolean {
    if (this.#token.kind !== "string") return false;
    this.#advance();
    return true;
  }

  #operation(kind: OperationKind): void {
    const token = this.#advance();
    const name = this.#token.kind === "name" ? this.#advance().text : null;
    const variables = this.#variableDefinitions();
    this.#directives();
    this.#selectionSet();
    this.#addOperation({ kind, name, variables }, token);
  }

  #addOperation(operation: Operation, token: Token): void {
    this.#operations.push({ operation, token, ...this.#uses });
  }

  #fragment(): void {
    this.#advance();
    if (this.#token.text === "on") this.#refuse('a fragment cannot be called "on"');
    const name = this.#name();
    if (this.#fragments.has(name.text)) this.#refuse(`two fragments "${name.text}"`, name);
    this.#typeCondition();
    this.#directives();
    this.#selectionSet();
    this.#fragments.set(name.text, this.#uses);
  }

  #variableDefinitions(): readonly Variable[] {
    const variables: Variable[] = [];
    if (!this.#skip("(")) return variables;
    do {
      this.#description();
      this.#expect("$");
      const name = this.#name();
      if (variables.some((other) => other.name === name.text))
        this.#refuse(`two variables "$${name.text}"`, name);
      this.#expect(":");
      const nonNull = this.#type();
      const hasDefault = this.#skip("=");
      if (hasDefault) this.#value(true);
      this.#directives(true);
      variables.push({ name: name.text, required: nonNull && !hasDefault });
    } while (!this.#skip(")"));
    return variables;
  }

  /** True when the type ends with "!". */
  #type(): boolean {
    this.#enter();
    if (this.#skip("[")) {
      this.#type();
      this.#expect("]");
    } else this.#name();
    this.#depth--;
    return this.#skip("!");
  }

  #selectionSet(): void {
    this.#enter();
    this.#expect("{");
    do this.#selection();
    while (!this.#skip("}"));
    this.#depth--;
  }

  #selection(): void {
    if (!this.#skip("...")) {
      this.#field();
      return;
    }
    if (this.#token.kind === "name" && this.#token.text !== "on") {
      const name = this.#name();
      this.#uses.fragments.set(name.text, name);
      this.#directives();
      return;
    }
    if (this.#token.text === "on") this.#typeCondition();
    this.#directives();
    this.#selectionSet();
  }

  #field(): void {
    this.#name();
    if (this.#skip(":")) this.#name();
    this.#arguments();
    this.#directives();
    if (this.#token.text === "{") this.#selectionSet();
  }

  #typeCondition(): void {
    if (this.#token.text !== "on") this.#refuse(`expected on, found ${shown(this.#token)}`);
    this.#advance();
    this.#name();
  }

  #arguments(constant = false): void {
    if (!this.#skip("(")) return;
    do {
      this.#name();
      this.#expect(":");
      this.#value(constant);
    } while (!this.#skip(")"));
  }

  #directives(constant = false): void {
    while (this.#skip("@")) {
      this.#name();
      this.#arguments(constant);
    }
  }

  #value(constant: boolean): void {
    this.#enter();
    const { kind, text } = this.#token;
    if (text === "$" && !constant) {
      this.#advance();
      const name = this.#name();
      this.#uses.variables.set(name.text, name);
    } else if (this.#skip("[")) {
      while (!this.#skip("]")) this.#value(constant);
    } else if (this.#skip("{")) {
      while (!this.#skip("}")) {
        this.#name();
        this.#expect(":");
        this.#value(constant);
      }
    } else if (kind === "punctuator" || kind === "end") {
      this.#refuse(`expected a ${constant ? "constant " : ""}value, found ${shown(this.#token)}`);
    } else this.#advance();
    this.#depth--;
  }

  #name(): Token {
    if (this.#token.kind !== "name") this.#refuse(`expected a name, found ${shown(this.#token)}`);
    return this.#advance();
  }

  #expect(text: string): void {
    if (!this.#skip(text)) this.#refuse(`expected ${text}, found ${shown(this.#token)}`);
  }

  #skip(text: string): boolean {
    if (this.#token.kind !== "punctuator" || this.#token.text !== text) return false;
    this.#advance();
    return true;
  }

  #advance(): Token {
    const token = this.#token;
    this.#token = this.#lexer.next();
    return token;
  }

  #atEnd(): boolean {
    return this.#token.kind === "end";
  }

  #enter(): void {
    if (++this.#depth > DOCUMENT_DEPTH_MAX) this.#refuse("it is nested too deeply");
  }

  #checkOperations(): void {
    const names = new Set<string>();
    for (const { operation, token } of this.#operations) {
      const { name } = operation;
      if (name === null && this.#operations.length > 1)
        this.#refuse("an operation without a name must be the only one", token);
      if (name !== null && names.has(name)) this.#refuse(`two operations "${name}"`, token);
      if (name !== null) names.add(name);
    }
    if (this.#operations.length === 0) this.#refuse("it contains no operation, only fragments");
  }

  /** Checks each operation with the fragments it reaches: all are defined and all variables declared. */
  #checkUses(): void {
    for (const definition of this.#operations) {
      const declared = new Set(definition.operation.variables.map(({ name }) => name));
      const seen = new Set<string>();
      const open: Uses[] = [definition];
      for (let uses = open.pop(); uses !== undefined; uses = open.pop()) {
        for (const [name, token] of uses.variables) {
          if (!declared.has(name)) this.#refuse(`the variable "$${name}" is not declared`, token);
        }
        for (const [name, token] of uses.fragments) {
          const fragment = this.#fragments.get(name);
          if (fragment === undefined) this.#refuse(`there is no fragment "${name}"`, token);
          if (!seen.has(name)) open.push(fragment);
          seen.add(name);
        }
      }
    }
  }

  #refuse(problem: string, token = this.#token): never {
    throw new GraphqlSyntaxError(this.#text, token.at, problem);
  }
}

function noUses(): Uses {
  return { fragments: new Map(), variables: new Map() };
}

function isOperationKind(text: string): text is OperationKind {
  return text === "query" || text === "mutation" || text === "subscription";
}

function shown(token: Token): string {
  return token.kind === "end" ? "the end" : token.text.slice(0, 40);
}
