/** `hyperscale types <file>`: types of a target, of a .proto file or an OpenAPI document. */

import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, join, relative, resolve } from "node:path";
import type { Command } from "commander";
import { errorText } from "../../core/base/error-text.ts";
import { EXIT_USAGE } from "../../host/exit-codes.ts";
import { makeFolder } from "../../host/folders.ts";
import { complain } from "../print.ts";
import type { WrittenTypes } from "../types/written-types.ts";

interface TypesFlags {
  readonly out?: string;
}

/** Maximum size of a description. */
const FILE_BYTES_MAX = 64 * 1024 * 1024;
/** Unsupported parts that are listed one by one. */
const UNSUPPORTED_SHOWN_MAX = 20;
/** First line of a file that may be overwritten. */
const MARK = "// Written by `hyperscale types";

export function registerTypes(program: Command): void {
  program
    .command("types")
    .summary("write the types of a target, of a .proto file or an OpenAPI document")
    .description(
      "Writes a TypeScript file with the types of a server's interface. The compiler then checks " +
        "requests, parameters, bodies and answers of a flow's calls.",
    )
    .argument("<file>", "a .proto file, or an OpenAPI 3 document as JSON")
    .option("-o, --out <file>", "file to write (default: <file>.types.ts beside it)")
    .addHelpText("after", HELP)
    .action(async (file: string, flags: TypesFlags) => {
      try {
        await writeTypes(file, flags.out ?? defaultOut(file));
      } catch (error) {
        complain(`hyperscale types: ${errorText(error)}`);
        process.exitCode = EXIT_USAGE;
      }
    });
}

const HELP = `
gRPC, of shop.proto (needs protobufjs: npm install protobufjs):
  $ hyperscale types shop.proto

  import type { Methods } from "./shop.types.ts";
  const shop = grpc.target<Methods>("grpc://shop.test:50051", { proto: "shop.proto" });
  const item = await step("item", shop.unary("shop.Catalog/GetItem", { id: 7 }));

HTTP, of openapi.json (YAML is not read: npx js-yaml openapi.yaml > openapi.json):
  $ hyperscale types openapi.json --out shop.types.ts

  import type { Paths } from "./shop.types.ts";
  const shop = http.target<Paths>("https://shop.test/api");
  const item = await step("item", shop.get(route("/items/{id}", { id: 7 })));

What has no type is \`unknown\` in the file, with a comment, and named on stderr.
The same file gives the same types: write them again when it changes, and commit both.
Exit code: 0 when the file is written, 2 when it is not; nothing is ever half written.
`;

function defaultOut(file: string): string {
  return join(dirname(file), `${basename(file, extname(file))}.types.ts`);
}

async function writeTypes(file: string, out: string): Promise<void> {
  if (!/\.[cm]?ts$/.test(out)) throw new Error(`${out}: types are written to a .ts file`);
  const types = await typesOf(file);
  if (existsSync(out) && !readFileSync(out, "utf8").startsWith(MARK))
    throw new Error(`${out} is there already and was not written by this command: name another`);
  const source = basename(file);
  const head = `${MARK} ${source}\`: change ${source} and write it again.\n`;
  await replaceFile(out, `${head}// For ${types.usage}.\n\n${types.text}`);
  const shown = types.unsupported.slice(0, UNSUPPORTED_SHOWN_MAX);
  const more = types.unsupported.length - shown.length;
  for (const part of shown) complain(`without a type: ${part}`);
  if (more > 0) complain(`without a type: ${more} more; look for "unknown /*" in ${out}`);
  process.stdout.write(`Wrote ${relative(process.cwd(), out) || out}, for ${types.usage}.\n`);
}

async function typesOf(file: string): Promise<WrittenTypes> {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) throw new Error(`there is no file ${file}`);
  if (!found.isFile()) throw new Error(`${file} is no file`);
  if (found.size > FILE_BYTES_MAX)
    throw new Error(`${file} is longer than ${FILE_BYTES_MAX / 1024 / 1024} MiB`);
  if (extname(file) === ".proto") {
    const { protoTypes } = await import("../types/proto.ts");
    return protoTypes(resolve(file));
  }
  const { openapiTypes } = await import("../types/openapi.ts");
  return openapiTypes(readFileSync(file, "utf8"), file);
}

/** Replaces the file atomically. */
async function replaceFile(file: string, text: string): Promise<void> {
  const beside = `${file}.${process.pid}.tmp`;
  try {
    await makeFolder(dirname(resolve(file)));
    writeFileSync(beside, text);
    renameSync(beside, file);
  } catch (error) {
    rmSync(beside, { force: true });
    throw new Error(`cannot write ${file}: ${errorText(error)}`);
  }
}
