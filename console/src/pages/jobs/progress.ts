/** The progress of running jobs from the stream of the engine, with the rate and the remaining time. */

import { signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { onReturn } from "../../kernel/changes";
import { ENGINE_SILENCE, watchSilence } from "../../kernel/silence";
import { duration } from "../../kernel/time";

export interface TaskSeen {
  job_id: number;
  task_id: number;
  name: string;
  state: string;
  attempts: number;
  fraction: number;
  message: string;
}

export interface Running {
  /** The fraction of all tasks of the job, 0 to 1. */
  fraction: number;
  /** The progress in words: the step, its message, its rate, and the remaining time. */
  text: string;
}

interface Sample {
  at: number;
  fraction: number;
  bytes: number | null;
}

const WINDOW = 20_000;
const BYTES = /^(\d+) of (\d+) bytes/;

/** `1.4 MB`. */
export function size(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** Stores samples of each task, and derives rates from them. */
export class Progresses {
  private readonly samples = new Map<string, Sample[]>();

  /** The jobs of a frame, by their numbers. */
  seen(tasks: readonly TaskSeen[], at: number): Map<number, Running> {
    const jobs = new Map<number, TaskSeen[]>();
    for (const task of tasks) jobs.set(task.job_id, [...(jobs.get(task.job_id) ?? []), task]);
    const running = new Map<number, Running>();
    for (const [id, all] of jobs) running.set(id, this.of(all, at));
    return running;
  }

  private of(tasks: readonly TaskSeen[], at: number): Running {
    const done = tasks.reduce((sum, task) => sum + (task.state === "completed" ? 1 : task.fraction), 0);
    const current = tasks.find((task) => task.state === "running" || task.state === "publishing");
    const fraction = tasks.length === 0 ? 0 : done / tasks.length;
    if (current === undefined) return { fraction, text: "waits for a worker" };
    return { fraction, text: [current.name, this.words(current, at)].filter(Boolean).join(" · ") };
  }

  private words(task: TaskSeen, at: number): string {
    const found = BYTES.exec(task.message);
    const bytes = found ? Number(found[1]) : null;
    const rate = this.rate(task, { at, fraction: task.fraction, bytes });
    const said = found ? `${size(bytes!)} of ${size(Number(found[2]))}` : task.message;
    const left = rate && rate.fraction > 0 && task.fraction < 1 ? `${duration(((1 - task.fraction) / rate.fraction) * 1000)} left` : "";
    return [said, rate?.bytes ? `${size(rate.bytes)}/s` : "", left].filter(Boolean).join(" · ");
  }

  /** The rate per second over the last samples; null while there are too few. */
  private rate(task: TaskSeen, now: Sample): { fraction: number; bytes: number | null } | null {
    const key = `${task.job_id} ${task.task_id} ${task.attempts}`;
    const kept = (this.samples.get(key) ?? []).filter((each) => now.at - each.at <= WINDOW && each.fraction <= now.fraction);
    const first = kept[0];
    this.samples.set(key, [...kept, now]);
    if (this.samples.size > 1000) this.samples.delete(this.samples.keys().next().value!);
    if (first === undefined || now.at - first.at < 1500) return null;
    const seconds = (now.at - first.at) / 1000;
    const bytes = now.bytes !== null && first.bytes !== null ? (now.bytes - first.bytes) / seconds : null;
    return { fraction: (now.fraction - first.fraction) / seconds, bytes };
  }
}

/** The running jobs, read while `wanted` and while the page is visible. */
export function useRunning(wanted: boolean): ReadonlySignal<ReadonlyMap<number, Running>> {
  const running = useMemo(() => signal<ReadonlyMap<number, Running>>(new Map()), []);
  useEffect(() => {
    if (!wanted) return;
    const progresses = new Progresses();
    let source: EventSource | null = null;
    const end = (): void => {
      silence.end();
      source?.close();
      source = null;
    };
    const follow = (): void => {
      end();
      if (document.hidden) return;
      source = new EventSource("/engine/dashboard/stream");
      silence.heard();
      for (const name of ["message", "beat", "away", "full", "error"]) source.addEventListener(name, silence.heard);
      source.onmessage = (message) => {
        const frame = JSON.parse(message.data as string) as { tasks: TaskSeen[] };
        running.value = progresses.seen(frame.tasks, performance.now());
      };
    };
    const silence = watchSilence(follow, ENGINE_SILENCE);
    follow();
    document.addEventListener("visibilitychange", follow);
    const stop = onReturn(follow);
    return () => {
      stop();
      document.removeEventListener("visibilitychange", follow);
      end();
      running.value = new Map();
    };
  }, [wanted]);
  return running;
}
