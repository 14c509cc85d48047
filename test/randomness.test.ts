/** Where the programs of a cluster take their randomness from, read from their sources. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../src", import.meta.url));

function sourcesIn(folder: string): readonly { readonly path: string; readonly text: string }[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((name) => `${folder}/${name}`)
    .filter((path) => /(?<!\.test)\.ts$/.test(path) && !path.includes("/testing/"))
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

const FOLDERS = ["nodes", "client", "ledger"];
/** The seed only shortens the pauses of one request, whose id is equally unpredictable. */
const OF_ONE_REQUEST = "ledger/client.ts: new Random(call.id)";

describe("randomness that peers must not foresee (SEC-14)", () => {
  it("is seeded from the platform's source of secrets in every process", () => {
    const seeds = FOLDERS.flatMap(sourcesIn).flatMap(({ path, text }) =>
      [...text.matchAll(/new Random\(([^()]*(?:\([^()]*\)[^()]*)*)\)/g)].map(
        ([whole]) => `${path}: ${whole}`,
      ),
    );
    expect(seeds.length).toBeGreaterThan(4);
    const foreseeable = seeds.filter((seed) => !/random(?:UUID|Bytes)\(/.test(seed));
    expect(foreseeable).toEqual([OF_ONE_REQUEST]);
  });

  it("is never the engine's, which can be worked out from what it gave", () => {
    const sources = [...FOLDERS, "core", "wire", "host"].flatMap(sourcesIn);
    expect(sources.length).toBeGreaterThan(300);
    expect(sources.filter(({ text }) => text.includes("Math.random"))).toEqual([]);
  });
});
