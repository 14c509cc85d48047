/**
 * A summary as the page carries it. Most of the text of a long run is the histograms of its windows: edges of cells in
 * decimal. Packed, a histogram is two lists of small numbers (steps from cell to cell, counts), which deflate to about
 * one byte per cell; unpacked it is the same summary again.
 */

import type {
  HistogramSummary,
  LatencyWindows,
  RunSummary,
  StepSummary,
} from "../../core/load/results/model.ts";
import { cellHigh, cellOf } from "../../core/load/stats/histogram.ts";

type PackedHistogram = readonly [steps: readonly number[], counts: readonly number[]];
type Packed = Omit<LatencyWindows, "histograms" | "failures"> & {
  readonly histograms: readonly PackedHistogram[];
  readonly failures?: readonly PackedHistogram[] | undefined;
};
type PackedStep = Omit<StepSummary, "windows"> & { readonly windows?: Packed | undefined };
type PackedWorkflow = Omit<RunSummary["workflows"][number], "steps" | "aside"> & {
  readonly steps: readonly PackedStep[];
  readonly aside?: readonly PackedStep[] | undefined;
};
export type PackedSummary = Omit<RunSummary, "workflows"> & {
  readonly workflows: readonly PackedWorkflow[];
};

export function packSummary(summary: RunSummary): PackedSummary {
  return {
    ...summary,
    workflows: summary.workflows.map((workflow) => ({
      ...workflow,
      steps: workflow.steps.map(packStep),
      aside: workflow.aside?.map(packStep),
    })),
  };
}

export function unpackSummary(summary: PackedSummary): RunSummary {
  return {
    ...summary,
    workflows: summary.workflows.map((workflow) => ({
      ...workflow,
      steps: workflow.steps.map(unpackStep),
      aside: workflow.aside?.map(unpackStep),
    })),
  };
}

function packStep(step: StepSummary): PackedStep {
  const { windows, ...rest } = step;
  if (windows === undefined) return rest;
  const { failures, histograms } = windows;
  return {
    ...rest,
    windows: { ...windows, histograms: histograms.map(pack), failures: failures?.map(pack) },
  };
}

function unpackStep(step: PackedStep): StepSummary {
  const { windows, ...rest } = step;
  if (windows === undefined) return rest;
  const { failures, histograms } = windows;
  return {
    ...rest,
    windows: { ...windows, histograms: histograms.map(unpack), failures: failures?.map(unpack) },
  };
}

function pack({ upToMs, count }: HistogramSummary): PackedHistogram {
  let previous = 0;
  const steps = upToMs.map((edge) => {
    const cell = cellOf(Math.round(edge * 1_000));
    const step = cell - previous;
    previous = cell;
    return step;
  });
  return [steps, count];
}

function unpack([steps, count]: PackedHistogram): HistogramSummary {
  let cell = 0;
  const upToMs = steps.map((step) => {
    cell += step;
    return cellHigh(cell) / 1_000;
  });
  return { upToMs, count };
}
