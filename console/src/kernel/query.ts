/** A question to the API: shows what is known, asks again when something changes, and says when an answer is stale or failed. */

import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { type Failure, asFailure } from "./failure";
import { type ChangeFilter, liveness, onChange } from "./changes";

export interface Query<T> {
  /** Names the question. */
  key: string | null;
  /** The last answer; undefined before the first. */
  data: ReadonlySignal<T | undefined>;
  failure: ReadonlySignal<Failure | null>;
  loading: ReadonlySignal<boolean>;
  /** What is shown is not of now: the key has changed, or the last question failed. */
  stale: ReadonlySignal<boolean>;
  /** Ask again now. */
  refresh: () => void;
}

export interface QueryOptions {
  /** Ask again when one of these changes. */
  changes?: ChangeFilter;
  /** Milliseconds from a change to the question; further changes meanwhile are one question with it. 250 unless told. */
  quiet?: number;
  /** Ask again every so many milliseconds, while the page is seen. */
  every?: number;
}

const QUIET = 250;
const KEPT = 60;
const answers = new Map<string, unknown>();

/** `key` names the question: another key is another question, null is none. `ask` is given a signal that ends it. */
export function useQuery<T>(key: string | null, ask: (end: AbortSignal) => Promise<T>, options: QueryOptions = {}): Query<T> {
  const data = useSignal<T | undefined>(key === null ? undefined : (answers.get(key) as T | undefined));
  const failure = useSignal<Failure | null>(null);
  const loading = useSignal(key !== null);
  const stale = useSignal(false);
  const asked = useRef<AbortController | null>(null);
  const asking = useRef(ask);
  asking.current = ask;

  const refresh = useCallback(() => {
    if (key === null) return;
    asked.current?.abort();
    const end = new AbortController();
    asked.current = end;
    loading.value = true;
    asking.current(end.signal).then(
      (answer) => {
        if (end.signal.aborted) return;
        keep(key, answer);
        data.value = answer;
        failure.value = null;
        loading.value = stale.value = false;
      },
      (thrown: unknown) => {
        if (end.signal.aborted) return;
        failure.value = asFailure(thrown);
        loading.value = false;
        stale.value = data.peek() !== undefined;
      },
    );
  }, [key]);

  useEffect(() => {
    if (key === null) {
      data.value = undefined;
      loading.value = false;
      return;
    }
    const known = answers.get(key) as T | undefined;
    if (known !== undefined) data.value = known;
    stale.value = data.peek() !== undefined;
    failure.value = null;
    refresh();
    return () => asked.current?.abort();
  }, [key]);

  const quiet = useRef(QUIET);
  quiet.current = options.quiet ?? QUIET;
  const filter = options.changes && JSON.stringify(options.changes);
  useEffect(() => {
    if (filter === undefined || key === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = onChange(JSON.parse(filter) as ChangeFilter, () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        refresh();
      }, quiet.current);
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [filter, refresh]);

  useEffect(() => {
    if (options.every === undefined) return;
    const timer = setInterval(() => !document.hidden && refresh(), options.every);
    return () => clearInterval(timer);
  }, [options.every, refresh]);

  return { key, data, failure, loading, stale, refresh };
}

function keep(key: string, answer: unknown): void {
  answers.delete(key);
  answers.set(key, answer);
  if (answers.size > KEPT) answers.delete(answers.keys().next().value!);
}

/** Forget what was read: for the next user of this browser. */
export function forgetAnswers(): void {
  answers.clear();
}

export { liveness };
