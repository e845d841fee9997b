import { useRef, useState } from "preact/hooks";
import { api, dataOf, type Schemas } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { to, useQueryState } from "../../kernel/router";
import { Button, Check, DataTable, EmptyState, FailureNote, FilterBar, PageHead, Panel, Skeleton, Time, type Column, type Filter } from "../../parts";
import { EntryDrawer } from "./EntryDrawer";
import { ExportDialog } from "./ExportDialog";
import { SavedSearches } from "./SavedSearches";
import { useLog, type Filters } from "./useLog";
import { historyOf, isErased, kindWord, summary, typeWord, whoWord, type Entry } from "./words";
import "./audit.css";

const COLUMNS: readonly Column<Entry>[] = [
  {
    key: "what",
    title: "What happened",
    cell: (entry) => (
      <>
        <span class="what">
          {kindWord(entry.aggregate)}: {typeWord(entry.type)}
        </span>{" "}
        <bdi class={isErased(entry) ? "erased" : "faint"}>{summary(entry)}</bdi>
      </>
    ),
  },
  {
    key: "object",
    title: "Object",
    width: "9.5rem",
    secondary: true,
    cell: (entry) => (
      <a href={to(historyOf(entry.aggregate, entry.id), { v: entry.version })} title={`History of ${entry.id.slice(0, 200)}`} tabIndex={-1}>
        <bdi>{entry.id.length > 12 ? `${entry.id.slice(0, 8)}…` : entry.id}</bdi> <span class="faint">v{entry.version}</span>
      </a>
    ),
  },
  { key: "who", title: "Who", width: "13rem", cell: (entry) => <bdi title={whoWord(entry).slice(0, 300)}>{whoWord(entry)}</bdi> },
  { key: "at", title: "Recorded", width: "12.5rem", cell: (entry) => <Time at={entry.recordedAt} /> },
  { key: "position", title: "Position", width: "6rem", align: "end", secondary: true, cell: (entry) => entry.position },
];
const NAMES = ["kind", "type", "id", "actor", "transaction", "from", "to"] as const;

/** The whole log, newest first: filters, the changes of one request, an entry with its proof, and files. */
export default function AuditPage() {
  const { values, set } = useQueryState();
  const [exporting, setExporting] = useState(false);
  const list = useRef<HTMLDivElement>(null);
  const follows = values["follow"] !== "off";
  const filters = filtersOf(values);
  const ascending = filters.transactionId !== undefined;
  const log = useLog(filters, ascending, () => follows && (list.current?.querySelector(".table-frame")?.scrollTop ?? 0) === 0);
  const position = Number(values["entry"]);
  const chosen = Object.fromEntries(NAMES.filter((each) => values[each]).map((each) => [each, values[each]!]));
  return (
    <>
      <PageHead
        title={ascending ? "Changes of one request" : "Audit"}
        actions={
          <>
            {!ascending && <Check label="Follow" checked={follows} onChange={(on) => set({ follow: on ? "" : "off" })} />}
            <Button onClick={() => setExporting(true)}>Export</Button>
          </>
        }
      />
      <Facets kind={values["kind"]} />
      <SavedSearches query={chosen} />
      {ascending && log.entries.length > 0 && <OneRequest entries={log.entries} isWhole={log.isWhole} />}
      {log.failure && <FailureNote failure={log.failure} retry={log.again} />}
      {log.isBehind && (
        <p class="behind" role="status">
          <Button icon="up" onClick={() => { list.current?.querySelector(".table-frame")?.scrollTo(0, 0); log.catchUp(); }}>
            There are new entries
          </Button>
        </p>
      )}
      <div class="audit-list" ref={list}>
        {log.entries.length === 0 && log.isReading ? (
          <>
            {log.reached !== null && <p class="faint" role="status">No match yet: searched up to position {log.reached.toLocaleString("en")}.</p>}
            <Skeleton lines={8} />
          </>
        ) : (
          <DataTable
            caption="Entries of the log"
            columns={COLUMNS}
            rows={log.entries}
            rowKey={(entry) => entry.position}
            onRow={(entry) => set({ entry: String(entry.position) })}
            onEnd={log.more}
            empty={log.failure ? undefined : <EmptyState title="No entries">None match the filters.</EmptyState>}
          />
        )}
      </div>
      <p class="faint log-foot">
        {log.entries.length.toLocaleString("en")} entries{log.isWhole ? "" : log.isReading ? ", reading more …" : ", more when you scroll"}
      </p>
      {Number.isInteger(position) && position > 0 && (
        <EntryDrawer key={position} position={position} known={log.entries.find((each) => each.position === position)} onClose={() => set({ entry: "" })} />
      )}
      {exporting && <ExportDialog filters={filters} ascending={ascending} onClose={() => setExporting(false)} />}
    </>
  );
}

