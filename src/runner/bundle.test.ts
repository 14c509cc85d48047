import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { bundleWorkflow, ownIndex } from "./bundle.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "hyperscale bundle é-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Sources according to the inline source map of a bundle. */
function sourcesOf(address: string): string[] {
  const text = readFileSync(fileURLToPath(address), "utf8");
  const [, encoded = ""] = /sourceMappingURL=data:[^,]*,(\S+)/.exec(text) ?? [];
  const map: { sources: string[]; sourceRoot?: string } = JSON.parse(
    Buffer.from(encoded, "base64").toString(),
  );
  return map.sources.map((source) => fileURLToPath(new URL(source, map.sourceRoot ?? address)));
}

describe("a bundled workflow", () => {
  it("leads errors and debuggers back to the user's own files, wherever the bundle is", async () => {
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

  it.each(["hyperscalejs", "hyperscale"])("resolves %s to the package that runs", async (name) => {
    const file = join(folder, "flow.ts");
    const imports = `import { http } from "${name}";\nimport { redis } from "${name}/redis";\n`;
    writeFileSync(file, `${imports}export default [http, redis];\n`);
    const bundle = await bundleWorkflow(file);
    try {
      const text = readFileSync(fileURLToPath(bundle.address), "utf8");
      expect(text).toContain(`from "${ownIndex()}"`);
      expect(text).toContain(`from "${ownIndex()}/../protocols/redis/index.js"`);
    } finally {
      await bundle.remove();
    }
  });

  it("is in a private folder, and is removed afterwards", async () => {
    const file = join(folder, "flow.ts");
    writeFileSync(file, "export default 1;\n");
    const [one, two] = [await bundleWorkflow(file), await bundleWorkflow(file)];
    const places = [one, two].map(({ address }) => dirname(fileURLToPath(address)));
    expect(places[0]).not.toBe(places[1]);
    for (const place of places) expect(statSync(place).mode & 0o777).toBe(0o700);
    await Promise.all([one.remove(), two.remove()]);
    expect(places.map((place) => existsSync(place))).toEqual([false, false]);
  });

  it("gives each of its files its own address, and includes packages of the workspace", async () => {
    const own = join(folder, "packages", "shared");
    mkdirSync(own, { recursive: true });
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(own, join(folder, "node_modules", "shared"));
    writeFileSync(
      join(own, "package.json"),
      '{"name":"shared","type":"module","exports":"./shared.ts"}',
    );
    writeFileSync(join(own, "shared.ts"), "export const where: string = import.meta.url;\n");
    const file = join(folder, "flow.ts");
    writeFileSync(
      file,
      'import { where } from "shared";\n' +
        "export default [where, import.meta.url, import.meta.dirname];\n",
    );
    const bundle = await bundleWorkflow(file);
    try {
      const { default: places } = await import(bundle.address);
      const shared = pathToFileURL(join(realpathSync(own), "shared.ts")).href;
      expect(places).toEqual([shared, pathToFileURL(file).href, folder]);
    } finally {
      await bundle.remove();
    }
  });
});
