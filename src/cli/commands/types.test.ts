import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startDemoTarget } from "../../demo/server.ts";
import { SHOP_PROTO, startShop } from "../../protocols/grpc/testing/server.ts";
import { registerTypes } from "./types.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
let folder: string;
let output: string;
beforeEach((context) => {
  // Inside the checkout, so that flows find the package and its types.
  folder = join(root, "node_modules", ".cache", `types-${process.pid}-${context.task.id}`);
  mkdirSync(folder, { recursive: true });
  output = "";
  const write = (text: string | Uint8Array): boolean => {
    output += String(text);
    return true;
  };
  vi.spyOn(process.stdout, "write").mockImplementation(write);
  vi.spyOn(process.stderr, "write").mockImplementation(write);
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
  process.exitCode = 0;
});

const at = (name: string): string => join(folder, name);
const read = (name: string): string => readFileSync(at(name), "utf8");

async function types(...args: string[]): Promise<number> {
  process.exitCode = 0;
  const program = new Command();
  registerTypes(program);
  await program.parseAsync(["types", ...args], { from: "user" });
  return Number(process.exitCode);
}

async function ofOpenapi(parts: object): Promise<string> {
  writeFileSync(at("api.json"), JSON.stringify({ openapi: "3.1.0", info: {}, ...parts }));
  expect(await types(at("api.json"))).toBe(0);
  return read("api.types.ts");
}

/** Compiler output for the files in the folder. */
function compiled(): string {
  const compilerOptions = { rootDir: root, typeRoots: [join(root, "node_modules/@types")] };
  const config = { extends: join(root, "tsconfig.json"), include: ["*.ts"], compilerOptions };
  writeFileSync(at("tsconfig.json"), JSON.stringify(config));
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  return spawnSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8" }).stdout;
}

const DEMO = {
  paths: {
    "/users": {
      get: {
        parameters: [{ name: "page", in: "query", schema: { type: "integer" } }],
        responses: { 200: json({ type: "object", properties: { users: listOf("User") } }) },
      },
    },
    "/users/{id}": {
      parameters: [{ name: "id", in: "path", required: true, schema: { type: "integer" } }],
      get: { responses: { 200: json({ $ref: "#/components/schemas/User" }) } },
    },
    "/login": {
      post: {
        requestBody: { required: true, ...json({ $ref: "#/components/schemas/Login" }) },
        responses: { 200: json({ $ref: "#/components/schemas/Login" }) },
      },
    },
  },
  components: {
    schemas: {
      User: {
        type: "object",
        required: ["id", "name"],
        properties: { id: { type: "integer" }, name: { type: "string" } },
      },
      Login: {
        type: "object",
        required: ["user", "password", "token"],
        properties: {
          user: { type: "string" },
          password: { type: "string", writeOnly: true },
          token: { type: "string", readOnly: true },
        },
      },
    },
  },
};

function json(schema: object): object {
  return { description: "", content: { "application/json": { schema } } };
}

function listOf(name: string): object {
  return { type: "array", items: { $ref: `#/components/schemas/${name}` } };
}

const FLOW = `
import { flow, http, route } from "hyperscalejs";
import { grpc } from "hyperscalejs/grpc";
import type { Paths } from "./api.types.ts";
import type { Methods } from "./shop.types.ts";

const users = http.target<Paths>(process.env["HTTP_URL"] ?? "http://127.0.0.1:1");
const shop = grpc.target<Methods>(process.env["GRPC_URL"] ?? "grpc://127.0.0.1:1", { proto: "shop.proto" });

export default flow("typed", { iterations: 5, vus: 1 }, async ({ check, step }) => {
  const login = { user: "ada", password: "secret" };
  const session = await step("login", users.post("/login", { json: login, timeout: "5s" }));
  const mine = users.with({ headers: { authorization: "Bearer " + session.json().token } });
  const user = await step("user", mine.get(route("/users/{id}", { id: 7 })));
  check("the user", () => user.json().id === 7);
  const list = await step("list", mine.get("/users", { params: { page: 1 } }));
  check("users", () => list.json().users !== undefined);
  const item = await step("item", shop.unary("shop.Catalog/GetItem", { id: "7" }));
  check("the item", () => item.value.name === "item 7" && item.value.unit === "GRAM");
  const put = await step("put", shop.clientStream("shop.Catalog/Put", [item.value, { unit: "PIECE" }]));
  check("both", () => put.value.count === 2);
});
`;

