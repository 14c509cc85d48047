/** Commands for a page and the values they return. */

import type { Page } from "playwright-core";

export type WaitUntil = "commit" | "domcontentloaded" | "load" | "networkidle";

export type BrowserCommand =
  | {
      readonly kind: "goto";
      readonly address: string;
      readonly waitUntil: WaitUntil;
      /** Statuses of the document that count as success; empty means all below 400. */
      readonly expect: readonly number[];
    }
  | { readonly kind: "click"; readonly selector: string; readonly navigates: boolean }
  | {
      readonly kind: "press";
      readonly selector: string;
      readonly key: string;
      readonly navigates: boolean;
    }
  | { readonly kind: "fill"; readonly selector: string; readonly text: string }
  | { readonly kind: "select"; readonly selector: string; readonly values: readonly string[] }
  | { readonly kind: "wait"; readonly selector: string }
  | { readonly kind: "text"; readonly selector: string }
  | { readonly kind: "vitals" }
  | { readonly kind: "use"; readonly script: (page: Page) => Promise<unknown> };

/** Web vitals of a page so far (https://web.dev/articles/vitals); null where none was observed. */
export interface WebVitals {
  /** Time to first byte of the document, redirects included. */
  readonly ttfbMs: number | null;
  /** First contentful paint. */
  readonly fcpMs: number | null;
  /** Largest contentful paint. */
  readonly lcpMs: number | null;
  /** Cumulative layout shift: the worst session window. */
  readonly cls: number;
  /** Interaction to next paint: the worst, or the 98th percentile of many. */
  readonly inpMs: number | null;
  /** First input delay. */
  readonly fidMs: number | null;
}

/** Timings of a navigation, in milliseconds; the last three count from its start. */
export interface PageTimings {
  readonly redirectMs: number;
  readonly dnsMs: number;
  readonly connectMs: number;
  readonly tlsMs: number;
  /** From the request to the first byte of the document. */
  readonly waitingMs: number;
  readonly receivingMs: number;
  readonly domInteractiveMs: number;
  readonly domContentLoadedMs: number;
  readonly loadMs: number;
}

/** A page that was opened. */
export interface LoadedPage {
  /** Final address, after redirects. */
  readonly address: string;
  readonly status: number;
  readonly timings: PageTimings | null;
  readonly vitals: WebVitals | null;
  /** HTTP requests that the browser made for the page; `requestsFailed` counts those without a response. */
  readonly requests: number;
  readonly requestsFailed: number;
}
