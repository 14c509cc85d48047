/**
 * Tables that scroll sideways inside their frame with the first column held in place, and that sort by
 * a click on a heading where rows have an order. The order is in the address.
 */

import type { ComponentChildren } from "preact";
import { useFragment } from "./fragment.ts";

interface Column {
  readonly title: string;
  /** Numbers are set right, with figures of equal width. */
  readonly numeric?: boolean;
  /** For those who hear it, where the title is a drawing's. */
  readonly hidden?: boolean;
  readonly unsorted?: boolean;
}

interface Cell {
  readonly text: ComponentChildren;
  /** What the column is sorted by; a cell without one stays last. */
  readonly order?: number | string | null;
}

interface Row {
  readonly key: string;
  /** The first cell of a row is its header. */
  readonly cells: readonly Cell[];
  readonly marked?: boolean;
}

interface TableProps {
  /** What the table holds, for those who hear it. */
  readonly caption: string;
  /** The caption is seen, too. */
  readonly captioned?: boolean;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  /** Key of the address that holds the order; none: rows stay as they are. */
  readonly sortKey?: string;
}

export function Table({ caption, captioned, columns, rows, sortKey }: TableProps) {
  const fragment = useFragment();
  const order = sortKey === undefined ? null : parseOrder(fragment.get(sortKey), columns);
  const sorted = order === null ? rows : rows.toSorted(byColumn(order.column, order.descending));
  const choose = (column: number) => {
    if (sortKey !== undefined) fragment.set({ [sortKey]: nextOrder(order, column, columns) });
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
    <section class="scroll" tabIndex={0} aria-label={caption}>
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
          {sorted.map(({ cells, key, marked }) => (
            <tr key={key} class={marked === true ? "marked" : undefined}>
              {cells.map(({ text }, at) => {
                const { title = "", numeric } = columns[at] ?? {};
                const name = numeric === true ? "number" : undefined;
                return at === 0 ? (
                  <th key={title} scope="row" class={name}>
                    {text}
                  </th>
                ) : (
                  <td key={title} class={name}>
                    {text}
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

interface ToggleProps {
  readonly of: string;
  readonly on: boolean;
  readonly set: (on: boolean) => void;
}

/** Shows what a chart draws as a table. */
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

function Heading({ column: { hidden, numeric, title }, direction, onClick }: HeadingProps) {
  const name = numeric === true ? "number" : undefined;
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

/** Figures begin with the largest, names with the first; a third click undoes the order. */
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
