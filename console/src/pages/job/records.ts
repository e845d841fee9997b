/** The log of a job: all records from its stream, which continues while the job runs. */

import { signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Schemas } from "../../kernel/api";
import { onReturn } from "../../kernel/changes";
import { ENGINE_SILENCE, watchSilence } from "../../kernel/silence";

export type LogRecord = Schemas["LogRecord"];
export type Following = "reading" | "following" | "ended" | "lost" | "full" | "away";

export interface Log {
  records: ReadonlySignal<readonly LogRecord[]>;
  /** Number of records omitted at the beginning of a very long log. */
  left: ReadonlySignal<number>;
  following: ReadonlySignal<Following>;
}

const MOST = 20_000;
const TOGETHER = 100;

/** `mark`: a new value reads everything again, for example after an ended job is resumed. */
export function useJobLog(id: number, mark: string): Log {
  const log = useMemo(() => ({ records: signal<readonly LogRecord[]>([]), left: signal(0), following: signal<Following>("reading") }), [id]);
  useEffect(() => {
    let source: EventSource | null = null;
    let all: LogRecord[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = (): void => {
      clearTimeout(timer);
      timer = undefined;
      if (all.length > MOST) {
        log.left.value += all.length - MOST;
        all = all.slice(-MOST);
      }
      log.records.value = [...all];
    };
    const end = (): void => {
      silence.end();
      source?.close();
    };
    const silence = watchSilence(() => {
      end();
      follow("lost");
    }, ENGINE_SILENCE);
    /** Reads from the beginning of the log. */
    const follow = (as: Following): void => {
      const opened = new EventSource(`/engine/logs/${id}/stream`);
      source = opened;
      all = [];
      log.left.value = 0;
      log.following.value = as;
      silence.heard();
      opened.onmessage = (message) => {
        silence.heard();
        all.push(JSON.parse(message.data as string) as LogRecord);
        log.following.value = "following";
        timer ??= setTimeout(show, TOGETHER);
      };
      const on = (name: string, next: Following): void =>
        opened.addEventListener(name, () => {
          silence.heard();
          log.following.value = next;
        });
      on("beat", "following");
      on("away", "away");
      on("full", "full");
      opened.addEventListener("end", () => {
        log.following.value = "ended";
        end();
        show();
      });
      opened.onerror = () => {
        silence.heard();
        log.following.value = "lost";
      };
    };
    follow("reading");
    const stop = onReturn(() => {
      if (log.following.peek() === "ended") return;
      end();
      follow("reading");
    });
    return () => {
      stop();
      clearTimeout(timer);
      end();
    };
  }, [id, mark]);
  return log;
}

/** Events of the job have multiples of 2^20 as ids, lines of its steps numbers between these. */
export const isEvent = (record: LogRecord): boolean => record.id % 2 ** 20 === 0;

/** The text of a record. The first record is the request as JSON, which is summarized. */
export function textOf(record: LogRecord): string {
  const asked = requestOf(record);
  if (asked === null) return record.message;
  const job = (asked["job"] ?? {}) as Record<string, unknown>;
  const again = asked["rerun_of"] ? `, again after job ${asked["rerun_of"]}` : "";
  return `${asked["client"]} submitted ${job["workflow"]} with priority ${job["priority"]}${again}`;
}

/** The request in the first record; null for all other records. */
export function requestOf(record: LogRecord): Record<string, unknown> | null {
  if (record.progname !== "api" || !record.message.startsWith('{"client":')) return null;
  try {
    return JSON.parse(record.message) as Record<string, unknown>;
  } catch {
    return null;
  }
}
