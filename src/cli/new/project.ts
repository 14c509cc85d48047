/**
 * Project files around a first workflow: a package.json that installs Hyperscale and the types an editor needs, and a
 * tsconfig.json that finds them. Only where there is no project yet.
 */

import { existsSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

interface ProjectFile {
  readonly name: string;
  readonly text: string;
}

/** The package itself, from src/ and from dist/ alike. */
const PACKAGE = fileURLToPath(new URL("../../..", import.meta.url));

/** Name under which it is installed. */
const NAME = "hyperscalejs";

/** Empty when the folder is inside a project, which stays as it is. */
export function projectFiles(
  folder: string,
  workflow: string,
  version: string,
): readonly ProjectFile[] {
  if (insideProject(resolve(folder))) return [];
  const typed = /\.m?ts$/.test(workflow);
  return [
    { name: "package.json", text: json(manifest(folder, workflow, version, typed)) },
    ...(typed ? [{ name: "tsconfig.json", text: json(TSCONFIG) }] : []),
  ];
}

/** The command that installs the package into an existing project; null where it is installed already. */
export function installLine(folder: string, version: string): string | null {
  if (isInstalled(resolve(folder))) return null;
  const from = source(version);
  return `npm install -D ${from.startsWith("file:") ? quoted(from) : `${NAME}@${from}`}`;
}

function isInstalled(folder: string): boolean {
  if (existsSync(join(folder, "node_modules", NAME, "package.json"))) return true;
  const above = dirname(folder);
  return above !== folder && isInstalled(above);
}

/** Quoted for a shell. */
export function quoted(path: string): string {
  return /\s/.test(path) ? JSON.stringify(path) : path;
}

function insideProject(folder: string): boolean {
  if (existsSync(join(folder, "package.json"))) return true;
  const above = dirname(folder);
  return above !== folder && insideProject(above);
}

function manifest(folder: string, workflow: string, version: string, typed: boolean): object {
  const name = basename(resolve(folder))
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, "-")
    .replace(/^-+|-+$/g, "");
  return {
    name: name === "" ? "load-tests" : name,
    private: true,
    type: "module",
    scripts: { test: `hyperscale run ${JSON.stringify(workflow)}` },
    devDependencies: {
      ...(typed ? { "@types/node": "^20.19.0" } : {}),
      [NAME]: source(version),
      ...(typed ? { typescript: ">=5.7" } : {}),
    },
  };
}

/** A checkout is installed from its folder; a published package by its version. */
function source(version: string): string {
  const checkout = existsSync(join(PACKAGE, "tools", "bootstrap.mjs"));
  return checkout ? `file:${PACKAGE.replace(/[/\\]$/, "")}` : `^${version}`;
}

const TSCONFIG = {
  compilerOptions: {
    module: "nodenext",
    target: "es2023",
    strict: true,
    noEmit: true,
    types: ["node"],
  },
};

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
