/** Page of one virtual user: performs commands on it and counts its network traffic. */

import type { BrowserContext, Page, Request } from "playwright-core";
import { errorText } from "../../core/base/error-text.ts";
import { clock } from "../call.ts";
import type { ConnectionFailure } from "../target/connection.ts";
import type { BrowserCommand, LoadedPage, WaitUntil } from "./command.ts";
import { elementRefusal, navigationFailure, networkErrorOf } from "./failure.ts";
import { type PageMetrics, READ_SCRIPT } from "./figures.ts";

const STATUS_FAILED = 400;

type Outcome =
  | { readonly kind: "answered"; readonly value: unknown; readonly at: number }
  | { readonly kind: "refused"; readonly code: string; readonly text: string; readonly at: number }
  | { readonly kind: "failed"; readonly failure: ConnectionFailure; readonly at: number };

export interface TabEvents {
  /** The document that a command requested has started to arrive, with this status. */
  documentBegun(status: number, now: number): void;
  /** No further command can be performed. */
  lost(text: string): void;
}

/** A document that the page requested. */
interface Navigation {
  readonly request: Request;
  status: number;
}

type Navigating = Extract<BrowserCommand, { kind: "goto" | "click" | "press" }>;
type OnElement = Exclude<BrowserCommand, { kind: "goto" | "vitals" | "use" }>;

export class Tab {
  readonly #page: Page;
  readonly #elementMs: number;
  #navigation: Navigation | null = null;
  /** Ends the wait for a document that broke off: Chromium renders the part that arrived and keeps loading. */
  #brokeOff: (name: string) => void = () => undefined;
  /** Sizes that the browser has yet to report. */
  readonly #counting = new Set<Promise<void>>();
  requests = 0;
  requestsFailed = 0;
  bytesIn = 0;
  bytesOut = 0;

  constructor(context: BrowserContext, page: Page, elementMs: number, events: TabEvents) {
    this.#page = page;
    this.#elementMs = elementMs;
    // Calls have their own deadlines.
    page.setDefaultTimeout(0);
    context.on("request", () => this.requests++);
    context.on("requestfinished", (request) => this.#count(request));
    context.on("requestfailed", () => this.requestsFailed++);
    page.on("request", (request) => {
      if (isDocument(request, page)) this.#navigation = { request, status: 0 };
    });
    page.on("response", (response) => {
      const navigation = this.#navigation;
      if (navigation === null || response.request() !== navigation.request) return;
      navigation.status = response.status();
      events.documentBegun(navigation.status, clock());
    });
    page.on("requestfailed", (request) => {
      const name = networkErrorOf(request.failure()?.errorText.replace(/^(?!net::)/, "net::"));
      if (request === this.#navigation?.request && name !== null) this.#brokeOff(name);
    });
    page.on("crash", () => events.lost("the page crashed"));
    page.on("close", () => events.lost("the page was closed"));
  }

  /** Never throws. */
  async perform(command: BrowserCommand): Promise<Outcome> {
    this.requests = 0;
    this.requestsFailed = 0;
    try {
      return await this.#perform(command);
    } catch (error) {
      return this.#outcomeOf(error, command);
    } finally {
      this.#brokeOff = () => undefined;
      await Promise.all(this.#counting);
    }
  }

  #perform(command: BrowserCommand): Promise<Outcome> {
    switch (command.kind) {
      case "goto":
        return this.#navigate(command, command.waitUntil, command.expect);
      case "click":
      case "press":
        return command.navigates
          ? this.#navigate(command, "load", [])
          : answered(this.#onElement(command));
      case "vitals":
        return answered(this.#metrics().then((metrics) => metrics?.vitals ?? null));
      case "use":
        return answered(command.script(this.#page));
      default:
        return answered(this.#onElement(command));
    }
  }

  #onElement(command: OnElement): Promise<unknown> {
    const element = this.#page.locator(command.selector);
    const options = { timeout: this.#elementMs };
    switch (command.kind) {
      case "click":
        return element.click(options);
      case "press":
        return element.press(command.key, options);
      case "fill":
        return element.fill(command.text, options);
      case "select":
        return element.selectOption([...command.values], options);
      case "wait":
        return element.waitFor(options);
      case "text":
        // biome-ignore lint/performance/useDomNodeTextContent: the visible text is meant.
        return element.innerText(options);
    }
  }

  async #navigate(
    command: Navigating,
    waitUntil: WaitUntil,
    expect: readonly number[],
  ): Promise<Outcome> {
    this.#navigation = null;
    const brokeOff = new Promise<never>((_, reject) => {
      this.#brokeOff = (name) => reject(new Error(`net::${name}`));
    });
    const opened =
      command.kind === "goto"
        ? this.#page.goto(command.address, { waitUntil })
        : Promise.all([this.#page.waitForEvent("load"), this.#onElement(command)]);
    await Promise.race([opened, brokeOff]);
    const at = clock();
    const status = this.#statusNow();
    if (expect.length > 0 ? !expect.includes(status) : status >= STATUS_FAILED) {
      const failure = { kind: "status", code: `${status}`, text: `HTTP ${status}` } as const;
      return { kind: "failed", failure, at };
    }
    return { kind: "answered", value: await this.#loaded(status), at };
  }

  #statusNow(): number {
    return this.#navigation?.status ?? 0;
  }

  async #loaded(status: number): Promise<LoadedPage> {
    const { requests, requestsFailed } = this;
    const metrics = await this.#metrics();
    return {
      address: this.#page.url(),
      status,
      timings: metrics?.timings ?? null,
      vitals: metrics?.vitals ?? null,
      requests,
      requestsFailed,
    };
  }

  /** Null when the page navigated away meanwhile. */
  async #metrics(): Promise<PageMetrics | null> {
    try {
      return await this.#page.evaluate<PageMetrics | null>(READ_SCRIPT);
    } catch (error) {
      if (/context was destroyed|navigat/i.test(errorText(error))) return null;
      throw error;
    }
  }

  #outcomeOf(error: unknown, command: BrowserCommand): Outcome {
    const at = clock();
    const name = networkErrorOf(error);
    if (name !== null) return { kind: "failed", failure: navigationFailure(name), at };
    const selector = "selector" in command ? JSON.stringify(command.selector) : "";
    const refusal = selector === "" ? null : elementRefusal(error, selector, this.#elementMs);
    if (refusal !== null) return { kind: "refused", ...refusal, at };
    const [text = ""] = errorText(error).split("\n", 1);
    return { kind: "failed", failure: { kind: "exception", text }, at };
  }

  #count(request: Request): void {
    const counted = request.sizes().then(
      (sizes) => {
        this.bytesIn += sizes.responseHeadersSize + sizes.responseBodySize;
        this.bytesOut += sizes.requestHeadersSize + sizes.requestBodySize;
      },
      () => undefined, // The page has closed; its bytes are no longer needed.
    );
    this.#counting.add(counted);
    void counted.then(() => this.#counting.delete(counted));
  }
}

function isDocument(request: Request, page: Page): boolean {
  return request.isNavigationRequest() && request.frame() === page.mainFrame();
}

async function answered(result: Promise<unknown>): Promise<Outcome> {
  const value = await result;
  return { kind: "answered", value, at: clock() };
}
