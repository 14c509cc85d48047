/** Small pieces used all over the page: sections, tables, shares, chips. */

import type { ComponentChildren } from "preact";
import { formatPercent } from "../../src/core/run/results/format.ts";

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

interface Column {
  readonly title: string;
  /** Numbers are set right, with figures of equal width. */
  readonly numeric?: boolean;
}

interface TableProps {
  /** What the table holds, for those who hear it. */
  readonly caption: string;
  readonly columns: readonly Column[];
  /** The first cell of a row is its header. */
  readonly rows: readonly (readonly ComponentChildren[])[];
}

export function Table({ caption, columns, rows }: TableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
    <section class="scroll" tabIndex={0} aria-label={caption}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, numeric }) => (
              <th key={title} scope="col" class={numeric === true ? "number" : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, index) => {
                const { title, numeric } = columns[index] ?? { title: "" };
                const name = numeric === true ? "number" : undefined;
                return index === 0 ? (
                  <th key={title} scope="row" class={name}>
                    {cell}
                  </th>
                ) : (
                  <td key={title} class={name}>
                    {cell}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
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

/** Nothing failed is quiet; anything else stands out. */
export function Failed({ failed, of }: { failed: number; of: number }) {
  if (failed === 0) return <span class="quiet">0</span>;
  return <b class="bad-text">{formatPercent(of === 0 ? 0 : failed / of)}</b>;
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
