import { describe, expect, it } from "vitest";
import { readDocument } from "./document.ts";
import { textOf } from "./typed-document.ts";

const name = (value: string) => ({ kind: "Name", value });
const variable = (value: string) => ({ kind: "Variable", name: name(value) });
const named = (value: string) => ({ kind: "NamedType", name: name(value) });
const field = (value: string, more: object = {}) => ({ kind: "Field", name: name(value), ...more });
const set = (...selections: object[]) => ({ kind: "SelectionSet", selections });
const argument = (key: string, value: object) => ({ kind: "Argument", name: name(key), value });

/** As code generators emit trees: without the source. */
const TREE = {
  kind: "Document",
  definitions: [
    {
      kind: "OperationDefinition",
      operation: "query",
      name: name("User"),
      variableDefinitions: [
        {
          kind: "VariableDefinition",
          variable: variable("id"),
          type: { kind: "NonNullType", type: named("ID") },
        },
        {
          kind: "VariableDefinition",
          variable: variable("tags"),
          type: { kind: "ListType", type: { kind: "NonNullType", type: named("String") } },
          defaultValue: {
            kind: "ListValue",
            values: [{ kind: "StringValue", value: 'a "b"\n' }, { kind: "NullValue" }],
          },
        },
      ],
      selectionSet: set(
        field("user", {
          alias: name("me"),
          arguments: [
            argument("id", variable("id")),
            argument("by", {
              kind: "ObjectValue",
              fields: [
                { kind: "ObjectField", name: name("at"), value: { kind: "IntValue", value: "7" } },
                { kind: "ObjectField", name: name("as"), value: { kind: "EnumValue", value: "X" } },
              ],
            }),
          ],
          directives: [
            {
              kind: "Directive",
              name: name("include"),
              arguments: [argument("if", { kind: "BooleanValue", value: true })],
            },
          ],
          selectionSet: set(
            field("id"),
            { kind: "FragmentSpread", name: name("Names") },
            {
              kind: "InlineFragment",
              typeCondition: named("Admin"),
              selectionSet: set(field("x")),
            },
            { kind: "InlineFragment", selectionSet: set(field("tags")) },
          ),
        }),
        field("tagged", { arguments: [argument("tags", variable("tags"))] }),
      ),
    },
    {
      kind: "FragmentDefinition",
      name: name("Names"),
      typeCondition: named("User"),
      selectionSet: set(field("name")),
    },
  ],
};

describe("a generated document", () => {
  it("is printed from its tree, following the grammar", () => {
    const text = textOf(TREE);
    expect(text).toBe(
      'query User($id: ID!, $tags: [String!] = ["a \\"b\\"\\n", null]) ' +
        "{ me: user(id: $id, by: {at: 7, as: X}) @include(if: true) " +
        "{ id ...Names ... on Admin { x } ... { tags } } tagged(tags: $tags) }\n" +
        "fragment Names on User { name }",
    );
    expect(readDocument(text)).toEqual([
      {
        kind: "query",
        name: "User",
        variables: [
          { name: "id", required: true },
          { name: "tags", required: false },
        ],
      },
    ]);
    expect(textOf(TREE)).toBe(text);
  });

  it("keeps its source where that is complete, and may be a String object", () => {
    const one = { kind: "OperationDefinition", operation: "query", selectionSet: set(field("a")) };
    const source = { kind: "Document", definitions: [one], loc: { source: { body: "{   a }" } } };
    expect(textOf(source)).toBe("{   a }");
    expect(textOf({ kind: "Document", definitions: [one] })).toBe("query { a }");
    class TypedString extends String {}
    expect(textOf(new TypedString("{ a }"))).toBe("{ a }");
  });

  it("is rejected when it is not a document", () => {
    for (const wrong of [null, 7, {}, { kind: "Field" }])
      expect(() => textOf(wrong)).toThrow(/a GraphQL document is text, or what gql/);
    const schema = { kind: "Document", definitions: [{ kind: "ObjectTypeDefinition" }] };
    expect(() => textOf(schema)).toThrow("a request cannot hold ObjectTypeDefinition");
    let deep: object = field("x");
    for (let i = 0; i < 200; i++) deep = field("x", { selectionSet: set(deep) });
    const nested = { kind: "OperationDefinition", operation: "query", selectionSet: set(deep) };
    expect(() => textOf({ kind: "Document", definitions: [nested] })).toThrow(/levels deep/);
  });
});
