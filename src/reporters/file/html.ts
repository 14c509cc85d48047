/**
 * report.html: the page built from web/report, with one run's summary put into it. The page holds
 * everything it needs, so it works from disk, from a CI artifact or as a mail attachment.
 */

import { readFile } from "node:fs/promises";
import type { RunSummary } from "../../core/run/results/model.ts";

/** The element of web/report/index.html that the summary replaces. */
const EMPTY_DATA = '<script type="application/json" id="summary">null</script>';

/** Beside the compiled code, and for code run from source in the checkout. */
const PAGE_PLACES = ["../../web/report.html", "../../../dist/web/report.html"];

export async function reportHtml(summary: RunSummary, page?: string): Promise<string> {
  return insertSummary(page ?? (await readPage()), summary);
}

/** No text of the summary can end the script element: every `<` is written as an escape. */
export function insertSummary(page: string, summary: RunSummary): string {
  if (!page.includes(EMPTY_DATA)) throw new Error("the report page has no place for the summary");
  const data = JSON.stringify(summary).replaceAll("<", "\\u003c");
  const title = `${summary.verdict}: ${summary.name} · Hyperscale report`;
  return page
    .replace(EMPTY_DATA, () => EMPTY_DATA.replace("null", () => data))
    .replace(/<title>[^<]*<\/title>/, () => `<title>${escapeHtml(title)}</title>`);
}

async function readPage(): Promise<string> {
  for (const place of PAGE_PLACES) {
    try {
      return await readFile(new URL(place, import.meta.url), "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  throw new Error(
    "the report page (web/report.html) is missing from this installation; " +
      "in a checkout run `npm run build`, otherwise install hyperscale again",
  );
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
