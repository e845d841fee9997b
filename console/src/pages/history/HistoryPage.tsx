import { useState } from "preact/hooks";
import { api, dataOf } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { to, useQueryState } from "../../kernel/router";
import { toast, toastFailure } from "../../kernel/toasts";
import { Answered, Button, Check, CopyButton, DataTable, Facts, JsonView, PageHead, Panel, Tabs, Time, type Column } from "../../parts";
import { Value } from "../audit/Value";
import { fieldWord, isErased, kindWord, pageOf, summary, typeWord, whoWord, type Entry } from "../audit/words";
import type { PageProps } from "..";
import { Differences } from "./Differences";
import { flat, nameOf, versionAt, type State } from "./differences";
import { Erased } from "./Erased";
import { VersionPicker, VersionSlider } from "./Moment";
import { MOST, useHistory } from "./useHistory";
import "./history.css";

const COLUMNS: readonly Column<Entry>[] = [
  {
    key: "what",
    title: "What happened",
    cell: (entry) => (
      <span class={isErased(entry) ? "erased" : ""}>
        {typeWord(entry.type)} <bdi class="faint">{summary(entry)}</bdi>
      </span>
    ),
  },
  { key: "version", title: "Version", width: "5.5rem", align: "end", cell: (entry) => entry.version },
  { key: "at", title: "Recorded", width: "13.5rem", cell: (entry) => <Time at={entry.recordedAt} /> },
  { key: "who", title: "Who", width: "14rem", cell: (entry) => <bdi>{whoWord(entry)}</bdi> },
];

/** The history of an aggregate: a slider over its versions, the differences, and its state at that moment. */
export default function HistoryPage({ params }: PageProps) {
  const kind = params["kind"] ?? "event";
  const given = params["id"] ?? "";
  const id = kind === "client" ? given : given.toLowerCase();
  const history = useHistory(kind, id);
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        {kind === "event" ? <a href={to("/events")}>Events</a> : <a href={to("/audit")}>Audit</a>} ›{" "}
        <a href={to(pageOf(kind, id) ?? "/audit", pageOf(kind, id) ? {} : { kind, id })}>{kindWord(kind)}</a>
      </nav>
      <Answered query={history}>{(entries) => (entries.length === 0 ? null : <Versions kind={kind} id={id} entries={entries} />)}</Answered>
    </>
  );
}

interface VersionsProps {
  kind: string;
  id: string;
  entries: readonly Entry[];
}

/** The versions in the address: `v` or `at`, and `with`; by default the newest and the previous one. */
function useMoment(entries: readonly Entry[]) {
  const { values, set } = useQueryState();
  const newest = entries.length;
  const bounded = (text: string | undefined, least: number): number | null => {
    const value = Number(text);
    return text === undefined || !Number.isInteger(value) ? null : Math.max(least, Math.min(newest, value));
  };
  const time = values["at"] ? Date.parse(values["at"]) : NaN;
  const right = bounded(values["v"], 1) ?? (Number.isNaN(time) ? newest : Math.max(1, versionAt(entries, time)));
  const left = bounded(values["with"], 0) ?? right - 1;
  return {
    right,
    left,
    at: values["v"] === undefined && !Number.isNaN(time) ? new Date(time).toISOString() : null,
    tab: values["tab"] ?? "changes",
    isBefore: !Number.isNaN(time) && values["v"] === undefined && versionAt(entries, time) === 0,
    set,
  };
}

function usePast(kind: string, id: string, version: number, at: string | null, erasures: number) {
  const query = at === null ? { version } : { at };
  return useQuery(version === 0 ? null : `past ${kind} ${id} ${at ?? version} ${erasures}`, (signal) =>
    dataOf(api.GET("/api/audit/{aggregate}/{id}/state", { params: { path: { aggregate: kind, id }, query }, signal })),
  );
}

