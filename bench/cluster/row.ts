/** A row of the table: a value, its goal, and the measurement. */

export interface Row {
  /** Name for selecting it. */
  readonly name: string;
  readonly figure: string;
  readonly must: string;
  readonly aim: string;
}

export interface Seen {
  readonly text: string;
  /** Null: there is no goal. */
  readonly holds: boolean | null;
}

/** By the name of its row. */
export type Findings = ReadonlyMap<string, Seen>;

/** Measures several rows at once, as they need the same cluster. */
export interface Measurement {
  readonly rows: readonly Row[];
  readonly measure: (rounds: number, say: (text: string) => void) => Promise<Findings>;
}

/** The value that this share of all does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1);
  return sorted[Math.max(0, place)] ?? Number.NaN;
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}

export function tableOf(rows: readonly Row[], findings: Findings): string {
  const lines = [
    ["figure", "must", "aim", "seen", ""],
    ...rows.map(({ aim, figure, must, name }) => {
      const { holds, text } = findings.get(name) ?? { holds: null, text: "not measured" };
      return [figure, must, aim, text, holds === null ? "" : holds ? "holds" : "MISSED"];
    }),
  ];
  const widths = [0, 1, 2, 3, 4].map((at) =>
    Math.max(3, ...lines.map((line) => line[at]?.length ?? 0)),
  );
  const text = lines.map(
    (line) => `| ${line.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`,
  );
  const rule = `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`;
  return [text[0], rule, ...text.slice(1)].join("\n");
}
