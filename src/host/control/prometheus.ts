/** Metrics in Prometheus's text format. (exposition format 0.0.4) */

import type { AuditCounts } from "../ports/audit.ts";

export type Metric = ValueMetric | HistogramMetric;

interface ValueMetric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  readonly samples: readonly Sample[];
}

interface HistogramMetric {
  readonly name: string;
  readonly help: string;
  readonly type: "histogram";
  readonly histogram: Histogram;
}

interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

export const PROMETHEUS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Creates the metrics of one service; every name begins with its prefix. */
export function metricFamily(prefix: string) {
  const single =
    (type: ValueMetric["type"]) =>
    (name: string, help: string, value: number): Metric => ({
      ...{ name: prefix + name, help, type },
      samples: [{ value }],
    });
  /** One sample per value of a label. */
  const labelled = (
    type: ValueMetric["type"],
    name: string,
    { help, label, values }: Labelled,
  ): Metric => ({
    ...{ name: prefix + name, help, type },
    samples: [...values].map(([key, value]) => ({ labels: { [label]: key }, value })),
  });
  const histogram = (name: string, help: string, value: Histogram): Metric => ({
    ...{ name: prefix + name, help, type: "histogram" },
    histogram: value,
  });
  const counter = single("counter");
  /** Metrics of every service with an audit log: whether it is complete. */
  const audit = ({ recorded, dropped }: AuditCounts): readonly Metric[] => [
    counter("audit_recorded_total", "Entries of the audit log", recorded),
    counter("audit_dropped_total", "Audit entries not written", dropped),
  ];
  const gauge = single("gauge");
  /** Levels from mild to severe, in this order: the current one, and how often each was entered. */
  const levels = (
    name: string,
    { entered, level }: { readonly level: string; readonly entered: Record<string, number> },
  ): readonly Metric[] => {
    const names = Object.keys(entered);
    return [
      gauge(`${name}_level`, `${names.join(", ")}: 0 to ${names.length - 1}`, names.indexOf(level)),
      labelled("counter", `${name}_changes_total`, {
        ...{ help: "How often each level was entered", label: "to" },
        values: Object.entries(entered),
      }),
    ];
  };
  return { counter, gauge, labelled, levels, histogram, audit };
}

interface Labelled {
  readonly help: string;
  readonly label: string;
  readonly values: Iterable<readonly [string, number]>;
}

/** Counts per bucket; a value belongs to the first bound that is not below it. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  /** `bounds` ascend. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length).fill(0);
  }

  add(value: number): void {
    const at = this.#bounds.findIndex((bound) => value <= bound);
    if (at !== -1) this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
    this.#count++;
  }

  lines(name: string): readonly string[] {
    let below = 0;
    const buckets = this.#bounds.map((bound, at) => {
      below += this.#counts[at] ?? 0;
      return `${name}_bucket{le="${bound}"} ${below}\n`;
    });
    const all = `${name}_bucket{le="+Inf"} ${this.#count}\n`;
    return [...buckets, all, `${name}_sum ${this.#sum}\n`, `${name}_count ${this.#count}\n`];
  }
}

export function formatMetrics(metrics: readonly Metric[]): string {
  return metrics.map(formatMetric).join("");
}

function formatMetric(metric: Metric): string {
  const { name, help, type } = metric;
  const lines =
    metric.type === "histogram"
      ? metric.histogram.lines(name)
      : metric.samples.map(({ labels, value }) => `${name}${formatLabels(labels)} ${value}\n`);
  return `# HELP ${name} ${escapeText(help)}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

function formatLabels(labels: Readonly<Record<string, string>> | undefined): string {
  const pairs = Object.entries(labels ?? {});
  if (pairs.length === 0) return "";
  return `{${pairs.map(([name, value]) => `${name}="${escapeLabel(value)}"`).join(",")}}`;
}

function escapeText(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function escapeLabel(text: string): string {
  return escapeText(text).replaceAll('"', '\\"');
}
