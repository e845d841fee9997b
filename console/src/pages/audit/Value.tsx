import { absolute } from "../../kernel/time";
import { Badge } from "../../parts";
import { fieldWord, isPlaceholder, stateOf } from "./words";
import "./value.css";

interface ValueProps {
  kind: string;
  field: string;
  value: unknown;
  /** The type of the event that contains the value. */
  type?: string;
  /** The name of the record with this id. */
  name?: string | null;
}

/** Length above which texts may need scrolling, also by keyboard. */
export const LONG = 300;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/** A value of a field in words: states, times, names of ids, lists. */
export function Value({ kind, field, value, type, name }: ValueProps) {
  if (value === null || value === undefined || value === "") return <span class="faint">–</span>;
  const state = stateOf(kind, field, value, type);
  if (state) return <Badge state={state} />;
  if (typeof value === "boolean") return <>{value ? "yes" : "no"}</>;
  if (isPlaceholder(value)) return <span class="erased">erased</span>;
  if (typeof value === "string" && TIME.test(value)) return <time dateTime={value}>{absolute(new Date(value))}</time>;
  if (typeof value === "string" && name) {
    return (
      <>
        <bdi>{name}</bdi> <code class="faint id">{value}</code>
      </>
    );
  }
  if (Array.isArray(value)) return <List kind={kind} values={value} />;
  if (typeof value === "object") return <List kind={kind} values={Object.entries(value).map(([key, one]) => ({ [fieldWord(key)]: one }))} />;
  const text = String(value);
  return (
    <bdi class="long" tabIndex={text.length > LONG ? 0 : undefined}>
      {text}
    </bdi>
  );
}

function List({ kind, values }: { kind: string; values: readonly unknown[] }) {
  if (values.length === 0) return <span class="faint">none</span>;
  return (
    <ul class="value-list">
      {values.map((each, index) => (
        <li key={index}>
          <bdi>{itemWord(kind, each)}</bdi>
        </li>
      ))}
    </ul>
  );
}

/** An element of a list in one line. */
export function itemWord(kind: string, item: unknown): string {
  if (typeof item !== "object" || item === null) return String(item);
  const said = Object.entries(item).filter(([name, value]) => value !== null && value !== "" && !(Array.isArray(value) && value.length === 0) && !/^id$/i.test(name));
  const named = said.find(([name]) => /^(name|title|label)$/i.test(name));
  if (named && said.length <= 2) return String(named[1]);
  return said.map(([name, value]) => `${fieldWord(name)}: ${typeof value === "object" ? JSON.stringify(value) : (stateOf(kind, name, value)?.word ?? String(value))}`).join(", ");
}
