import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { Icon } from "./Icon";
import { useVirtualRows } from "./Virtual";

export interface Column<Row> {
  key: string;
  title: string;
  cell: (row: Row) => ComponentChildren;
  /** Sorts by this in the browser. For lists that the server sorts say `sortable`, and give `sort` and `onSort`. */
  value?: (row: Row) => string | number | null | undefined;
  sortable?: boolean;
  /** A CSS width, such as `9rem`; columns without one share what is left. */
  width?: string;
  align?: "end";
  /** Left out on narrow screens. */
  secondary?: boolean;
}

export interface Sort {
  key: string;
  descending: boolean;
}

interface DataTableProps<Row> {
  /** What the table shows, for screen readers. */
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string | number;
  /** Names the list that the rows are of, such as the key of its question: another list is shown from its top. */
  list?: string | null;
  /** Where a row leads; Enter and a click go there. */
  rowHref?: (row: Row) => string;
  /** Instead: what is done with a row that is chosen. */
  onRow?: (row: Row) => void;
  sort?: Sort;
  onSort?: (sort: Sort) => void;
  /** Shown instead of no rows. */
  empty?: ComponentChildren;
  /** What is shown is not of now. */
  stale?: boolean;
  /** Called when the last rows are near: for lists that are read page by page. */
  onEnd?: () => void;
}

/** Of a row, as parts.css has it. */
const HEIGHT = 40;
const NARROW_HEIGHT = 64;
const NARROW = matchMedia("(max-width: 40rem)");
const LONG = 150;
const NEAR = 30;

/** A table: sticky head, sorting, arrow keys; of long lists only what is seen is drawn. */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { caption, columns, rowKey, empty, stale } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [own, setOwn] = useState<Sort | undefined>();
  const [focused, setFocused] = useState(0);
  const { route } = useLocation();
  const sort = props.sort ?? own;
  const column = columns.find((each) => each.key === own?.key);
  const rows = useMemo(() => (props.onSort ? props.rows : sorted(props.rows, column, own)), [props.rows, column, own]);
  const height = useNarrow() ? NARROW_HEIGHT : HEIGHT;
  const virtual = useVirtualRows(scroller, rows.length, height);
  const long = rows.length > LONG;
  const shown = long ? virtual.indexes : [...rows.keys()];
  const isNear = (virtual.indexes.at(-1) ?? 0) >= rows.length - NEAR;
  useEffect(() => {
    if (isNear) props.onEnd?.();
  }, [isNear, rows.length]);
  useEffect(() => {
    scroller.current?.scrollTo(0, 0);
    setFocused(0);
  }, [props.list]);

  const open = (row: Row): void => {
    if (props.rowHref) route(props.rowHref(row));
    else props.onRow?.(row);
  };
  const move = (index: number): void => {
    const next = Math.max(0, Math.min(rows.length - 1, index));
    setFocused(next);
    if (long) virtual.reveal(next);
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`tr[data-index="${next}"]`)?.focus());
  };
  const pressed = (event: KeyboardEvent, index: number): void => {
    if (event.target !== event.currentTarget) return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / height) - 2);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length };
    const step = steps[event.key];
    if (step !== undefined) move(index + step);
    else if (event.key === "Enter") open(rows[index]!);
    else return;
    event.preventDefault();
  };
  const chooseSort = (key: string): void => {
    const next = { key, descending: sort?.key === key && !sort.descending };
    if (props.onSort) props.onSort(next);
    else setOwn(next);
  };
  const clickable = props.rowHref !== undefined || props.onRow !== undefined;
  return (
    <div class={`table-frame${stale ? " stale" : ""}`} ref={scroller} tabIndex={rows.length === 0 ? 0 : -1}>
      <table class="table" aria-rowcount={rows.length + 1} aria-busy={stale || undefined}>
        <caption class="unseen">{caption}</caption>
        <colgroup>
          {columns.map((each) => (
            <col key={each.key} class={each.secondary ? "secondary" : undefined} style={each.width ? { width: each.width } : {}} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((each) => (
              <Head key={each.key} column={each} sort={sort} onSort={chooseSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {long && virtual.above > 0 && <Gap height={virtual.above} columns={columns.length} />}
          {shown.map((index) => {
            const row = rows[index];
            if (row === undefined) return null;
            return (
              <tr
                key={rowKey(row)}
                data-index={index}
                aria-rowindex={index + 2}
                tabIndex={index === Math.min(focused, rows.length - 1) ? 0 : -1}
                class={clickable ? "clickable" : undefined}
                onFocus={() => setFocused(index)}
                onKeyDown={(event) => pressed(event, index)}
                onClick={(event) => clickable && !isControl(event) && open(row)}
              >
                {columns.map((each) => (
                  <td key={each.key} class={classes(each)}>
                    {each.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
          {long && virtual.below > 0 && <Gap height={virtual.below} columns={columns.length} />}
        </tbody>
      </table>
      {rows.length === 0 && empty}
    </div>
  );
}

function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const changed = (): void => setNarrow(NARROW.matches);
    NARROW.addEventListener("change", changed);
    return () => NARROW.removeEventListener("change", changed);
  }, []);
  return narrow;
}

interface HeadProps<Row> {
  column: Column<Row>;
  sort: Sort | undefined;
  onSort: (key: string) => void;
}

function Head<Row>({ column, sort, onSort }: HeadProps<Row>) {
  const now = sort?.key === column.key ? (sort.descending ? "descending" : "ascending") : undefined;
  return (
    <th scope="col" class={classes(column)} aria-sort={now}>
      {column.sortable || column.value ? (
        <button type="button" class="sort" onClick={() => onSort(column.key)}>
          {column.title}
          {now && <Icon name={now === "descending" ? "down" : "up"} size={14} />}
        </button>
      ) : (
        column.title
      )}
    </th>
  );
}

function Gap({ height, columns }: { height: number; columns: number }) {
  return (
    <tr aria-hidden="true">
      <td colSpan={columns} class="gap" style={{ height: `${height}px` }} />
    </tr>
  );
}

function classes<Row>(column: Column<Row>): string | undefined {
  return [column.align, column.secondary && "secondary"].filter(Boolean).join(" ") || undefined;
}

function isControl(event: MouseEvent): boolean {
  return event.target instanceof Element && event.target.closest("a, button, input, select, label") !== null;
}

function sorted<Row>(rows: readonly Row[], column: Column<Row> | undefined, sort: Sort | undefined): readonly Row[] {
  if (!column?.value || !sort) return rows;
  const value = column.value;
  const sign = sort.descending ? -1 : 1;
  return [...rows].sort((one, other) => sign * compared(value(one), value(other)));
}

/** What has no value comes last. */
function compared(one: string | number | null | undefined, other: string | number | null | undefined): number {
  if (one === null || one === undefined) return other === null || other === undefined ? 0 : 1;
  if (other === null || other === undefined) return -1;
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), undefined, { numeric: true });
}