/** A mistake per line: each line has to be one. */
const WRONG = `
import { http, route } from "hyperscalejs";
import { grpc } from "hyperscalejs/grpc";
import type { Paths } from "./api.types.ts";
import type { Methods, Item } from "./shop.types.ts";
const users = http.target<Paths>("http://127.0.0.1:1");
const shop = grpc.target<Methods>("grpc://127.0.0.1:1", { proto: "shop.proto" });
${[
  'users.get("/user");',
  'users.get("/users/{id}");',
  'users.get(route("/users/{id}", { id: "seven" }));',
  'users.get(route("/users/{id}", { name: 7 }));',
  "users.get(route`/users/7`);",
  'users.get("/users", { params: { pages: 1 } });',
  'users.get("/users", { params: { page: "one" } });',
  'users.get("/users", { json: {} });',
  'users.post("/users");',
  'users.post("/login");',
  'users.post("/login", { json: { user: "ada" } });',
  'users.post("/login", { json: { user: "ada", password: "x", token: "y" } });',
  'users.post("/login", { json: { user: "ada", password: "x" }, timeot: "5s" });',
  'shop.unary("shop.Catalog/GetItme", { id: 7 });',
  'shop.unary("shop.Catalog/List", { count: 7 });',
  'shop.unary("shop.Catalog/GetItem", { ids: 7 });',
  'shop.unary("shop.Catalog/GetItem", { id: true });',
  'shop.clientStream("shop.Catalog/Put", [{ unit: "POUND" }]);',
  "export const price = (item: Item): number => item.price;",
]
  .map((line) => `// @ts-expect-error\n${line}`)
  .join("\n")}
`;

describe("hyperscale types", () => {
  it("writes types that a flow compiles with, rejects mistakes, and servers agree with", async () => {
    copyFileSync(SHOP_PROTO, at("shop.proto"));
    expect(await types(at("shop.proto"))).toBe(0);
    await ofOpenapi(DEMO);
    expect(readdirSync(folder).filter((name) => name.endsWith(".tmp"))).toEqual([]);
    writeFileSync(at("flow.ts"), FLOW);
    writeFileSync(at("wrong.ts"), WRONG);
    expect(compiled()).toBe("");

    const [target, server] = [await startDemoTarget({ port: 0 }), await startShop()];
    const urls = {
      HTTP_URL: `http://127.0.0.1:${target.port}`,
      GRPC_URL: `grpc://127.0.0.1:${server.port}`,
    };
    const child = spawn(
      process.execPath,
      [
        join(root, "bin", "hyperscale.js"),
        "run",
        at("flow.ts"),
        "--ui",
        "none",
        "--out",
        at("out"),
      ],
      { env: { ...process.env, ...urls }, stdio: "inherit" },
    );
    const [code] = (await once(child, "exit")) as [number | null];
    await target.close();
    await server.stop();
    expect(code).toBe(0);
    expect(server.calls()).toBe(10);
  });

  it("writes the same for the same file, and keeps files it did not write", async () => {
    const first = await ofOpenapi(DEMO);
    expect(await ofOpenapi(DEMO)).toBe(first);
    writeFileSync(at("mine.ts"), "precious");
    expect(await types(at("api.json"), "--out", at("mine.ts"))).toBe(2);
    expect(output).toContain("was not written by this command");
    expect(read("mine.ts")).toBe("precious");
  });

  it("reports what stopped it, and writes nothing then", async () => {
    const files = {
      "api.yaml": ["openapi: 3.1.0\n", /YAML is not read: .*npx js-yaml .*api.yaml/],
      "old.json": ['{ "swagger": "2.0" }', /is Swagger 2.0, not OpenAPI 3/],
      "other.json": ['{ "name": "x" }', /is no OpenAPI 3 document/],
      "cut.json": ['{ "openapi": ', /is no proper JSON/],
      "empty.json": ['{ "openapi": "3.0.0", "paths": {} }', /nothing to call/],
      "cut.proto": ["message {", /cut.proto cannot be read/],
      "far.proto": ['import "there.proto";', /far.proto cannot be read: .*there.proto/],
      "bare.proto": ['syntax = "proto3"; message A {}', /no service with methods/],
    } as const;
    for (const [name, [text, said]] of Object.entries(files)) {
      writeFileSync(at(name), text);
      output = "";
      expect(await types(at(name)), name).toBe(2);
      expect(output, name).toMatch(said);
    }
    expect(await types(at("absent.proto"))).toBe(2);
    expect(output).toContain(`there is no file ${at("absent.proto")}`);
    expect(await types(at("bare.proto"), "--out", at("types.d"))).toBe(2);
    expect(readdirSync(folder).sort()).toEqual(Object.keys(files).sort());
  });
});