function Versions({ kind, id, entries }: VersionsProps) {
  const moment = useMoment(entries);
  const { left, right, set, tab } = moment;
  const erasures = entries.filter((each) => each.type.endsWith(".redacted")).length;
  const after = usePast(kind, id, right, moment.isBefore ? null : moment.at, erasures);
  const before = usePast(kind, id, left, null, erasures);
  const state = after.data.value?.state as State | undefined;
  const choose = (version: number): void => set({ v: String(version), at: "" });
  return (
    <>
      <PageHead title={titleOf(state, kind, id)} actions={<Actions kind={kind} id={id} left={left} right={right} />}>
        <span>History of {kind === "event" ? "an Event" : kindWord(kind).toLowerCase()}</span>
        <code class="faint id">{id}</code>
        <CopyButton text={id} label="Copy the id" />
      </PageHead>
      {moment.isBefore && <p class="notice">It did not exist at that time. Its first version is shown.</p>}
      {entries.length >= MOST && <p class="notice">Only the first {MOST.toLocaleString("en")} versions are shown.</p>}
      <Panel title="Moment" actions={<GoToTime at={entries[right - 1]!.recordedAt} onTime={(at) => set({ at, v: "" })} />}>
        <VersionSlider entries={entries} version={right} onVersion={choose} />
        <div class="pickers">
          <VersionPicker label="Compare version" least={0} version={left} entries={entries} onVersion={(version) => set({ with: String(version), v: String(right), at: "" })} />
          <VersionPicker label="with version" least={1} version={right} entries={entries} onVersion={choose} />
          <span>
            <Button kind="quiet" onClick={() => set({ with: "" })}>
              Before
            </Button>
            <Button kind="quiet" onClick={() => set({ v: "", at: "", with: String(right) })}>
              Now
            </Button>
          </span>
        </div>
        <Erased entries={entries} version={right} />
      </Panel>
      <Tabs
        label="What is shown"
        controls="history-tab"
        chosen={tab}
        onChoose={(key) => set({ tab: key === "changes" ? "" : key })}
        tabs={[
          { key: "changes", title: "Changes" },
          { key: "state", title: "State at that moment" },
          { key: "versions", title: "Versions", count: entries.length },
        ]}
      />
      <div id="history-tab" role="tabpanel" class={`history-tab${tab === "versions" ? " tall" : ""}`} aria-label={tab}>
        {tab === "versions" ? (
          <DataTable caption="Versions, the newest first" columns={COLUMNS} rows={[...entries].reverse()} rowKey={(entry) => entry.version} onRow={(entry) => set({ v: String(entry.version), at: "", tab: "" })} />
        ) : (
          <Answered query={after}>
            {(now) =>
              tab === "state" ? (
                <Shown kind={kind} state={now.state as State} />
              ) : left === 0 ? (
                <Differences {...{ kind, id, left, right, entries }} before={{}} after={now.state as State} />
              ) : (
                <Answered query={before}>{(old) => <Differences {...{ kind, id, left, right, entries }} before={old.state as State} after={now.state as State} />}</Answered>
              )
            }
          </Answered>
        )}
      </div>
    </>
  );
}

function titleOf(state: State | undefined, kind: string, id: string): string {
  const named = state && (["title", "name", "label", "workflow"] as const).map((each) => state[each]).find((each) => typeof each === "string" && each !== "");
  return named ? String(named) : `${kindWord(kind)} ${id}`;
}

function Actions({ kind, id, left, right }: { kind: string; id: string; left: number; right: number }) {
  const address = location.origin + to(location.pathname.slice("/console".length), { v: right, with: left });
  const copy = (): void => {
    navigator.clipboard.writeText(address).then(
      () => toast("The link was copied"),
      (thrown: unknown) => toastFailure("The link was not copied", thrown),
    );
  };
  const query = new URLSearchParams({ aggregate: kind, id });
  return (
    <>
      <Button icon="copy" onClick={copy}>
        Copy link
      </Button>
      <a class="button" href={`/api/audit/export?${query}`} download={`${kind}-${id}.ndjson`.replace(/[^\w.-]/g, "_")}>
        Export with proofs
      </a>
    </>
  );
}

/** Goes to a time in the user's zone. */
function GoToTime({ at, onTime }: { at: string; onTime: (at: string) => void }) {
  const here = new Date(at);
  const local = new Date(here.getTime() - here.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
  return (
    <label class="go-to">
      <span class="faint">Go to time</span>
      <input
        type="datetime-local"
        step={1}
        value={local}
        onChange={(event) => {
          const time = new Date(event.currentTarget.value);
          if (!Number.isNaN(time.getTime())) onTime(new Date(time.getTime() + 999).toISOString());
        }}
      />
    </label>
  );
}

/** The complete state, in words. */
function Shown({ kind, state }: { kind: string; state: State }) {
  const [all, setAll] = useState(false);
  const fields = flat(state);
  const shown = Object.entries(fields).filter(([field, value]) => {
    const isTold = (field.endsWith("String") && field.slice(0, -"String".length) in fields) || typeof fields[`${field}Id`] === "string";
    return all || (!isTold && value !== null && value !== "" && value !== false && !(Array.isArray(value) && value.length === 0));
  });
  return (
    <div class="panels">
      <Panel title="State" actions={<Check label="Empty fields too" checked={all} onChange={setAll} />}>
        <Facts facts={shown.map(([field, value]) => [fieldWord(field), <Value kind={kind} field={field} value={value} name={nameOf(field, fields)} />] as const)} />
      </Panel>
      <Panel title="As the API showed it">
        <JsonView value={state} label="State as JSON" />
      </Panel>
    </div>
  );
}
