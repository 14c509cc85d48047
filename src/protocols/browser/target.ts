/**
 * \n A site opened in a browser, as users write it.
 *
 *   const shop = browser.target("https://shop.test");
 *   const home = await step("home", shop.goto("/"));
 *   await step("search", shop.fill("input[name=q]", "shoes"));
 *   await step("find", shop.click("text=Search", { navigates: true }));
 */

import type { Page } from "playwright-core";
import type { Duration } from "../../core/base/duration.ts";
import { DescribedCall } from "../target/described-call.ts";
import type { TargetResult } from "../target/result.ts";
import { checkNames, millisecondsOf, Target, type TargetProtocol } from "../target/target.ts";
import type { BrowserCommand, LoadedPage, WaitUntil, WebVitals } from "./command.ts";
import { BrowserConnection, type ContextOptions } from "./connection.ts";
import { TEXT_CHARACTERS_MAX } from "./limits.ts";
import { browserProcess } from "./process.ts";

export interface BrowserOptions {
  /** Timeout of each call; the workflow's `timeout` by default. */
  readonly timeout?: Duration;
  /** How long to wait until an element is present and usable; 5 s by default. */
  readonly elementTimeout?: Duration;
  /** Path of Chromium; defaults to CHROMIUM_PATH, Playwright's own browser, or the system's. */
  readonly executablePath?: string;
  /** Runs without a window, as by default. */
  readonly headless?: boolean;
  /** Additional command-line arguments of Chromium. */
  readonly args?: readonly string[];
  /** "user" (default) keeps cookies, storage and cache between iterations; "iteration" starts each one empty. */
  readonly context?: "user" | "iteration";
  /** Viewport in pixels; 1280 x 720 by default. */
  readonly viewport?: { readonly width: number; readonly height: number };
  readonly userAgent?: string;
  /** Sent with every request of a page. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Accepts any certificate. */
  readonly insecure?: boolean;
}

const OPTION_NAMES: Readonly<Record<keyof BrowserOptions, true>> = {
  ...{ args: true, context: true, elementTimeout: true, executablePath: true, headers: true },
  ...{ headless: true, insecure: true, timeout: true, userAgent: true, viewport: true },
};

export interface GotoOptions {
  /** When the page counts as loaded; "load" by default. */
  readonly waitUntil?: WaitUntil;
  /** Statuses of the document that count as success; below 400 by default. */
  readonly expect?: number | readonly number[];
  readonly timeout?: Duration;
}

export interface ActionOptions {
  /** The action leads to another page; the call ends when that page has loaded. */
  readonly navigates?: boolean;
}

export type BrowserResponse<Value = unknown> = TargetResult<Value>;
export type BrowserCall<Value> = DescribedCall<BrowserCommand, Value>;
/** Value of an action: the page that it led to, if any. */
type Reached<Options extends ActionOptions> = Options extends { readonly navigates: true }
  ? LoadedPage
  : null;

const BROWSER: Omit<TargetProtocol, "load"> = {
  name: "browser",
  schemes: { http: { port: 80, secure: false }, https: { port: 443, secure: true } },
  optionNames: [],
};

const ELEMENT_MS = 5_000;
const WAITS: readonly string[] = ["commit", "domcontentloaded", "load", "networkidle"];

export class BrowserTarget {
  readonly #target: Target<BrowserCommand>;

