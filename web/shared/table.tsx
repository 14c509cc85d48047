/**
 * Tables that scroll sideways inside their frame with the first column fixed, and that sort by a click on a heading
 * where rows have an order. The order is in the address.
 */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { formatCount } from "../../src/core/load/results/format.ts";
import { useFragment } from "./fragment.ts";

interface Column {
  readonly title: string;
  /** Numbers are right-aligned, with digits of equal width. */
  readonly numeric?: boolean;
  /** Heading for screen readers only, above a column of drawings. */
  readonly hidden?: boolean;
  readonly unsorted?: boolean;
  /** Not on small screens. */
  readonly wideOnly?: boolean;
}

function classOf({ numeric, wideOnly }: Partial<Column>): string | undefined {
  const names = [numeric === true ? "number" : "", wideOnly === true ? "wide-only" : ""];
  return names.filter((name) => name !== "").join(" ") || undefined;
}

interface Cell {
  readonly text: ComponentChildren;
  /** Sort key of the cell; cells without one stay last. */
  readonly order?: number | string | null;
}

interface Row {
  readonly key: string;
  /** The first cell of a row is its header. */
  readonly cells: readonly Cell[];
  readonly marked?: boolean;
}

interface TableProps {
  /** Caption for screen readers. */
  readonly caption: string;
  /** Shows the caption. */
  readonly captioned?: boolean;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  /** Key of the address that holds the order; without it rows keep theirs. */
  readonly sortKey?: string;
  /** Further rows are shown on request. */
  readonly rowsMax?: number;
  /** File name for saving the table. */
  readonly download?: string;
  /** On a phone each row is a card, where a table of sentences would be too wide. */
  readonly stacked?: boolean;
}

export function Table(props: TableProps) {
  const { caption, captioned, columns, rows, sortKey, stacked } = props;
  const fragment = useFragment();
  const order = sortKey === undefined ? null : parseOrder(fragment.get(sortKey), columns);
  const sorted = order === null ? rows : rows.toSorted(byColumn(order.column, order.descending));
  const frame = stacked === true ? "scroll stacked" : "scroll";
  const { showAll, shown } = useFirst(sorted, props.rowsMax);
  const choose = (column: number) => {
    if (sortKey !== undefined) fragment.set({ [sortKey]: nextOrder(order, column, columns) });
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
    <section class={frame} tabIndex={0} aria-label={caption}>
      <table>
        <caption class={captioned === true ? undefined : "hidden"}>{caption}</caption>
        <thead>
          <tr>
            {columns.map((column, at) => (
              <Heading
                key={column.title}
                column={column}
                direction={
                  order?.column === at ? (order.descending ? "descending" : "ascending") : null
                }
                onClick={
                  sortKey === undefined || column.unsorted === true ? null : () => choose(at)
                }
              />
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map(({ cells, key, marked }) => (
            <tr key={key} class={marked === true ? "marked" : undefined}>
              {cells.map(({ text }, at) => {
                const { title = "" } = columns[at] ?? {};
                const name = classOf(columns[at] ?? {});
                return at === 0 ? (
                  <th key={title} scope="row" class={name}>
                    {text}
                  </th>
                ) : (
                  <td key={title} class={name} data-title={title}>
                    {text}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {(shown.length < sorted.length || props.download !== undefined) && (
        <p class="table-foot">
          {shown.length < sorted.length && (
            <button type="button" class="plain-button" onClick={showAll}>
              show all {formatCount(sorted.length)} rows
              <span class="hidden"> of {caption}</span>
            </button>
          )}
          {props.download !== undefined && <Download name={props.download} of={caption} />}
        </p>
      )}
    </section>
  );
}

/** The table as shown, as CSV. */
function Download({ name, of }: { readonly name: string; readonly of: string }) {
  const keep = (event: { readonly currentTarget: HTMLElement }) => {
    const rows = [...(event.currentTarget.closest("section")?.querySelectorAll("tr") ?? [])];
    const lines = rows.map((row) =>
      [...row.children].map(({ textContent }) => quoted(textContent)),
    );
    const link = document.createElement("a");
    const text = lines.map((cells) => `${cells.join(",")}\r\n`).join("");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = `${name}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <button type="button" class="plain-button" onClick={keep}>
      csv<span class="hidden"> of {of}</span>
    </button>
  );
}

/** A spreadsheet would run text that begins like a formula. */
function quoted(text: string | null): string {
  const clean = (text ?? "").replace(/[▲▼]/g, "").trim();
  return `"${clean.replace(/^[=+@-](?=[^\d\s])/, "'$&").replaceAll('"', '""')}"`;
}

/** The first of many rows, until the reader expands them or a print begins. */
function useFirst(sorted: readonly Row[], rowsMax = Number.POSITIVE_INFINITY) {
  const [all, setAll] = useState(false);
  const showAll = () => setAll(true);
  useEffect(() => {
    addEventListener("beforeprint", showAll);
    return () => removeEventListener("beforeprint", showAll);
  }, []);
  return { shown: all ? sorted : sorted.slice(0, rowsMax), showAll };
}

interface ToggleProps {
  readonly of: string;
  readonly on: boolean;
  readonly set: (on: boolean) => void;
}

/** Shows the data of a chart as a table. */
export function TableToggle({ of, on, set }: ToggleProps) {
  return (
    <button type="button" class="plain-button" aria-pressed={on} onClick={() => set(!on)}>
      table<span class="hidden"> of {of}</span>
    </button>
  );
}

interface HeadingProps {
  readonly column: Column;
  readonly direction: "ascending" | "descending" | null;
  readonly onClick: (() => void) | null;
}

function Heading({ column, direction, onClick }: HeadingProps) {
  const { hidden, title } = column;
  const name = classOf(column);
  const text = hidden === true ? <span class="hidden">{title}</span> : title;
  if (onClick === null) {
    return (
      <th scope="col" class={name}>
        {text}
      </th>
    );
  }
  const mark = direction === null ? "" : direction === "ascending" ? "▲" : "▼";
  return (
    <th scope="col" class={name} aria-sort={direction ?? "none"}>
      <button type="button" class="sort" onClick={onClick}>
        {text}
        <span class="sort-mark" aria-hidden="true">
          {mark}
        </span>
      </button>
    </th>
  );
}

interface Order {
  readonly column: number;
  readonly descending: boolean;
}

/** "p95" ascending, "-p95" descending. */
function parseOrder(text: string | null, columns: readonly Column[]): Order | null {
  if (text === null) return null;
  const descending = text.startsWith("-");
  const column = columns.findIndex(({ title }) => title === (descending ? text.slice(1) : text));
  return column < 0 ? null : { column, descending };
}

/** Numbers begin with the largest, names with the first; a third click undoes the order. */
function nextOrder(order: Order | null, column: number, columns: readonly Column[]): string | null {
  const { numeric = false, title = "" } = columns[column] ?? {};
  if (order?.column !== column) return numeric ? `-${title}` : title;
  if (order.descending === numeric) return numeric ? title : `-${title}`;
  return null;
}

function byColumn(column: number, descending: boolean): (a: Row, b: Row) => number {
  return (a, b) => {
    const [one, other] = [a.cells[column]?.order ?? null, b.cells[column]?.order ?? null];
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    const sign = descending ? -1 : 1;
    if (typeof one === "number" && typeof other === "number") return sign * (one - other);
    return sign * String(one).localeCompare(String(other), undefined, { numeric: true });
  };
}
