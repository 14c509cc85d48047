/**
 * Pages built from web/, with their data embedded. A page contains everything it needs, so it works from disk, from a
 * CI artifact or as a mail attachment.
 */

import { readFile } from "node:fs/promises";
import { deflateRawSync } from "node:zlib";
import type { RunSummary } from "../../core/load/results/model.ts";
import type { Comparison } from "../compare/compare.ts";
import type { Trends } from "../trends/trends.ts";
import { packSummary } from "./packed.ts";
import type { PageData } from "./page-data.ts";

/** The element of a page's index.html that its data replaces. */
const EMPTY_DATA = '<script type="text/plain" id="data"></script>';

/** Beside the compiled code, and for code run from source in the checkout. */
const PAGE_PLACES = ["../../web/", "../../../dist/web/"];

/** A run to compare this one with. */
interface Baseline {
  readonly summary: RunSummary;
  /** As the user named it. */
  readonly file: string;
  readonly comparison: Comparison;
}

interface ReportOptions {
  /** Page without data, instead of the installed one. */
  readonly page?: string | undefined;
  readonly baseline?: Baseline | undefined;
}

/** report.html of one run. */
export async function reportHtml(
  summary: RunSummary,
  { baseline, page }: ReportOptions = {},
): Promise<string> {
  const data: PageData = {
    run: packSummary(summary),
    baseline:
      baseline === undefined
        ? null
        : {
            run: packSummary(baseline.summary),
            file: baseline.file,
            startedAt: baseline.summary.startedAt,
            comparison: baseline.comparison,
          },
  };
  const title = `${summary.verdict}: ${summary.name} · Hyperscale report`;
  return insertData(page ?? (await readPage("report.html")), title, data);
}

/** trends.html of several runs. */
export async function trendsHtml(trends: Trends, page?: string): Promise<string> {
  const title = `${trends.name} · Hyperscale trends`;
  return insertData(page ?? (await readPage("trends.html")), title, trends);
}

/** Deflated and base64-encoded, so that no text of a run can end the element. */
function insertData(page: string, title: string, data: unknown): string {
  if (!page.includes(EMPTY_DATA)) throw new Error("the page has no place for its data");
  const packed = deflateRawSync(JSON.stringify(data), { level: 9 }).toString("base64");
  return page
    .replace(EMPTY_DATA, () => EMPTY_DATA.replace("><", () => `>${packed}<`))
    .replace(/<title>[^<]*<\/title>/, () => `<title>${escapeHtml(title)}</title>`);
}

async function readPage(name: string): Promise<string> {
  for (const place of PAGE_PLACES) {
    try {
      return await readFile(new URL(place + name, import.meta.url), "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  throw new Error(
    `the page web/${name} is missing from this installation; ` +
      "in a checkout run `npm run build`, otherwise install hyperscale again",
  );
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
