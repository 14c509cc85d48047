/**
 * A GraphQL answerer for one fixed schema, hand-written and tiny: enough to test data, variables, field errors and
 * syntax errors.
 *
 *     type Query { user(id: ID!): User }
 *     type User { id: ID!  name: String! }
 */

const SCHEMA = "type Query { user(id: ID!): User } type User { id: ID! name: String! }";

interface GraphqlUser {
  readonly id: number;
  readonly name: string;
}

interface GraphqlAnswer {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly { readonly message: string; readonly path?: readonly string[] }[];
}

const QUERY_CHARACTERS_MAX = 10_000;

// query Name($id: ID!) { user(id: $id | "1" | 1) { id name } }
const DOCUMENT = new RegExp(
  [
    /^\s*(?:query(?:\s+\w+)?\s*(?:\([^)]*\))?\s*)?\{\s*/, // query Name($id: ID!) {
    /(?:(\w+)\s*:\s*)?(\w+)\s*/, // alias: user
    /(?:\(\s*id\s*:\s*(?:\$(\w+)|"([^"]*)"|(\d+))\s*\)\s*)?/, // (id: …)
    /(?:\{([^{}]*)\}\s*)?\}\s*$/, // { id name } }
  ]
    .map((part) => part.source)
    .join(""),
);

/** Answers one request body; the status is always 200, errors are inside, as GraphQL servers do. */
export function answerGraphql(
  input: unknown,
  findUser: (id: number) => GraphqlUser | undefined,
): GraphqlAnswer {
  const { query: text, variables } = requestOf(input);
  if (text !== null && text.length > QUERY_CHARACTERS_MAX) return failed("the query is too long");
  // Collapses white space first, so that the pattern takes linear time for any input.
  const query = text?.replace(/\s+/g, " ") ?? null;
  if (query === null) return failed('the body must be JSON with a "query"');
  if (/^\s*(mutation|subscription)\b/.test(query)) return failed("this schema has queries only");
  const match = DOCUMENT.exec(query);
  if (match === null) return failed(`syntax error, or more than this server knows: ${SCHEMA}`);
  const [, alias, field = "", variable, quoted, digits, selection] = match;
  if (field === "__typename") return { data: { [alias ?? field]: "Query" } };
  if (field !== "user") return failed(`Cannot query field "${field}" on type "Query".`);
  const id = variable === undefined ? (quoted ?? digits) : variables[variable];
  if (id === undefined || id === null) return failed('Argument "id" of "user" is required.');
  const fields = (selection ?? "").split(/[\s,]+/).filter((name) => name !== "");
  if (fields.length === 0) return failed('Field "user" must have a selection of subfields.');
  const unknown = fields.find((name) => name !== "id" && name !== "name");
  if (unknown !== undefined) return failed(`Cannot query field "${unknown}" on type "User".`);
  const key = alias ?? field;
  const user = findUser(Number(id));
  if (user === undefined) {
    return { data: { [key]: null }, errors: [{ message: `no user ${String(id)}`, path: [key] }] };
  }
  const known: Readonly<Record<string, string>> = { id: String(user.id), name: user.name };
  return { data: { [key]: Object.fromEntries(fields.map((name) => [name, known[name]])) } };
}

function failed(message: string): GraphqlAnswer {
  return { errors: [{ message }] };
}

interface GraphqlRequest {
  readonly query: string | null;
  readonly variables: Readonly<Record<string, unknown>>;
}

function requestOf(input: unknown): GraphqlRequest {
  if (typeof input !== "object" || input === null) return { query: null, variables: {} };
  const query = "query" in input && typeof input.query === "string" ? input.query : null;
  const variables = "variables" in input ? input.variables : undefined;
  const given = typeof variables === "object" && variables !== null ? variables : {};
  return { query, variables: Object.fromEntries(Object.entries(given)) };
}