function filtersOf(values: Readonly<Record<string, string>>): Filters {
  const found: Record<string, string | undefined> = {
    aggregate: values["kind"],
    type: values["type"],
    id: values["id"],
    actor: values["actor"],
    transactionId: values["transaction"],
    from: isoOf(values["from"], 0),
    to: isoOf(values["to"], 59_999),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value)) as Filters;
}

/** Times are in the user's zone, to the minute. */
function isoOf(text: string | undefined, rest: number): string | undefined {
  const at = text ? new Date(text) : null;
  return at === null || Number.isNaN(at.getTime()) ? undefined : new Date(at.getTime() + rest).toISOString();
}

function Facets({ kind }: { kind: string | undefined }) {
  const kinds = useQuery("audit kinds", (signal) => dataOf(api.GET("/api/audit/kinds", { signal })));
  return <FilterBar filters={facetsOf(kinds.data.value ?? [], kind)} />;
}

function facetsOf(kinds: readonly Schemas["KindOfAggregate"][], kind: string | undefined): readonly Filter[] {
  const types = kinds.filter((each) => !kind || each.aggregate === kind).flatMap((each) => each.types);
  return [
    { name: "kind", label: "Kind", kind: "choice", options: kinds.map((each) => [each.aggregate, kindWord(each.aggregate)] as const) },
    { name: "type", label: "What happened", kind: "choice", options: types.map((each) => [each, kind ? typeWord(each) : `${kindWord(each.split(".")[0]!)}: ${typeWord(each)}`] as const) },
    { name: "actor", label: "Client or person", kind: "search" },
    { name: "id", label: "Id", kind: "search" },
    { name: "transaction", label: "Request", kind: "search" },
    { name: "from", label: "From", kind: "moment" },
    { name: "to", label: "To", kind: "moment" },
  ];
}

/** A summary of the changes of one request. */
function OneRequest({ entries, isWhole }: { entries: readonly Entry[]; isWhole: boolean }) {
  const first = entries[0]!;
  const objects = new Map(entries.map((each) => [`${each.aggregate} ${each.id}`, each]));
  const shown = [...objects.values()].slice(0, 20);
  return (
    <Panel title="The request">
      <p>
        <bdi>{whoWord(first)}</bdi>, <Time at={first.recordedAt} as="full" />: {isWhole ? "" : "at least "}
        {entries.length} {entries.length === 1 ? "change" : "changes"} to {objects.size} {objects.size === 1 ? "object" : "objects"}. Its consequences, such as a job, are included.
      </p>
      <p class="links">
        {shown.map((each) => (
          <a key={`${each.aggregate} ${each.id}`} href={to(historyOf(each.aggregate, each.id))}>
            {kindWord(each.aggregate)} <bdi>{each.id.length > 12 ? `${each.id.slice(0, 8)}…` : each.id}</bdi>
          </a>
        ))}
        {objects.size > shown.length && <span class="faint">and {objects.size - shown.length} more</span>}
      </p>
    </Panel>
  );
}
