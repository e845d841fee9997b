import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { oldSince } from "../../kernel/changes";
import { useQueryState } from "../../kernel/router";
import { absolute, clock } from "../../kernel/time";
import { Button, Check, EmptyState, FilterBar, JsonView, type Filter } from "../../parts";
import { requestOf, textOf, type Following, type Log, type LogRecord } from "./records";

const DRAWN = 500;
const FILTERS: readonly Filter[] = [
  { name: "find", label: "Search the log", kind: "search" },
  {
    name: "severity",
    label: "Severity",
    kind: "choice",
    options: [
      ["1", "Without debug"],
      ["2", "Warnings and errors"],
      ["3", "Errors"],
    ],
  },
];
const WORDS: Readonly<Record<Following, string>> = {
  reading: "Loading",
  following: "Follows the job",
  ended: "Complete: the job has ended",
  lost: "The connection is lost; reconnecting",
  full: "Too many listeners at the moment; reconnecting in half a minute",
  away: "The database does not answer at the moment",
};

/** The log with a search. It follows the end while that is selected. */
export function JobLog({ log }: { log: Log }) {
  const { values } = useQueryState();
  const [follow, setFollow] = useState(true);
  const [drawn, setDrawn] = useState(DRAWN);
  const scroller = useRef<HTMLDivElement>(null);
  const records = log.records.value;
  const find = (values["find"] ?? "").toLowerCase();
  const least = Number(values["severity"]) || 0;
  const matching = useMemo(
    () => records.filter((each) => each.severity >= least && (find === "" || `${each.progname} ${textOf(each)}`.toLowerCase().includes(find))),
    [records, find, least],
  );
  useEffect(() => {
    const frame = scroller.current;
    if (follow && frame) frame.scrollTop = frame.scrollHeight;
  }, [matching, follow]);
  const shown = matching.slice(-drawn);
  return (
    <>
      <FilterBar filters={FILTERS}>
        <Check label="Follow the end" checked={follow} onChange={setFollow} />
      </FilterBar>
      <p class="faint" role="status">
        {WORDS[oldSince.value !== null && log.following.value !== "ended" ? "lost" : log.following.value]} · {matching.length.toLocaleString("en")} of {records.length.toLocaleString("en")} records
        {log.left.value > 0 && `, ${log.left.value.toLocaleString("en")} earlier records are omitted`}
      </p>
      <div class="log" ref={scroller} tabIndex={0} role="log" aria-live="off" aria-label="Log of the job">
        {matching.length > shown.length && (
          <Button kind="quiet" icon="up" onClick={() => setDrawn(drawn + 2 * DRAWN)}>
            Show earlier records
          </Button>
        )}
        {shown.length === 0 && <EmptyState title={records.length === 0 ? "Nothing is logged yet" : "No record matches"} />}
        {shown.map((each) => (
          <Line key={each.id} record={each} />
        ))}
      </div>
    </>
  );
}

function Line({ record }: { record: LogRecord }) {
  const at = new Date(record.created_at);
  const request = requestOf(record);
  return (
    <div class={`log-line severity-${record.severity}`}>
      <time dateTime={record.created_at} title={absolute(at)}>
        {clock(at, true)}
      </time>
      <span class="log-who">
        {record.severity >= 2 && <b>{record.severity_description} </b>}
        {record.progname}
        {record.task_id !== null && ` ${record.task_id}`}
      </span>
      <div class="log-text">
        <bdi>{textOf(record)}</bdi>
        {request && (
          <details>
            <summary>The request</summary>
            <JsonView value={request} label="Request as JSON" />
          </details>
        )}
      </div>
    </div>
  );
}
