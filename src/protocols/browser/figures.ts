/**
 * Metrics of a page, collected by scripts inside the page. The scripts are strings because they run in the browser, and
 * the compiler must not change them.
 */

import type { PageTimings, WebVitals } from "./command.ts";
import { PAINT_MS_MAX } from "./limits.ts";

export interface PageMetrics {
  readonly vitals: WebVitals;
  readonly timings: PageTimings | null;
}

/** Number of longest interactions to keep: the 98th percentile of 500 is the tenth longest. */
const INTERACTIONS_KEPT = 10;

/** Runs in every page before its own scripts and observes its performance entries. */
export const WATCH_SCRIPT = `(() => {
  if (globalThis !== globalThis.top || globalThis.__hyperscale !== undefined) return;
  const vitals = { fcpMs: null, lcpMs: null, cls: 0, fidMs: null };
  const observers = [];
  const watch = (type, observe, more) => {
    try {
      const take = (entries) => entries.forEach(observe);
      const observer = new PerformanceObserver((list) => take(list.getEntries()));
      observer.observe({ type, buffered: true, ...more });
      observers.push(() => take(observer.takeRecords()));
    } catch {} // Not supported by this browser: the value stays null.
  };
  watch("paint", (entry) => {
    if (entry.name === "first-contentful-paint") vitals.fcpMs = entry.startTime;
  });
  watch("largest-contentful-paint", (entry) => { vitals.lcpMs = entry.startTime; });
  // Shifts less than a second apart, over at most five seconds, form one window.
  let shifts = { value: 0, first: 0, last: 0 };
  watch("layout-shift", (entry) => {
    if (entry.hadRecentInput) return;
    const at = entry.startTime;
    if (at - shifts.last > 1000 || at - shifts.first > 5000) shifts = { value: 0, first: at, last: at };
    shifts.value += entry.value;
    shifts.last = at;
    vitals.cls = Math.max(vitals.cls, shifts.value);
  });
  const longest = new Map();
  const interaction = (id, ms) => {
    longest.set(id, Math.max(longest.get(id) ?? 0, ms));
    if (longest.size <= ${INTERACTIONS_KEPT}) return;
    const [shortest] = [...longest].reduce((a, b) => (b[1] < a[1] ? b : a));
    longest.delete(shortest);
  };
  watch("event", (entry) => {
    if (entry.interactionId > 0) interaction(entry.interactionId, entry.duration);
  }, { durationThreshold: 16 });
  watch("first-input", (entry) => {
    vitals.fidMs = entry.processingStart - entry.startTime;
    // May be below the threshold of event entries; it counts all the same.
    if (entry.interactionId > 0) interaction(entry.interactionId, entry.duration);
  });
  const inpMs = () => {
    const sorted = [...longest.values()].sort((a, b) => b - a);
    const skipped = Math.floor((performance.interactionCount ?? sorted.length) / 50);
    return sorted[Math.min(skipped, sorted.length - 1)] ?? null;
  };
  const timings = (entry) => entry === undefined ? null : {
    redirectMs: entry.redirectEnd - entry.redirectStart,
    dnsMs: entry.domainLookupEnd - entry.domainLookupStart,
    connectMs: (entry.secureConnectionStart || entry.connectEnd) - entry.connectStart,
    tlsMs: entry.secureConnectionStart === 0 ? 0 : entry.connectEnd - entry.secureConnectionStart,
    waitingMs: entry.responseStart - entry.requestStart,
    receivingMs: entry.responseEnd - entry.responseStart,
    domInteractiveMs: entry.domInteractive,
    domContentLoadedMs: entry.domContentLoadedEventEnd,
    loadMs: entry.loadEventEnd,
  };
  const read = () => {
    for (const flush of observers) flush();
    const [entry] = performance.getEntriesByType("navigation");
    const ttfbMs = entry === undefined || entry.responseStart === 0 ? null : entry.responseStart;
    return { vitals: { ttfbMs, ...vitals, inpMs: inpMs() }, timings: timings(entry) };
  };
  Object.defineProperty(globalThis, "__hyperscale", { value: read });
})()`;

/** Returns the observed metrics after the next paint. */
export const READ_SCRIPT = `new Promise((resolve) => {
  const finish = () => resolve(globalThis.__hyperscale?.() ?? null);
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(finish)));
  setTimeout(finish, ${PAINT_MS_MAX});
})`;
