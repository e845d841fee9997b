import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { useQueryState } from "../kernel/router";
import { Button } from "./Button";

export interface Filter {
  /** The name in the query string. */
  name: string;
  label: string;
  /** `search` and `text` wait until the user pauses typing; `choice` has `options`; `moment` is a date with a time. The key / leads to `search`. */
  kind: "search" | "text" | "choice" | "date" | "moment";
  options?: readonly (readonly [value: string, word: string])[];
}

const QUIET = 250;

interface FilterBarProps {
  filters: readonly Filter[];
  /** Needed where a page has two. */
  label?: string;
  children?: ComponentChildren;
}

/** Filters of a list, kept in the query string of the page. `useQueryState` reads them. */
export function FilterBar({ filters, label = "Filters", children }: FilterBarProps) {
  const { values, set } = useQueryState();
  const used = filters.filter((each) => values[each.name]);
  return (
    <form class="filters" role="search" aria-label={label} onSubmit={(event) => event.preventDefault()}>
      {filters.map((each) => (
        <OneFilter key={each.name} filter={each} value={values[each.name] ?? ""} onChange={(value) => set({ [each.name]: value })} />
      ))}
      {used.length > 0 && (
        <Button kind="quiet" icon="close" onClick={() => set(Object.fromEntries(filters.map((each) => [each.name, ""])))}>
          Clear
        </Button>
      )}
      {children}
    </form>
  );
}

function OneFilter({ filter, value, onChange }: { filter: Filter; value: string; onChange: (value: string) => void }) {
  const id = useId();
  return (
    <div class={`filter ${filter.kind}`}>
      <label for={id}>{filter.label}</label>
      {filter.kind === "search" || filter.kind === "text" ? (
        <Search id={id} main={filter.kind === "search"} value={value} onChange={onChange} />
      ) : filter.kind === "date" || filter.kind === "moment" ? (
        <input id={id} type={filter.kind === "date" ? "date" : "datetime-local"} value={value} onChange={(event) => onChange(event.currentTarget.value)} />
      ) : (
        <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          <option value="">All</option>
          {filter.options?.map(([each, word]) => (
            <option key={each} value={each}>
              {word}
            </option>
          ))}
        </select>
      )}
    </div>
  );
}

function Search({ id, main, value, onChange }: { id: string; main: boolean; value: string; onChange: (value: string) => void }) {
  const [typed, setTyped] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const change = useRef(onChange);
  change.current = onChange;
  const told = useRef(value);
  useEffect(() => {
    if (value === told.current) return; // text typed since then stays
    told.current = value;
    clearTimeout(timer.current);
    setTyped(value);
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const input = (text: string): void => {
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      told.current = text.trim();
      change.current(told.current);
    }, QUIET);
  };
  return (
    <input id={id} type="search" data-search={main || undefined} value={typed} maxLength={200} spellcheck={false} onInput={(event) => input(event.currentTarget.value)} />
  );
}
