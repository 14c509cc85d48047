/**
 * Browser context of one virtual user, with one page and its own cookies, storage and cache. The time to open it is
 * `connectMs`. A call that is abandoned closes its context.
 */

import type { Browser, BrowserContext } from "playwright-core";
import { errorText } from "../../core/base/error-text.ts";
import { clock } from "../call.ts";
import { tlsOptions } from "../net/open-socket.ts";
import type { CarriedCall, Connection, ConnectionHost } from "../target/connection.ts";
import type { BrowserCommand } from "./command.ts";
import { WATCH_SCRIPT } from "./figures.ts";
import type { BrowserProcess } from "./process.ts";
import { Tab, type TabEvents } from "./tab.ts";

export interface ContextOptions {
  readonly viewport: { readonly width: number; readonly height: number };
  readonly userAgent: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Opens a context per iteration instead of per user. */
  readonly perIteration: boolean;
  /** How long to wait for an element. */
  readonly elementMs: number;
}

export class BrowserConnection implements Connection<BrowserCommand>, TabEvents {
  readonly #host: ConnectionHost;
  readonly #process: BrowserProcess;
  readonly #options: ContextOptions;
  #context: BrowserContext | null = null;
  #tab: Tab | null = null;
  #call: CarriedCall<BrowserCommand> | null = null;
  #over = false;

  constructor(
    host: ConnectionHost,
    process: BrowserProcess,
    options: ContextOptions,
    startedAt: number,
  ) {
    this.#host = host;
    this.#process = process;
    this.#options = options;
    void this.#open(startedAt);
  }

  async #open(startedAt: number): Promise<void> {
    try {
      const context = await this.#newContext(await this.#process.acquire());
      this.#context = context;
      await context.addInitScript({ content: WATCH_SCRIPT });
      const page = await context.newPage();
      this.#tab = new Tab(context, page, this.#options.elementMs, this);
      const now = clock();
      const times = { connectMs: now - startedAt, tlsMs: -1, loginMs: -1 };
      if (this.#over) this.#closeContext();
      else this.#host.opened(times, now);
    } catch (error) {
      this.lost(`no page could be opened: ${errorText(error).split("\n", 1)}`);
      this.#closeContext();
    }
  }

  #newContext(browser: Browser): Promise<BrowserContext> {
    const { headers, userAgent, viewport } = this.#options;
    const { origin, settings, user } = this.#host;
    const { insecure } = settings;
    // The only place that decides, and records, whether certificates are verified.
    const verified = !origin.secure || tlsOptions(origin, { insecure, user }).rejectUnauthorized;
    return browser.newContext({
      viewport: { ...viewport },
      ...(userAgent === "" ? {} : { userAgent }),
      extraHTTPHeaders: { ...headers },
      ignoreHTTPSErrors: verified === false,
    });
  }

  send(call: CarriedCall<BrowserCommand>, now: number): void {
    this.#call = call;
    call.wrote(0, 1, now);
    if (this.#tab !== null) void this.#perform(this.#tab, call);
  }

  async #perform(tab: Tab, call: CarriedCall<BrowserCommand>): Promise<void> {
    const { bytesIn, bytesOut } = tab;
    const outcome = await tab.perform(call.command);
    if (this.#call !== call || this.#over) return;
    this.#call = null;
    const { at } = outcome;
    call.wrote(tab.bytesOut - bytesOut, 0, at);
    if (tab.bytesIn > bytesIn) call.read(tab.bytesIn - bytesIn, at);
    if (outcome.kind === "answered") call.answered(outcome.value, at);
    else if (outcome.kind === "refused") call.refused(outcome.code, outcome.text, at);
    else call.failed(outcome.failure, at);
  }

  documentBegun(status: number, now: number): void {
    this.#call?.status(status);
    this.#call?.read(0, now);
  }

  lost(text: string): void {
    if (this.#over) return;
    this.destroy();
    this.#host.lost({ kind: "reset", text }, clock());
  }

  reset(): void {
    if (this.#options.perIteration) this.lost("the iteration is over");
  }

  destroy(): void {
    if (this.#over) return;
    this.#over = true;
    this.#call = null;
    if (this.#tab !== null) this.#closeContext();
  }

  /** Called once: on `destroy`, or when opening completes after it. */
  #closeContext(): void {
    const closed = this.#context?.close() ?? Promise.resolve();
    // Closing fails when the browser has exited, which closed the context.
    closed.catch(() => undefined).finally(() => this.#process.release());
  }
}
