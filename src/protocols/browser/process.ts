/**
 * Chromium as a separate process: one per set of launch options, shared by all virtual users of a core, each with its
 * own context. The preparation of a run starts it, so that its second or two are in no measurement; it exits soon after
 * the last user.
 */

import { existsSync } from "node:fs";
import type { Browser } from "playwright-core";
import { errorText } from "../../core/base/error-text.ts";
import { clearTimeout, setTimeout } from "../net/timers.ts";
import { OptionalPackage } from "../target/driver.ts";
import { IDLE_MS_MAX, UNUSED_MS_MAX } from "./limits.ts";

const playwright = new OptionalPackage<typeof import("playwright-core")>(
  "playwright-core",
  "the browser",
);

interface LaunchOptions {
  /** "" searches for one. */
  readonly executablePath: string;
  readonly headless: boolean;
  readonly args: readonly string[];
}

const INSTALL_LINE = "npx playwright-core install chromium";

/** Where operating systems install it. */
const PLACES = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/usr/bin/google-chrome-stable",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
];

/** Takes the option, else CHROMIUM_PATH, else Playwright's own browser, else the system's. */
export function findChromium(
  wanted: string,
  ofPlaywright: string,
  { exists = existsSync, environment = process.env } = {},
): string {
  const named = wanted === "" ? (environment["CHROMIUM_PATH"] ?? "") : wanted;
  if (named !== "") {
    if (exists(named)) return named;
    throw new Error(`the browser is not at ${named}: ${INSTALL_LINE} installs one of its own`);
  }
  const found = [ofPlaywright, ...PLACES].find((path) => path !== "" && exists(path));
  if (found !== undefined) return found;
  throw new Error(`the browser needs Chromium, which was not found: ${INSTALL_LINE}`);
}

export class BrowserProcess {
  readonly #options: LaunchOptions;
  #running: Promise<Browser> | null = null;
  #users = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LaunchOptions) {
    this.#options = options;
  }

  /** Runs before the run; when no browser is installed, the error shows the command that installs one. */
  async prepare(): Promise<void> {
    await playwright.load();
    await this.#start();
    this.#endLater(UNUSED_MS_MAX);
  }

  /** Acquires the browser for one user, who must `release` it even when this fails. */
  acquire(): Promise<Browser> {
    this.#users++;
    clearTimeout(this.#timer);
    return this.#start();
  }

  release(): void {
    this.#users--;
    this.#endLater(IDLE_MS_MAX);
  }

  #endLater(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#users === 0) this.#timer = setTimeout(() => this.#end(), ms);
  }

  #end(): void {
    const running = this.#running;
    this.#running = null;
    running?.then((browser) => browser.close()).catch(() => undefined); // Closing fails when it has already exited.
  }

  #start(): Promise<Browser> {
    if (this.#running !== null) return this.#running;
    const started = this.#launch();
    this.#running = started;
    const forget = (): void => {
      if (this.#running === started) this.#running = null;
    };
    started.then((browser) => browser.once("disconnected", forget), forget);
    return started;
  }

  async #launch(): Promise<Browser> {
    const { args, executablePath, headless } = this.#options;
    const { chromium } = playwright.module;
    const path = findChromium(executablePath, chromium.executablePath());
    try {
      return await chromium.launch({ executablePath: path, headless, args: [...args] });
    } catch (error) {
      const [line = ""] = errorText(error).split("\n", 1);
      throw new Error(`the browser at ${path} did not start: ${line}`, { cause: error });
    }
  }
}

const processes = new Map<string, BrowserProcess>();

/** Returns the shared process for these launch options. */
export function browserProcess(options: LaunchOptions): BrowserProcess {
  const key = JSON.stringify(options);
  const known = processes.get(key) ?? new BrowserProcess(options);
  processes.set(key, known);
  return known;
}
