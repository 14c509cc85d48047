/** Compile-time checks of GraphQL targets: each line marked below must be an error. */

import { expect, expectTypeOf, it } from "vitest";
import type { GraphqlResponse } from "./response.ts";
import { GraphqlTarget } from "./target.ts";
import type { TypedDocument } from "./typed-document.ts";

const api = new GraphqlTarget("http://127.0.0.1:1/graphql");
type Answer<Call extends { readonly resultType?: unknown }> = NonNullable<Call["resultType"]>;
interface Named {
  readonly user: { readonly name: string };
}
class TypedString<Data, Variables> extends String implements TypedDocument<Data, Variables> {
  declare readonly __apiType?: (variables: Variables) => Data;
}
const byId = new TypedString<Named, { id: string }>("query($id: ID!) { user(id: $id) { name } }");
const first = new TypedString<Named, { id?: string }>("{ user { name } }");

it("types data by the call or its document", () => {
  const call = api.query<Named>("{ user { name } }");
  expectTypeOf<Answer<typeof call>>().toEqualTypeOf<GraphqlResponse<Named, Named>>();
  expectTypeOf<Answer<typeof call>["data"]>().toEqualTypeOf<Named>();
  const typed = api.query(byId, { id: "1" });
  expectTypeOf<Answer<typeof typed>["data"]>().toEqualTypeOf<Named>();
  api.query(first);
});

it("rejects variables of the wrong type and awaiting a description", () => {
  // @ts-expect-error a variable is required
  expect(() => api.query(byId)).toThrow(/"\$id" is required/);
  // @ts-expect-error a variable of another type
  api.query(byId, { id: 7 });
  // @ts-expect-error a description is not awaited
  const awaited = async (): Promise<Named> => await api.query<Named>("{ user { name } }");
  expect(awaited).toBeTypeOf("function");
});
