/** Files that are made in the browser. */

import type { Entry } from "./words";

const COLUMNS = ["position", "recordedAt", "aggregate", "id", "version", "type", "actor", "actorKind", "endUser", "transactionId", "data", "hash"] as const;

/** A line of CSV (RFC 4180). A cell that a spreadsheet would take for a formula begins with an apostrophe. */
export function csvLine(cells: readonly unknown[]): string {
  const line = cells.map((cell) => {
    const text = cell === null || cell === undefined ? "" : typeof cell === "object" ? JSON.stringify(cell) : String(cell);
    const safe = /^[=+\-@\t\r]/.test(text) && typeof cell !== "number" ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  });
  return `${line.join(",")}\r\n`;
}

export const CSV_HEAD = csvLine(COLUMNS);

export function csvOf(entries: readonly Entry[]): string {
  return entries.map((entry) => csvLine(COLUMNS.map((name) => entry[name]))).join("");
}

export function ndjsonOf(entries: readonly Entry[]): string {
  return entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
}

/** Gives the reader a file. */
export function save(pieces: readonly string[], name: string, type: string): void {
  const address = URL.createObjectURL(new Blob([...pieces], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
