import { describe, expect, it } from "vitest";
import { answerGraphql } from "./graphql.ts";

const find = (id: number) => (id === 7 ? { id: 7, name: "Ada" } : undefined);
const ask = (query: string, variables?: unknown) => answerGraphql({ query, variables }, find);

describe("the demo schema", () => {
  it.each([
    ["{ user(id: 7) { id name } }", { user: { id: "7", name: "Ada" } }],
    ['query { user(id: "7") { name } }', { user: { name: "Ada" } }],
    ["query Q { me: user(id: 7) { id, name } }", { me: { id: "7", name: "Ada" } }],
    ["{ __typename }", { __typename: "Query" }],
  ])("answers %s", (query, data) => {
    expect(ask(query)).toEqual({ data });
  });

  it("takes the id from a variable", () => {
    const query = "query Q($id: ID!) { user(id: $id) { id } }";
    expect(ask(query, { id: 7 })).toEqual({ data: { user: { id: "7" } } });
    expect(ask(query)).toHaveProperty("errors");
  });

  it.each([
    ["{ users { id } }", 'Cannot query field "users"'],
    ["{ user(id: 7) { age } }", 'Cannot query field "age"'],
    ["{ user(id: 7) }", "selection of subfields"],
    ["{ user { id } }", 'Argument "id"'],
    ["mutation { user(id: 7) { id } }", "queries only"],
    ["{ user(id: 7) { id }", "syntax error"],
    ["", "syntax error"],
  ])("rejects %s", (query, message) => {
    expect(ask(query)).toEqual({ errors: [{ message: expect.stringContaining(message) }] });
  });

  it("returns null and an error with its path for an unknown user", () => {
    expect(ask("{ user(id: 8) { id } }")).toEqual({
      data: { user: null },
      errors: [{ message: "no user 8", path: ["user"] }],
    });
  });

  it("handles long runs of any character in linear time", () => {
    for (const run of [" ", "a", "(", "{", "query ", "$", ":"]) {
      const text = run.repeat(Math.floor(9_900 / run.length));
      for (const query of [text, `query${text}`, `{${text}`, `query Q${text}{ user(id: 7)`]) {
        expect(ask(query)).toHaveProperty("errors");
      }
    }
    expect(ask(" ".repeat(20_000))).toEqual({ errors: [{ message: "the query is too long" }] });
  });

  it("rejects a body without a query", () => {
    for (const body of [undefined, null, 1, "x", {}, { query: 1 }]) {
      expect(answerGraphql(body, find)).toHaveProperty("errors");
    }
  });
});
