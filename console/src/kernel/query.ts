/** A query of the API: shows the last answer, reads again after changes, and reports stale answers and failures. */

import { type ReadonlySignal, computed, signal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useCallback, useEffect, useMemo, useRef } from "preact/hooks";
import { Asking } from "./asking";
import { type Failure, asFailure } from "./failure";
import { type ChangeFilter, liveness, oldSince, onChange, onReturn } from "./changes";

export interface Query<T> {
  /** The key of the query. */
  key: string | null;
  /** The last answer; undefined before the first. */
  data: ReadonlySignal<T | undefined>;
  /** The answer if it is current, otherwise undefined: for values that would mislead when they are old. */
  current: ReadonlySignal<T | undefined>;
  failure: ReadonlySignal<Failure | null>;
  loading: ReadonlySignal<boolean>;
  /** True if the answer is not current: the key has changed, the last request failed, or the connection is lost. */
  stale: ReadonlySignal<boolean>;
  /** Reads again immediately. */
  refresh: () => void;
  /** Called as an effect by a part that shows the failure in its own place. Other failures are shown above the page. */
  tells: () => () => void;
}

/** A failed query whose failure no part of the page shows. */
export interface Unread {
  failure: Failure;
  refresh: () => void;
}

export interface QueryOptions {
  /** Reads again when one of these changes. */
  changes?: ChangeFilter;
  /** Milliseconds from a change to the request, which combines several changes. Default 250. */
  quiet?: number;
  /** Interval of repeated reads in milliseconds, while the page is visible. */
  every?: number;
}

const QUIET = 250;
const KEPT = 60;
const answers = new Map<string, unknown>();
const failed = signal<readonly Unread[]>([]);
export const unread = computed(() => failed.value);

/** `key` identifies the query; null disables it. `ask` receives a signal that aborts it. */
export function useQuery<T>(key: string | null, ask: (end: AbortSignal) => Promise<T>, options: QueryOptions = {}): Query<T> {
  const data = useSignal<T | undefined>(key === null ? undefined : (answers.get(key) as T | undefined));
  const failure = useSignal<Failure | null>(null);
  const loading = useSignal(key !== null);
  const late = useSignal(data.peek() !== undefined);
  const stale = useComputed(() => late.value || (oldSince.value !== null && data.value !== undefined));
  const current = useComputed(() => (late.value || oldSince.value !== null ? undefined : data.value));
  const tellers = useSignal(0);
  const asking = useRef(ask);
  asking.current = ask;

  const question = useMemo(() => {
    if (key === null) return null;
    return new Asking<T>((end) => asking.current(end), {
      begun: () => void (loading.value = true),
      answered: (answer) => {
        keep(key, answer);
        data.value = answer;
        failure.value = null;
        loading.value = late.value = false;
      },
      failed: (thrown) => {
        failure.value = asFailure(thrown);
        loading.value = false;
        late.value = data.peek() !== undefined;
      },
    });
  }, [key]);
  const refresh = useCallback(() => question?.now(), [question]);

  useEffect(() => {
    if (key === null || question === null) {
      data.value = undefined;
      loading.value = false;
      return;
    }
    const known = answers.get(key) as T | undefined;
    if (known !== undefined) data.value = known;
    late.value = data.peek() !== undefined;
    failure.value = null;
    question.now();
    return () => question.end();
  }, [question]);

  useEffect(() => (question ? onReturn(() => question.now()) : undefined), [question]);

  const quiet = useRef(QUIET);
  quiet.current = options.quiet ?? QUIET;
  const filter = options.changes && JSON.stringify(options.changes);
  useEffect(() => {
    if (filter === undefined || question === null) return;
    return onChange(JSON.parse(filter) as ChangeFilter, () => question.changed(quiet.current));
  }, [filter, question]);

  useEffect(() => {
    if (options.every === undefined) return;
    const timer = setInterval(() => !document.hidden && question?.poll(), options.every);
    return () => clearInterval(timer);
  }, [options.every, question]);

  useSignalEffect(() => {
    const own = failure.value;
    if (own === null || own.isAbsent || tellers.value > 0) return;
    const each: Unread = { failure: own, refresh };
    failed.value = [...failed.peek(), each];
    return () => void (failed.value = failed.peek().filter((other) => other !== each));
  });
  const tells = useCallback(() => {
    tellers.value = tellers.peek() + 1;
    return () => void (tellers.value = tellers.peek() - 1);
  }, []);

  return { key, data, current, failure, loading, stale, refresh, tells };
}

function keep(key: string, answer: unknown): void {
  answers.delete(key);
  answers.set(key, answer);
  if (answers.size > KEPT) answers.delete(answers.keys().next().value!);
}

/** Forgets all answers, for the next user of this browser. */
export function forgetAnswers(): void {
  answers.clear();
}

export { liveness };
