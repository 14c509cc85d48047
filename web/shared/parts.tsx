/** Small components used on all pages: sections, facts, shares, chips, sparklines. */

import type { ComponentChildren } from "preact";
import { formatPercent } from "../../src/core/load/results/format.ts";

interface SectionProps {
  readonly id: string;
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Section({ id, title, aside, children }: SectionProps) {
  return (
    <section id={id} aria-labelledby={`${id}-title`}>
      <div class="section-head">
        <h2 id={`${id}-title`}>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

export type Tone = "good" | "bad" | "warn" | "plain";

export function Chip({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`chip ${tone}`}>{children}</span>;
}

/** A share as text with a bar that repeats it. */
export function Share({ share, tone = "plain" }: { share: number; tone?: Tone }) {
  const width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  return (
    <span class="share">
      <span class={`bar ${tone}`} aria-hidden="true">
        <span style={{ width }} />
      </span>
      {formatPercent(share)}
    </span>
  );
}

/** Share of failures from which on they stand out where no threshold covers them. */
export const FAILED_MANY = 0.01;

/** No failures are muted, a few are plain, many stand out. */
export function Failed({ failed, of }: { failed: number; of: number }) {
  if (failed === 0) return <span class="quiet">0</span>;
  const share = of === 0 ? 0 : failed / of;
  return share >= FAILED_MANY ? (
    <b class="bad-text">{formatPercent(share)}</b>
  ) : (
    <span>{formatPercent(share)}</span>
  );
}

type Fact = readonly [name: string, value: ComponentChildren];

export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface AlertProps {
  readonly tone: Tone;
  readonly title: string;
  readonly children: ComponentChildren;
}

export function Alert({ tone, title, children }: AlertProps) {
  return (
    <aside class={`alert ${tone}`} aria-label={title}>
      <h2>{title}</h2>
      {children}
    </aside>
  );
}

/** Secondary content: one line until expanded. */
export function Folded({ title, children }: Omit<AlertProps, "tone">) {
  return (
    <details class="folded">
      <summary>{title}</summary>
      {children}
    </details>
  );
}

const SPARK = { width: 96, height: 22 };

/** A trend without numbers: they are beside it. */
export function Spark({ values, color }: { values: readonly (number | null)[]; color: string }) {
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known);
  if (known.length < 2 || !(most > 0)) return null;
  const x = (at: number) => (at / (values.length - 1)) * (SPARK.width - 2) + 1;
  const y = (value: number) => SPARK.height - 2 - (value / most) * (SPARK.height - 4);
  let path = "";
  let pen = "M";
  for (const [at, value] of values.entries()) {
    if (value === null) {
      pen = "M";
      continue;
    }
    path += `${pen}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = "L";
  }
  return (
    <svg class="spark" {...SPARK} aria-hidden="true">
      <path d={path} style={{ stroke: `var(${color})` }} />
    </svg>
  );
}

/** Reduces a series to at most `most` points, each the highest of its group. */
export function thinned(values: readonly (number | null)[], most: number): (number | null)[] {
  if (values.length <= most) return [...values];
  return Array.from({ length: most }, (_, at) => {
    const part = values
      .slice(Math.floor((at * values.length) / most), Math.floor(((at + 1) * values.length) / most))
      .filter((value) => value !== null);
    return part.length === 0 ? null : Math.max(...part);
  });
}

/** Reduces a series to at most `most` points, each the sum of its group. */
export function summed(values: readonly number[], most: number): number[] {
  const points = Math.min(values.length, most);
  const sums = new Array<number>(points).fill(0);
  for (const [at, value] of values.entries()) {
    const point = Math.floor((at * points) / values.length);
    sums[point] = (sums[point] ?? 0) + value;
  }
  return sums;
}

export function Tags({ tags }: { tags: Readonly<Record<string, string>> }) {
  return (
    <>
      {Object.entries(tags).map(([name, value]) => (
        <span key={name} class="tag">
          {name}={value}
        </span>
      ))}
    </>
  );
}

interface SegmentsProps<Name extends string> {
  readonly title: string;
  readonly choices: readonly Name[];
  readonly chosen: Name;
  readonly choose: (name: Name) => void;
}

/** One of a few, as buttons in a row. */
export function Segments<Name extends string>(props: SegmentsProps<Name>) {
  return (
    <fieldset class="segments">
      <legend class="hidden">{props.title}</legend>
      {props.choices.map((name) => (
        <button
          key={name}
          type="button"
          aria-pressed={props.chosen === name}
          onClick={() => props.choose(name)}
        >
          {name}
        </button>
      ))}
    </fieldset>
  );
}
