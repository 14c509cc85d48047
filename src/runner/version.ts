import { readFileSync } from "node:fs";

/** The version in package.json, two folders up from here, built or not. */
export function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const { version } = JSON.parse(text) as { readonly version: string };
  return version;
}
