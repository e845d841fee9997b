/** The differences between two states of an aggregate, as rows for users. Pure functions. */

import type { Schemas } from "../../kernel/api";
import { fieldWord, whoWord, type Entry } from "../audit/words";

export type State = Readonly<Record<string, unknown>>;
export interface Author {
  version: number;
  at: string;
  who: string;
  transactionId: string;
}
export interface Row {
  field: string;
  word: string;
  before: unknown;
  after: unknown;
  /** Names of linked records. */
  names: readonly [before: string | null, after: string | null];
  /** The author; null if another record that is shown with it changed, or if it is unknown. */
  author: Author | null;
}

/** Fields that change with every version and add no information. */
const QUIET = new Set(["dateModified", "updated_at"]);

export function flat(state: State, prefix = ""): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(state)) {
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
    if (isObject) Object.assign(found, flat(value as State, `${prefix}${name}.`));
    else found[`${prefix}${name}`] = value;
  }
  return found;
}

/** The rows of two states. `authors` are the changes that the API found; without them no author is shown. */
export function rowsOf(before: State, after: State, authors: readonly Schemas["FieldChange"][], first?: Entry): Row[] {
  const [old, now] = [flat(before), flat(after)];
  const byField = new Map(authors.map((each) => [each.field, each]));
  const fields = [...new Set([...Object.keys(old), ...Object.keys(now)])].filter((field) => !same(old[field], now[field]));
  const told = new Set(fields);
  return fields
    .filter((field) => !QUIET.has(field) && !isSaidBy(field, told))
    .map((field) => {
      const change = byField.get(field);
      return {
        field,
        word: fieldWord(field),
        before: old[field] ?? null,
        after: now[field] ?? null,
        names: [nameOf(field, old), nameOf(field, now)] as const,
        author: authorOf(change) ?? (first ? authorOfEntry(first) : null),
      };
    });
}

export function authorOfEntry(entry: Entry): Author {
  return { version: entry.version, at: entry.recordedAt, who: whoWord(entry), transactionId: entry.transactionId };
}

function authorOf(change: Schemas["FieldChange"] | undefined): Author | null {
  if (!change || change.version === null || change.version === undefined || !change.recordedAt) return null;
  const who = whoWord({ actor: change.actor ?? "", actorKind: change.actorKind, endUser: change.endUser ?? null });
  return { version: change.version, at: change.recordedAt, who, transactionId: change.transactionId ?? "" };
}

/** Fields that repeat another field: `stateString` repeats `state`, `room` repeats `roomId`. */
function isSaidBy(field: string, all: ReadonlySet<string>): boolean {
  return (field.endsWith("String") && all.has(field.slice(0, -"String".length))) || all.has(`${field}Id`);
}

/** Returns the name of the linked record, which is stored under the same name without `Id`. */
export function nameOf(field: string, state: Readonly<Record<string, unknown>>): string | null {
  if (!field.endsWith("Id")) return null;
  const name = state[field.slice(0, -2)];
  return typeof name === "string" && name !== "" ? name : null;
}

function same(one: unknown, other: unknown): boolean {
  return (one ?? null) === (other ?? null) || JSON.stringify(one ?? null) === JSON.stringify(other ?? null);
}

/** Splits a text by words into the common beginning, the difference, and the common end. */
export function parts(one: string, other: string): readonly [string, string, string] {
  const [words, others] = [one.split(/(\s+)/), other.split(/(\s+)/)];
  const most = Math.min(words.length, others.length);
  let head = 0;
  while (head < most && words[head] === others[head]) head++;
  let tail = 0;
  while (tail < most - head && words[words.length - 1 - tail] === others[others.length - 1 - tail]) tail++;
  const end = words.length - tail;
  return [words.slice(0, head).join(""), words.slice(head, end).join(""), words.slice(end).join("")];
}

/** Returns the newest version at a time; 0 if there was none. Times of the API are cut to milliseconds. */
export function versionAt(entries: readonly Entry[], at: number): number {
  let found = 0;
  for (const entry of entries) if (Date.parse(entry.recordedAt) <= at) found = Math.max(found, entry.version);
  return found;
}
