/** Health of the load generator, as a whole and core by core over time. */

import { useMemo } from "preact/hooks";
import {
  formatBytes,
  formatCompactPercent,
  formatMs,
  formatPercent,
} from "../../src/core/load/results/format.ts";
import { generatorTitle } from "../../src/core/load/results/generator-health.ts";
import type { CoreHealth } from "../../src/core/load/results/model.ts";
import { Chip, Section, Share } from "../shared/parts.tsx";
import type { Line } from "../shared/plot.ts";
import { Table } from "../shared/table.tsx";
import { TimeChart } from "../shared/time-chart.tsx";
import { lineStyle } from "./lines.ts";
import { middles, type RunView, valuesAt, windowsText } from "./run-view.ts";

export function Generator({ view }: { readonly view: RunView }) {
  const { generator } = view.summary;
  const verdict =
    generatorTitle(generator) === null ? (
      <Chip tone="good">had room to spare</Chip>
    ) : (
      <Chip tone="warn">{generator.limited ? "was the limit" : "was disturbed"}</Chip>
    );
  const columns = [
    { title: "Core" },
    { title: "CPU" },
    ...["Lag p50", "Lag p99", "Lag max", "Memory"].map((title) => ({ title, numeric: true })),
    { title: "State" },
  ];
  const rows = generator.cores.map((core) => ({
    key: String(core.core),
    cells: [
      { text: String(core.core) },
      { text: <Share share={core.cpu} tone={core.cpu > 0.9 ? "bad" : "plain"} /> },
      { text: formatMs(core.lagMsP50) },
      { text: formatMs(core.lagMsP99) },
      { text: formatMs(core.lagMsMax) },
      { text: formatBytes(core.residentBytes) },
      { text: core.alive ? "completed" : <b class="bad-text">lost</b> },
    ],
  }));
  return (
    <Section id="generator" title="Load generator" aside={verdict}>
      <p class="lead">
        The busiest executor core used {formatPercent(generator.cpu)} of a CPU; event loops ran at
        most {formatMs(generator.lagMsP99)} late (p99).
      </p>
      <CoresOverTime view={view} />
      {rows.length > 0 && (
        <Table caption="Health of the executor cores" columns={columns} rows={rows} />
      )}
    </Section>
  );
}

/** Beyond this number only the busiest cores have lines. */
const CORE_LINES_MAX = 8;

function CoresOverTime({ view }: { readonly view: RunView }) {
  const { timeline } = view;
  const windowSeconds = timeline.windowMs / 1_000;
  const moments = useMemo(() => middles(timeline.atSeconds, windowSeconds), [timeline]);
  const { cores } = view.summary.generator;
  const cpu = useMemo(
    () => coreLines(cores, moments, (core) => core.series?.cpu, formatPercent),
    [cores, moments],
  );
  const lag = useMemo(
    () => coreLines(cores, moments, (core) => core.series?.lagMs, formatMs),
    [cores, moments],
  );
  if (cpu.length === 0) return null;
  const rest = { note: windowsText(windowSeconds), windowSeconds, atSeconds: moments, height: 140 };
  return (
    <div class="card stack">
      <TimeChart
        id="cpu"
        title="CPU of the generator"
        description="CPU time of each executor core, 100 % for a whole CPU."
        lines={cpu}
        format={formatPercent}
        formatTick={formatCompactPercent}
        {...rest}
      />
      <TimeChart
        id="lag"
        title="Lag of the event loops"
        description="How late the latest timer of each window was."
        lines={lag}
        format={formatMs}
        formatTick={formatMs}
        {...rest}
      />
    </div>
  );
}

function coreLines(
  cores: readonly CoreHealth[],
  moments: readonly number[],
  pick: (core: CoreHealth) => readonly number[] | undefined,
  format: (value: number) => string,
): Line[] {
  const lines = cores.flatMap((core, index): Line[] => {
    const values = pick(core);
    const { series } = core;
    if (values === undefined || series === undefined) return [];
    const grid = { starts: series.atSeconds, windowSeconds: series.windowMs / 1_000 };
    const rest = values.length === 0 ? "" : `max ${format(Math.max(...values))}`;
    return [
      {
        label: `core ${core.core}`,
        values: valuesAt(moments, grid, values),
        ...lineStyle(index),
        rest,
      },
    ];
  });
  if (lines.length <= CORE_LINES_MAX) return lines;
  const most = moments.map((_, at) => {
    const known = lines.flatMap(({ values }) => values[at] ?? []);
    return known.length === 0 ? null : Math.max(...known);
  });
  return [{ label: `worst of ${lines.length} cores`, values: most, color: "--line-0" }];
}