  constructor(address: string, options: BrowserOptions = {}) {
    checkNames("browser.target", options, Object.keys(OPTION_NAMES));
    const { args = [], executablePath = "", headless = true, insecure, timeout } = options;
    const process = browserProcess({ args, executablePath, headless });
    const context = contextOf(options);
    this.#target = new Target(
      { ...BROWSER, load: () => process.prepare() },
      address,
      {
        ...(insecure === undefined ? {} : { insecure }),
        ...(timeout === undefined ? {} : { timeout }),
      },
      (host, now) => new BrowserConnection(host, process, context, now),
    );
  }

  /** Opens a page by path, or by the address of any host. */
  goto(path: string, options: GotoOptions = {}): BrowserCall<LoadedPage> {
    checkNames("goto", options, ["waitUntil", "expect", "timeout"]);
    const { expect = [], timeout, waitUntil = "load" } = options;
    const { url } = this.#target;
    if (!URL.canParse(path, url.href)) throw new TypeError(`${JSON.stringify(path)} is not a path`);
    if (!WAITS.includes(waitUntil)) throw new TypeError(`waitUntil is one of ${WAITS.join(", ")}`);
    const { href, pathname } = new URL(path, url.href);
    const command = { kind: "goto", address: href, waitUntil, expect: [expect].flat() } as const;
    return new DescribedCall(this.#target, {
      command,
      title: `goto ${pathname}`,
      shown: `goto ${href}`,
      timeout,
      decode: (value) => value as LoadedPage,
    });
  }

  click<Options extends ActionOptions = object>(
    selector: string,
    options?: Options,
  ): BrowserCall<Reached<Options>> {
    const command = { kind: "click", selector: checkText(selector), ...action("click", options) };
    return this.#call(command as BrowserCommand, (value) => (value ?? null) as Reached<Options>);
  }

  /** Presses a key in an element; names as in Playwright: "Enter". */
  press<Options extends ActionOptions = object>(
    selector: string,
    key: string,
    options?: Options,
  ): BrowserCall<Reached<Options>> {
    const input = { selector: checkText(selector), key: checkText(key) };
    const command = { kind: "press", ...input, ...action("press", options) };
    return this.#call(command as BrowserCommand, (value) => (value ?? null) as Reached<Options>);
  }

  /** Clears a field and types the text into it. */
  fill(selector: string, text: string): BrowserCall<null> {
    if (typeof text !== "string" || text.length > TEXT_CHARACTERS_MAX)
      throw new TypeError(`fill takes a text of at most ${TEXT_CHARACTERS_MAX} characters`);
    return this.#call({ kind: "fill", selector: checkText(selector), text }, () => null);
  }

  /** Selects options of a `select` by value or label. */
  select(selector: string, ...values: readonly string[]): BrowserCall<readonly string[]> {
    const command = { kind: "select", selector: checkText(selector), values } as const;
    return this.#call(command, (value) => value as readonly string[]);
  }

  /** Waits until an element is present and visible. */
  waitFor(selector: string): BrowserCall<null> {
    return this.#call({ kind: "wait", selector: checkText(selector) }, () => null);
  }

  /** Returns the visible text of an element. */
  text(selector: string): BrowserCall<string> {
    return this.#call({ kind: "text", selector: checkText(selector) }, String);
  }

  /** Returns the web vitals so far; layout shifts and interactions occur after the load. */
  vitals(): BrowserCall<WebVitals | null> {
    return this.#call({ kind: "vitals" }, (value) => value as WebVitals | null);
  }

  /** Runs any Playwright script on the page, measured as one call. */
  use<Value>(title: string, script: (page: Page) => Promise<Value>): BrowserCall<Value> {
    if (typeof script !== "function") throw new TypeError("use takes a title and a function");
    return new DescribedCall(this.#target, {
      command: { kind: "use", script },
      title: checkText(title),
      decode: (value) => value as Value,
    });
  }

  /** Opens the page of the address and summarises its timings in a line. */
  ping(): BrowserCall<string> {
    const { href } = this.#target.url;
    const command = { kind: "goto", address: href, waitUntil: "load", expect: [] } as const;
    return new DescribedCall(this.#target, {
      command,
      title: "goto",
      decode: (value) => summaryOf(value as LoadedPage),
    });
  }

  #call<Value>(command: BrowserCommand, decode: (value: unknown) => Value): BrowserCall<Value> {
    const { kind } = command;
    const shown = "selector" in command ? `${kind} ${command.selector}` : kind;
    return new DescribedCall(this.#target, { command, title: shown, decode });
  }
}

function action(name: string, options: ActionOptions = {}): { readonly navigates: boolean } {
  checkNames(name, options, ["navigates"]);
  return { navigates: options.navigates === true };
}

function contextOf(options: BrowserOptions): ContextOptions {
  const { context = "user", elementTimeout, headers = {}, userAgent = "" } = options;
  const { viewport = { width: 1_280, height: 720 } } = options;
  if (context !== "user" && context !== "iteration")
    throw new TypeError(`context is "user" or "iteration", not ${JSON.stringify(context)}`);
  const perIteration = context === "iteration";
  const elementMs =
    elementTimeout === undefined ? ELEMENT_MS : millisecondsOf(elementTimeout, "elementTimeout");
  return { viewport, userAgent, headers, perIteration, elementMs };
}

function summaryOf({ address, requests, timings, vitals }: LoadedPage): string {
  const ms = (value: number | null | undefined): string => `${Math.round(value ?? 0)} ms`;
  const paint = vitals?.lcpMs === null ? "nothing painted" : `LCP ${ms(vitals?.lcpMs)}`;
  const count = `${requests} request${requests === 1 ? "" : "s"}`;
  return `${address}: loaded in ${ms(timings?.loadMs)}, ${paint}, ${count}`;
}

function checkText(text: unknown): string {
  if (typeof text === "string" && text !== "" && text.length <= TEXT_CHARACTERS_MAX) return text;
  throw new TypeError(`${JSON.stringify(text)} is not a selector, key or title`);
}
