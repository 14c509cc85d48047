/** Metrics in Prometheus's text form. (exposition format 0.0.4) */

export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  readonly samples: readonly Sample[];
}

export interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

export const PROMETHEUS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export function formatMetrics(metrics: readonly Metric[]): string {
  return metrics.map(formatMetric).join("");
}

function formatMetric({ name, help, type, samples }: Metric): string {
  const lines = samples.map(({ labels, value }) => `${name}${formatLabels(labels)} ${value}\n`);
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
