/** Opens built pages of web/ from disk in Chromium, and remembers what went wrong in them. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { chromiumPath } from "../needs.ts";
import { PATIENCE_MS } from "../patience.ts";

const root = new URL("../../", import.meta.url);

/** One page of web/, bundled as for the package. */
export async function builtPage(name: string): Promise<string> {
  const { buildPage }: { buildPage: (folder: string, entry: string) => Promise<string> } =
    await import(new URL("tools/build-page.mjs", root).href);
  const folder = fileURLToPath(new URL(`web/${name}`, root));
  return buildPage(folder, join(folder, "main.tsx"));
}

interface Opened {
  readonly page: Page;
  readonly problems: string[];
  readonly requests: string[];
}

export class Opener {
  readonly #name: string;
  #browser: Browser | undefined;
  #place = "";
  #files = 0;
  /** Without data. */
  page = "";

  constructor(name: string) {
    this.#name = name;
  }

  async start(): Promise<void> {
    this.#place = await mkdtemp(join(tmpdir(), "hyperscale-page-"));
    this.page = await builtPage(this.#name);
    const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];
    this.#browser = await chromium.launch({ executablePath: chromiumPath ?? "", args });
  }

  async stop(): Promise<void> {
    await this.#browser?.close();
    await rm(this.#place, { recursive: true, force: true });
  }

  async open(html: string, options: object, fragment = ""): Promise<Opened> {
    const file = join(this.#place, `${this.#files++}.html`);
    await writeFile(file, html);
    return this.goTo(`${pathToFileURL(file).href}${fragment}`, options);
  }

  async goTo(address: string, options: object = {}): Promise<Opened> {
    if (this.#browser === undefined) throw new Error("start() comes first");
    const page = await this.#browser.newPage({
      viewport: { width: 1280, height: 900 },
      bypassCSP: true,
      ...options,
    });
    page.setDefaultTimeout(PATIENCE_MS);
    const problems: string[] = [];
    const requests: string[] = [];
    page.on("console", (message) => problems.push(message.text()));
    page.on("pageerror", (error) => problems.push(error.message));
    page.on("request", (request) => requests.push(request.url()));
    await page.goto(address);
    await page.waitForSelector("h1, .empty");
    return { page, problems, requests };
  }
}
