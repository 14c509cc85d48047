// One web page as one HTML file: esbuild bundles script and styles, and both are inlined into the
// folder's index.html at its <!-- styles --> and <!-- script --> marks.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

export async function buildPage(folder, entry) {
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    outdir: folder,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".css": "css" },
    legalComments: "none",
  });
  const output = (suffix) =>
    result.outputFiles.find((file) => file.path.endsWith(suffix))?.text ?? "";
  // A literal "</script" inside the bundle would end the inline script early.
  const script = output(".js").replaceAll("</script", "<\\/script");
  return readFileSync(join(folder, "index.html"), "utf8")
    .replace("<!-- styles -->", () => `<style>${output(".css")}</style>`)
    .replace("<!-- script -->", () => `<script type="module">${script}</script>`);
}
