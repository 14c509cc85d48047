/** Data of a report page: a run, and optionally a baseline to compare it with. */

import type { Comparison } from "../compare/compare.ts";
import type { PackedSummary } from "./packed.ts";

export interface PageBaseline {
  readonly run: PackedSummary;
  /** Source as the user named it. */
  readonly file: string;
  readonly startedAt: string;
  readonly comparison: Comparison;
}

export interface PageData {
  readonly run: PackedSummary;
  readonly baseline: PageBaseline | null;
}
