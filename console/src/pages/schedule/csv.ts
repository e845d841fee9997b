/** The schedule as CSV (RFC 4180): written from Events, read into rows with their problems. */

import type { MediaEvent } from "../../kernel/api";
import { instantOf } from "../../kernel/time";

export const COLUMNS = ["reference", "title", "start", "end", "room", "channel", "type", "category", "description"] as const;
export type ColumnName = (typeof COLUMNS)[number];
export type Cells = Partial<Record<ColumnName, string>>;
export const MOST_ROWS = 5000;

/** Names of rooms and so on, with the ids that have them: names need not be unique. */
export type Names = Record<"room" | "channel" | "type" | "category", ReadonlyMap<string, readonly string[]>>;

/** Members of `POST /api/event/` that a row sets. */
export type Fields = Partial<
  Record<"refId" | "title" | "description" | "scheduledStart" | "scheduledEnd" | "roomId" | "channelId" | "eventTypeId" | "categoryId", string | null>
>;

export interface Row {
  /** The line in the file, from 1 for the head. */
  line: number;
  reference: string;
  title: string;
  fields: Fields;
  problems: string[];
}

/** First characters that a spreadsheet would take for a formula. */
const FORMULA = /^[=+\-@\t\r]/;
const GUARDED = /^'[=+\-@\t\r]/;

export function csvOf(events: readonly MediaEvent[]): string {
  const lines = events.map((event) => [
    event.refId, event.title, event.scheduledStart, event.scheduledEnd, event.room, event.channel, event.eventType, event.category, event.description,
  ]);
  return [COLUMNS as readonly (string | null)[], ...lines].map((line) => `${line.map((cell) => quoted(cell ?? "")).join(",")}\r\n`).join("");
}

function quoted(cell: string): string {
  const safe = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",;\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The lines of a file. Throws a sentence when a quote does not end. */
export function parsed(text: string): { line: number; cells: string[] }[] {
  const source = text.replace(/^\uFEFF/, "");
  const comma = separatorOf(source);
  const found: { line: number; cells: string[] }[] = [];
  let [cells, cell, line, begin, inside, quotedAt]: [string[], string, number, number, boolean, number] = [[], "", 1, 1, false, 0];
  const endLine = (): void => {
    cells.push(cell);
    if (cells.length > 1 || cells[0] !== "") found.push({ line: begin, cells });
    [cells, cell, begin] = [[], "", line + 1];
  };
  for (let at = 0; at < source.length; at++) {
    const each = source[at]!;
    if (inside) {
      if (each === "\n") line++;
      if (each !== '"') cell += each;
      else if (source[at + 1] === '"') cell += source[++at];
      else inside = false;
    } else if (each === '"' && cell === "") [inside, quotedAt] = [true, line];
    else if (each === comma) [cells, cell] = [[...cells, cell], ""];
    else if (each === "\n") (endLine(), line++);
    else if (each !== "\r" || source[at + 1] !== "\n") cell += each;
  }
  if (inside) throw new Error(`The quote that begins in line ${quotedAt} does not end.`);
  if (cell !== "" || cells.length > 0) endLine();
  return found;
}

function separatorOf(source: string): string {
  const head = source.slice(0, source.search(/[\r\n]|$/));
  return [";", "\t"].find((each) => head.includes(each) && !head.includes(",")) ?? ",";
}

/** The rows of a file. Throws a sentence when the file as a whole cannot be used. */
export function rowsOf(text: string, names: Names): Row[] {
  const [head, ...lines] = parsed(text);
  if (head === undefined) throw new Error("The file is empty.");
  const columns = head.cells.map((each) => each.trim().toLowerCase());
  const unknown = columns.filter((each) => !(COLUMNS as readonly string[]).includes(each));
  if (unknown.length > 0) throw new Error(`Unknown columns: ${unknown.map((each) => each || "(without a name)").join(", ")}. Known are ${COLUMNS.join(", ")}.`);
  if (new Set(columns).size !== columns.length) throw new Error("A column appears twice in the head.");
  if (!columns.includes("reference")) throw new Error("The column reference is missing: it identifies the Event of a row.");
  if (lines.length > MOST_ROWS) throw new Error(`The file has ${lines.length} rows; the limit is ${MOST_ROWS}.`);
  const rows = lines.map(({ line, cells }) => rowOf({ line, cells, columns: columns as ColumnName[], names }));
  const first = new Map<string, number>();
  for (const row of rows) {
    const before = first.get(row.reference);
    if (before !== undefined && row.reference !== "") row.problems.push(`reference: already used in line ${before}`);
    else first.set(row.reference, row.line);
  }
  return rows;
}

function rowOf({ line, cells, columns, names }: { line: number; cells: string[]; columns: ColumnName[]; names: Names }): Row {
  const problems: string[] = [];
  if (cells.length > columns.length) problems.push(`has ${cells.length} cells, the head has ${columns.length}`);
  const said: Cells = Object.fromEntries(columns.map((name, index) => [name, unguarded(cells[index] ?? "")]));
  const fields: Fields = {};
  const reference = said.reference ?? "";
  if (reference === "") problems.push("reference: is required");
  fields.refId = reference;
  if (said.title !== undefined) fields.title = said.title;
  if (said.description !== undefined) fields.description = said.description;
  for (const [name, field] of [["start", "scheduledStart"], ["end", "scheduledEnd"]] as const) {
    const text = said[name];
    if (text === undefined) continue;
    const at = timeOf(text);
    if (at === undefined) problems.push(`${name}: must be a time such as 2031-05-01 20:15 or 2031-05-01T20:15:00Z`);
    else fields[field] = at;
  }
  const { scheduledStart: start, scheduledEnd: end } = fields;
  if (start && end && end <= start) problems.push("end: must be after start");
  for (const [name, field] of [["room", "roomId"], ["channel", "channelId"], ["type", "eventTypeId"], ["category", "categoryId"]] as const) {
    const text = said[name];
    if (text === undefined) continue;
    const ids = names[name].get(text) ?? [];
    if (text === "") fields[field] = null;
    else if (ids.length === 1) fields[field] = ids[0]!;
    else problems.push(ids.length === 0 ? `${name}: there is none named ${text.slice(0, 100)}` : `${name}: ${ids.length} have this name`);
  }
  return { line, reference, title: said.title ?? "", fields, problems };
}

function unguarded(cell: string): string {
  const text = cell.trim();
  return GUARDED.test(text) ? text.slice(1) : text;
}

/** Parses a time with a zone, or local; null if empty, undefined if invalid. */
function timeOf(text: string): string | null | undefined {
  if (text === "") return null;
  if (!/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?$/i.test(text)) return undefined;
  return instantOf(text.replace(" ", "T")) ?? undefined;
}

/** Returns the fields that a row would change of an Event; empty if none. */
export function changesOf(row: Row, event: MediaEvent): Fields {
  const now: Record<string, string | null> = { ...event, description: event.description ?? "" } as never;
  const same = (name: string, value: string | null): boolean =>
    name.startsWith("scheduled") && value !== null && now[name] ? Date.parse(value) === Date.parse(now[name]!) : (now[name] ?? "") === (value ?? "");
  return Object.fromEntries(Object.entries(row.fields).filter(([name, value]) => !same(name, value ?? null)));
}
