/** Times as people read them: local, 24 hours, with the zone, and relative to the time of the server. */

import { computed, signal } from "@preact/signals";

const SKEW = 2000;
export const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const offset = signal(0);
const tick = signal(Date.now());
const held = signal<number | null>(null);

/** The time of the server, in milliseconds, updated every second while the page is visible. It stops while there is no connection. */
export const now = computed(() => held.value ?? tick.value + offset.value);

/** The time of the server at this moment, by the clock of the browser. */
export const serverTime = (): number => Date.now() + offset.peek();

/** Stops `now` at a time; null lets it continue. */
export function holdClock(at: number | null): void {
  if (at === null) tick.value = Date.now();
  held.value = at;
}

/** Counts the seconds. Returns a function that ends it. */
export function startClock(): () => void {
  const timer = setInterval(() => {
    if (!document.hidden) tick.value = Date.now();
  }, 1000);
  return () => clearInterval(timer);
}

/** The header Date of an answer: browser clocks may be wrong, so lateness is measured by the server's clock. */
export function noteServerTime(date: string | null): void {
  const server = date === null ? NaN : Date.parse(date);
  if (Number.isNaN(server)) return;
  const found = server - Date.now();
  if (Math.abs(found - offset.peek()) > SKEW) offset.value = Math.abs(found) > SKEW ? found : 0;
}

const two = (value: number): string => String(value).padStart(2, "0");

/** `2031-05-01`. */
export function day(at: Date): string {
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** `20:15`, or `20:15:03`. */
export function clock(at: Date, seconds = false): string {
  return `${two(at.getHours())}:${two(at.getMinutes())}${seconds ? `:${two(at.getSeconds())}` : ""}`;
}

/** The zone of this browser at that time: `UTC+2`, `UTC−3:30`, `UTC`. */
export function zone(at: Date): string {
  const minutes = -at.getTimezoneOffset();
  if (minutes === 0) return "UTC";
  const size = Math.abs(minutes);
  return `UTC${minutes < 0 ? "−" : "+"}${Math.floor(size / 60)}${size % 60 ? `:${two(size % 60)}` : ""}`;
}

/** `2031-05-01 20:15:03 UTC+2`. */
export function absolute(at: Date): string {
  return `${day(at)} ${clock(at, true)} ${zone(at)}`;
}

/** `20:15` today, `05-01 20:15` this year, else `2030-05-01 20:15`. */
export function short(at: Date, reference = new Date(now.value)): string {
  if (day(at) === day(reference)) return clock(at);
  const date = at.getFullYear() === reference.getFullYear() ? day(at).slice(5) : day(at);
  return `${date} ${clock(at)}`;
}

/** Formats local time for a field of type `datetime-local`. */
export function localText(at: string | number | null): string {
  if (at === null || at === "") return "";
  const date = new Date(at);
  return `${day(date)}T${clock(date)}`;
}

/** Parses the value of a `datetime-local` field; null when it is empty. */
export function instantOf(text: string): string | null {
  const at = text === "" ? NaN : Date.parse(text);
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}

/** `Thu 2031-05-01 20:15 UTC+2`: the value of such a field in words, with the zone at that time. */
export function localWords(text: string): string {
  const at = text === "" ? NaN : Date.parse(text);
  if (Number.isNaN(at)) return "";
  const date = new Date(at);
  return `${WEEKDAYS[date.getDay()]} ${day(date)} ${clock(date)} ${zone(date)}`;
}

/** `45 s`, `12 min`, `3 h 20 min`, `5 d 4 h`. */
export function duration(milliseconds: number): string {
  const seconds = Math.floor(Math.abs(milliseconds) / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return days < 10 && hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
}

/** `0:03:20`: a running time, whose width does not change every second. */
export function running(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  return `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

/** `now`, `in 5 min`, `3 h ago`. */
export function relative(at: number, reference: number): string {
  const difference = at - reference;
  if (Math.abs(difference) < 5000) return "now";
  return difference > 0 ? `in ${duration(difference)}` : `${duration(difference)} ago`;
}