describe("the types of an OpenAPI document", () => {
  const answered = (schema: object): Promise<string> =>
    ofOpenapi({ paths: { "/": { get: { responses: { 200: json(schema) } } } } });

  it.each([
    [{ type: ["string", "null"] }, "string | null"],
    [{ type: "string", nullable: true }, "string | null"],
    [{ enum: ["a", 1, null] }, '"a" | 1 | null'],
    [{ type: "array", items: { type: ["integer", "null"] } }, "readonly (number | null)[]"],
    [{ oneOf: [{ type: "string" }, { type: "number" }] }, "string | number"],
    [{ type: "object" }, "{ readonly [name: string]: unknown }"],
    [{ additionalProperties: { type: "integer" } }, "{ readonly [name: string]: number }"],
    [{}, "unknown"],
  ])("have %j as %s", async (schema, type) => {
    expect(await answered(schema)).toContain(`readonly response: ${type};`);
    expect(output).not.toContain("without a type");
  });

  it("have unsupported parts as unknown, and the command names them", async () => {
    const written = await answered({ $ref: "other.json#/*/" });
    expect(written).toContain('readonly response: unknown /* $ref "other.json#/* /" */;');
    expect(output).toContain('without a type: GET / 200: $ref "other.json#/*/"');
    expect(await answered({ not: { type: "string" } })).toContain('unknown /* "not" */');
  });

  it("compile whatever the names and comments, and where types are recursive", async () => {
    const upload = { "multipart/form-data": { schema: { type: "object" } } };
    const node = { properties: { "next-one": { $ref: "#/components/schemas/a.b" } } };
    const written = await ofOpenapi({
      paths: {
        "/x/{a-b}/{c}": {
          summary: "no */ end",
          put: {
            summary: "ends */ early",
            requestBody: { content: upload },
            responses: { default: json(listOf("Paths")), 404: json({}) },
          },
        },
        "/y": { patch: { requestBody: { content: { "text/csv": {} } }, responses: {} } },
      },
      components: { schemas: { "a.b": node, Paths: { allOf: [node, { type: "object" }] } } },
    });
    expect(written).toContain('import type { BodyValue, FormValues } from "hyperscalejs";');
    expect(written).toContain("export type Paths2 =");
    expect(compiled()).toBe("");
  });
});

it("types every kind of field of a .proto file as calls send and receive it", async () => {
  writeFileSync(
    at("all.proto"),
    `syntax = "proto3"; package all;
     import "google/protobuf/timestamp.proto";
     service S { rpc A (M) returns (M); }
     message M {
       uint64 big = 1; bytes raw = 2; M inner = 3; optional bool maybe = 4;
       oneof choice { string text = 5; E one = 6; }
       map<string, sint64> counts = 7; repeated E some_many = 8; google.protobuf.Timestamp at = 9;
       message Methods { float f = 1; } Methods methods = 10;
     }
     enum E { NONE = 0; SOME = 2; }`,
  );
  expect(await types(at("all.proto"), "--out", at("deep/all.ts"))).toBe(0);
  const written = read("deep/all.ts");
  const [answered] = /export interface M \{[^}]*\{[^}]*\}[^}]*\}/.exec(written) ?? [];
  expect(
    answered
      ?.split("\n")
      .slice(1, -1)
      .map((line) => line.trim()),
  ).toEqual([
    "readonly big: string;",
    "readonly raw: Uint8Array;",
    "readonly inner: M | null;",
    "readonly maybe?: boolean;",
    "readonly text?: string;",
    "readonly one?: E;",
    "readonly counts: { readonly [key: string]: string };",
    "readonly someMany: readonly E[];",
    "readonly at: Timestamp | null;",
    "readonly methods: AllMMethods | null;",
  ]);
  expect(written).toContain(
    "readonly counts?: { readonly [key: string]: string | number | bigint };",
  );
});
