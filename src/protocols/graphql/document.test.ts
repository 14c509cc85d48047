import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DOCUMENT_DEPTH_MAX, readDocument } from "./document.ts";

describe("valid documents", () => {
  it.each([
    ["{ a }", [{ kind: "query", name: null, variables: [] }]],
    ["query Q { a }", [{ kind: "query", name: "Q", variables: [] }]],
    ["mutation M @live { a }", [{ kind: "mutation", name: "M", variables: [] }]],
    ["query query { on query fragment }", [{ kind: "query", name: "query", variables: [] }]],
    [
      "query A { a } query B { b }",
      [
        { kind: "query", name: "A", variables: [] },
        { kind: "query", name: "B", variables: [] },
      ],
    ],
    [
      "query($a: Int!, $b: [ID!]! = [1], $c: String) { f(a: $a, b: $b, c: $c) }",
      [
        {
          kind: "query",
          name: null,
          variables: [
            { name: "a", required: true },
            { name: "b", required: false },
            { name: "c", required: false },
          ],
        },
      ],
    ],
  ])("%s", (text, operations) => {
    expect(readDocument(text)).toEqual(operations);
  });

  it.each([
    '\uFEFF# a comment\n"what it does" query A("why" $x: Int @d(a: 1)) @e { a(x: $x) @include(if: true) }',
    "{ alias: field(list: [1, -2.5e+3, 0.1], object: {a: {b: []}, e: ENUM, n: null}) { ...F } }" +
      "fragment F on T { ... on U { v } ... @x { w } }",
    '{ a(s: "quote \\" \\u00e9 \\u{1F600} \\n", b: """block "with" \\""" and \\ inside""") }',
    "fragment A on T { ...B } fragment B on T { ...A } { ...A }",
  ])("%s", (text) => {
    expect(readDocument(text)).toHaveLength(1);
  });
});

describe("invalid documents", () => {
  it.each([
    ["", 1, 1, "it is empty"],
    ["# nothing", 1, 10, "it is empty"],
    ["{}", 1, 2, "expected a name, found }"],
    ["{ a", 1, 4, "expected a name, found the end"],
    ["{ a }}", 1, 6, "expected query, mutation, fragment or {, found }"],
    ["{ a() }", 1, 5, "expected a name, found )"],
    ["{ a(b 1) }", 1, 7, "expected :, found 1"],
    ["{ a(b:) }", 1, 7, "expected a value, found )"],
    ["query($a: Int = $b) { c }", 1, 17, "expected a constant value, found $"],
    ["quary Q { a }", 1, 1, "expected query, mutation, fragment or {, found quary"],
    ["type T { a: Int }", 1, 1, "expected query, mutation, fragment or {, found type"],
    ["fragment on on T { a } { b }", 1, 10, 'a fragment cannot be called "on"'],
    ["query A {\n  a(x: 01)\n}", 2, 8, "this is not a valid number"],
    ['{ a(x: "open) }', 1, 8, "a string is not closed, or contains an invalid character"],
    ['{ a(x: """open\\""") }', 1, 8, "a string is not closed, or contains an invalid character"],
    ["{ a ? }", 1, 5, '"?" has no meaning here'],
    ["{ ...F }", 1, 6, 'there is no fragment "F"'],
    ["fragment F on T { a }", 1, 22, "it contains no operation, only fragments"],
    ["{ a(b: $c) }", 1, 9, 'the variable "$c" is not declared'],
    ["query Q { ...F }\nfragment F on T { a(b: $c) }", 2, 25, 'the variable "$c" is not declared'],
    ["query A { a } query A { b }", 1, 15, 'two operations "A"'],
    ["query A { a } { b }", 1, 15, "an operation without a name must be the only one"],
    ["query($a: Int $a: Int) { b }", 1, 16, 'two variables "$a"'],
  ])("%j", (text, line, column, problem) => {
    const message = `the GraphQL document is wrong at line ${line}, column ${column}: ${problem}`;
    expect(() => readDocument(text)).toThrow(message);
  });

  it("rejects endless nesting without a stack overflow", () => {
    const nested = (depth: number): string => `${"{ a ".repeat(depth)}${"}".repeat(depth)}`;
    expect(readDocument(nested(DOCUMENT_DEPTH_MAX))).toHaveLength(1);
    expect(() => readDocument(nested(DOCUMENT_DEPTH_MAX + 1))).toThrow(/nested too deeply/);
    expect(() => readDocument(`{ a(b: ${"[".repeat(100_000)}`)).toThrow(/nested too deeply/);
    expect(() => readDocument("x".repeat(2_000_000))).toThrow(/at most/);
  });

  it("accepts or rejects any text with a readable error (OPT-9)", () => {
    const piece = fc.oneof(
      fc.constantFrom(
        "{",
        "}",
        "(",
        ")",
        "$",
        ":",
        "...",
        "query",
        "a",
        "on",
        '"',
        '"""',
        "1",
        "\\",
      ),
      fc.string({ maxLength: 3 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
        try {
          readDocument(pieces.join(" "));
        } catch (error) {
          expect(String(error)).toMatch(/line \d+, column \d+: ./);
        }
      }),
      { seed: 7, numRuns: 2000 },
    );
  });
});
