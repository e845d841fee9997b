import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { Failure, asFailure } from "../kernel/failure";
import { useHere } from "../kernel/here";
import { localWords } from "../kernel/time";
import { toastFailure } from "../kernel/toasts";
import { Button } from "./Button";

interface FieldProps {
  label: string;
  /** The name in the API: errors of a problem document are shown at their field. */
  name: string;
  value: string;
  onInput: (value: string) => void;
  type?: "text" | "password" | "number" | "url" | "datetime-local" | "search";
  /** A text of several lines. */
  lines?: number;
  /** Choices instead of free text: values with their words. */
  options?: readonly (readonly [value: string, word: string])[];
  hint?: ComponentChildren;
  failure?: Failure | null;
  required?: boolean;
  disabled?: boolean;
  autoComplete?: string;
  autoFocus?: boolean;
}

/** A form field with its label, its hint and the problem reported by the server. */
export function Field({ label, name, value, onInput, type = "text", lines, options, hint, failure, ...rest }: FieldProps) {
  const id = useId();
  const wrong = failure?.of(name);
  const described = [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ") || undefined;
  const shared = {
    id,
    name,
    value,
    "aria-invalid": wrong ? ("true" as const) : undefined,
    "aria-describedby": described,
    required: rest.required,
    disabled: rest.disabled,
    autoFocus: rest.autoFocus,
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {options ? (
        <select {...shared} onChange={(event) => onInput(event.currentTarget.value)}>
          {options.map(([each, word]) => (
            <option key={each} value={each}>
              {word}
            </option>
          ))}
        </select>
      ) : lines ? (
        <textarea {...shared} rows={lines} onInput={(event) => onInput(event.currentTarget.value)} />
      ) : (
        <input {...shared} type={type as "text"} autoComplete={rest.autoComplete as "off"} onInput={(event) => onInput(event.currentTarget.value)} />
      )}
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {wrong && (
        <p class="wrong" id={`${id}-wrong`}>
          {wrong}
        </p>
      )}
    </div>
  );
}

/** A field for a local time. The browser may show 12 hours: below it stands the time in 24, with the zone of that day. */
export function TimeField({ hint, ...field }: Omit<FieldProps, "type" | "lines" | "options">) {
  const words = localWords(field.value);
  return (
    <Field
      {...field}
      type="datetime-local"
      hint={
        words === "" ? (
          hint
        ) : (
          <>
            {words}
            {hint && <>. {hint}</>}
          </>
        )
      }
    />
  );
}

interface CheckProps {
  label: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
  hint?: string;
}

export function Check({ label, checked, onChange, hint }: CheckProps) {
  const id = useId();
  return (
    <div class="check">
      <input id={id} type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      <label for={id}>
        {label}
        {hint && <span class="hint">{hint}</span>}
      </label>
    </div>
  );
}

/** The failure of a form, above its buttons. Problems that are `shown` at their fields are omitted. */
export function FormError({ failure, shown = [] }: { failure: Failure | null; shown?: readonly string[] }) {
  if (failure === null) return null;
  const rest = failure.fields.filter((each) => !shown.some((name) => name.toLowerCase() === each.field.toLowerCase()));
  return (
    <div class="form-error" role="alert">
      <p>{failure.detail}</p>
      {rest.length > 0 && (
        <ul>
          {rest.map((each) => (
            <li key={each.field}>
              <code>{each.field}</code> {each.message}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

export interface Submission {
  busy: boolean;
  failure: Failure | null;
  /** The handler for `onSubmit`. */
  submit: (event: Event) => void;
}

/** Sends a form once at a time: `const form = useSubmit(async () => {…})`. What it throws is `failure`, or a message where the form was left. */
export function useSubmit(send: () => Promise<void>): Submission {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const here = useHere();
  const submit = (event: Event): void => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setFailure(null);
    send()
      .catch((thrown: unknown) => (here() ? setFailure(asFailure(thrown)) : toastFailure("A form that you left was not sent", thrown)))
      .finally(() => setBusy(false));
  };
  return { busy, failure, submit };
}

export interface Begun<T> {
  /** The record as the form began with it, or as the form saved it last. */
  record: T;
  /** True if the record was changed since. */
  isOld: boolean;
  /** Must be called with the record that the form saved. */
  saved: (record: T) => void;
}

/** The record that a form began with. Only with that one is compared what was typed, while `now` follows the changes of others. */
export function useBegun<T>(now: T, fields: (record: T) => string): Begun<T> {
  const [record, setRecord] = useState(now);
  const [own, setOwn] = useState<readonly string[]>(() => [fields(now)]);
  const saved = (next: T): void => {
    setRecord(next);
    setOwn([...own, fields(next)]);
  };
  return { record, isOld: !own.includes(fields(now)), saved };
}

/** Says in a form that its record was changed elsewhere meanwhile. `onAgain` begins the form anew. */
export function ChangedMeanwhile({ onAgain }: { onAgain: () => void }) {
  return (
    <div class="notice" role="status">
      <p>It was changed since you opened it. Check the current version before you save.</p>
      <Button onClick={onAgain}>Show the current version</Button>
    </div>
  );
}
