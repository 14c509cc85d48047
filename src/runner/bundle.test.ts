import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { bundleWorkflow } from "./bundle.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "hyperscale bundle é-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Where the inline source map of a bundle says that its sources are. */
function sourcesOf(address: string): string[] {
  const text = readFileSync(fileURLToPath(address), "utf8");
  const [, encoded = ""] = /sourceMappingURL=data:[^,]*,(\S+)/.exec(text) ?? [];
  const map: { sources: string[]; sourceRoot?: string } = JSON.parse(
    Buffer.from(encoded, "base64").toString(),
  );
  return map.sources.map((source) => fileURLToPath(new URL(source, map.sourceRoot ?? address)));
}

describe("a bundled workflow", () => {
  it("leads errors and debuggers back to the user's own files, wherever the bundle lies", async () => {
    const file = join(folder, "flow.ts");
    const helper = join(folder, "helper.ts");
    writeFileSync(helper, "export const name: string = 'shop';\n");
    writeFileSync(file, 'import { name } from "./helper.ts";\nexport default name;\n');
    const bundle = await bundleWorkflow(file);
    try {
      expect(sourcesOf(bundle.address).sort()).toEqual([file, helper].sort());
      expect(bundle.address).not.toBe(pathToFileURL(file).href);
    } finally {
      await bundle.remove();
    }
  });
});
