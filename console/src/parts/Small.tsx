/** Small parts that have no state of their own, or little. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Failure } from "../kernel/failure";
import type { Query } from "../kernel/query";
import type { Tone } from "../kernel/states";
import { Button } from "./Button";

/** A line of values, oldest first. `label` says in words what it shows. */
export function Sparkline({ values, label, tone = "neutral" }: { values: readonly number[]; label: string; tone?: Tone }) {
  const width = 120;
  const height = 28;
  const [low, high] = [Math.min(0, ...values), Math.max(1e-9, ...values)];
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  const points = values.map((value, index) => `${(index * step).toFixed(1)},${(height - 1 - ((value - low) / (high - low)) * (height - 2)).toFixed(1)}`);
  return (
    <svg class={`sparkline tone-${tone}`} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label} preserveAspectRatio="none">
      {points.length > 1 && <polyline points={points.join(" ")} />}
    </svg>
  );
}

/** A progress bar. Without `value` the progress is unknown. */
export function Progress({ value, max = 100, label }: { value?: number | undefined; max?: number; label: string }) {
  const known = value !== undefined;
  return (
    <div class="progress">
      <progress aria-label={label} max={max} {...(known ? { value } : {})} />
      <span>{known ? `${Math.floor((value / max) * 100)} %` : "…"}</span>
    </div>
  );
}

/** The text of an empty view: the reason, and the next action. */
export function EmptyState({ title, children, action }: { title: string; children?: ComponentChildren; action?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <p class="faint">{children}</p>}
      {action}
    </div>
  );
}

/** An error in place of a part that could not be read. */
export function FailureNote({ failure, retry }: { failure: Failure; retry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <p>
        <strong>{failure.status === 0 ? "No answer" : failure.isAbsent ? "Not found" : `Error ${failure.status}`}.</strong> {failure.detail}
      </p>
      {failure.transactionId && (
        <p class="faint">
          Request <code>{failure.transactionId}</code>
        </p>
      )}
      {retry && !failure.isAbsent && (
        <Button icon="refresh" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** The answer of a `useQuery`: a shadow before the first, then the answer; an error above what is no longer of now. */
export function Answered<T>({ query, children }: { query: Query<T>; children: (data: T) => ComponentChildren }) {
  const data = query.data.value;
  const failure = query.failure.value;
  useEffect(query.tells, [query.tells]);
  return (
    <>
      {failure && <FailureNote failure={failure} retry={query.refresh} />}
      {data !== undefined ? <div class={failure ? "answer old" : "answer"}>{children(data)}</div> : failure ? null : <Skeleton />}
    </>
  );
}

/** In the place of a value that could not be read, or only before: says so. Nothing where it is known. */
export function NoAnswer({ query }: { query: Query<unknown> }) {
  useEffect(query.tells, [query.tells]);
  const failure = query.failure.value;
  if (failure === null || failure.isAbsent) return null;
  return (
    <span class="no-answer" role="status" title={failure.detail}>
      No answer{" "}
      <button type="button" class="link" onClick={query.refresh}>
        Try again
      </button>
    </span>
  );
}

export function Skeleton({ lines = 5 }: { lines?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

/** Any value as indented JSON. */
export function JsonView({ value, label = "JSON" }: { value: unknown; label?: string }) {
  const text = JSON.stringify(value, null, 2) ?? "";
  return (
    <div class="json">
      <CopyButton text={text} label={`Copy ${label}`} />
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
    </div>
  );
}

/** Copies a text, and says so. */
export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return <Button kind="quiet" icon={done ? "check" : "copy"} label={done ? "Copied" : label} onClick={() => void copy()} />;
}

/** A long value scrolls in its place, and then has to be reached with the keyboard. */
function reachable(element: HTMLElement | null): void {
  if (element && element.scrollHeight > element.clientHeight) element.tabIndex = 0;
}

/** Names and values. Values that are null are shown as a dash. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd ref={reachable}>{value === null || value === undefined || value === "" ? <span class="faint">–</span> : value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A part of a page with a heading. */
export function Panel({ title, children, actions }: { title: string; children: ComponentChildren; actions?: ComponentChildren }) {
  return (
    <section class="panel" aria-label={title}>
      <header class="panel-head">
        <h2>{title}</h2>
        {actions}
      </header>
      <div class="panel-body">{children}</div>
    </section>
  );
}

/** The head of a page: its title, a line below it, buttons at the right. The title of the window follows. */
export function PageHead({ title, children, actions }: { title: string; children?: ComponentChildren; actions?: ComponentChildren }) {
  document.title = `${title.slice(0, 80)} · medialedger`;
  return (
    <header class="page-head">
      <div class="page-title">
        <h1 title={title}>
          <bdi>{title}</bdi>
        </h1>
        {children && <div class="page-line">{children}</div>}
      </div>
      {actions && <div class="page-actions">{actions}</div>}
    </header>
  );
}
