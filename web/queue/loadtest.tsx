/** A load test as a task: its verdict, whether it can be trusted, and its metrics, live and at the end. */

import { digestOf, verdictText } from "../../src/core/load/results/digest.ts";
import {
  formatClock,
  formatMs,
  formatPercent,
  formatRate,
  virtualUsers,
} from "../../src/core/load/results/format.ts";
import type { Figures } from "../../src/ui/figures-line.ts";
import { Alert, Chip, Facts } from "../shared/parts.tsx";
import { Table } from "../shared/table.tsx";

/** Beside the state of the task: a load test that passed may still be untrusted. */
export function VerdictChip({ result }: { readonly result: unknown }) {
  const digest = digestOf(result);
  if (digest === null) return null;
  const { doubt, verdict } = digest;
  const tone = verdict === "failed" ? "bad" : doubt === null ? "good" : "warn";
  return <Chip tone={tone}>{verdictText(digest)}</Chip>;
}

export function LoadtestResult({ result }: { readonly result: unknown }) {
  const digest = digestOf(result);
  if (digest === null) return null;
  const { doubt, figures, reasons } = digest;
  return (
    <>
      {doubt !== null && (
        <Alert tone="warn" title="Not to be trusted">
          <p>{doubt}</p>
        </Alert>
      )}
      <div class="card">
        <Facts facts={[["verdict", verdictText(digest)], ...figures]} />
        {reasons.map((reason) => (
          <p key={reason}>{reason}</p>
        ))}
      </div>
    </>
  );
}

export function LiveFigures({ figures }: { readonly figures: Figures }) {
  const { elapsedSeconds, failedPerSecond, phase, ratePerSecond, totalSeconds, workflows } =
    figures;
  const users = workflows.reduce((sum, { activeVus }) => sum + activeVus, 0);
  const share =
    totalSeconds === null || totalSeconds <= 0
      ? ""
      : ` of ${formatClock(totalSeconds)} (${formatPercent(Math.min(1, elapsedSeconds / totalSeconds))})`;
  const steps = workflows.flatMap((workflow) => workflow.steps);
  return (
    <>
      <div class="card">
        <Facts
          facts={[
            ["phase", phase],
            ["time", `${formatClock(elapsedSeconds)}${share}`],
            ["rate", formatRate(ratePerSecond)],
            ["failed", formatRate(failedPerSecond)],
            ["users", virtualUsers(users)],
          ]}
        />
      </div>
      {steps.length > 0 && (
        <Table
          caption="Steps, over the last five seconds"
          columns={[
            { title: "Step" },
            { title: "Rate", numeric: true },
            { title: "p95", numeric: true },
            { title: "p99", numeric: true },
          ]}
          rows={steps.map((step, at) => ({
            key: `${at} ${step.name}`,
            cells: [
              { text: step.name },
              { text: formatRate(step.ratePerSecond) },
              { text: formatMs(step.p95) },
              { text: formatMs(step.p99) },
            ],
          }))}
        />
      )}
    </>
  );
}
