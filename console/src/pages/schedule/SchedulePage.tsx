import "./schedule.css";
import { useState } from "preact/hooks";
import type { MediaEvent } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { useQueryState } from "../../kernel/router";
import { may } from "../../kernel/session";
import { isOnAir } from "../../kernel/states";
import { clock, day, localText, now } from "../../kernel/time";
import { toast, toastFailure } from "../../kernel/toasts";
import { Answered, Button, Confirm, FilterBar, PageHead, RunReport, Tabs, type Filter } from "../../parts";
import { csvOf, type Fields } from "./csv";
import { type Choices, useChoices } from "../event/choices";
import { EMPTY, type Draft } from "../event/draft";
import { EventForm } from "../event/EventForm";
import { Grid, type Move } from "./Grid";
import { ImportDialog } from "./ImportDialog";
import { MOST_EVENTS, change, eventsOf, unchanged, type EventQuery, type Found } from "./events";
import { OpenedEvent } from "./OpenedEvent";
import { changing, importing } from "./running";
import { Table } from "./Table";
import { HOUR, NO_LANE, laneOf, moved, rangeOf, type Lane, type LaneKind, type Span } from "./timeline";

const VIEWS = [
  { key: "day", title: "Day" },
  { key: "week", title: "Week" },
  { key: "table", title: "Table" },
  { key: "deleted", title: "Deleted" },
];
/** Events that began up to this long before are shown too. */
const BEFORE = 24 * HOUR;

/** A move of an Event on the air, which needs a confirmation. */
interface Asked {
  made: Move;
  answer: (yes: boolean) => void;
}

interface Undo {
  text: string;
  event: MediaEvent;
  etag: string | null;
  fields: Fields;
}

/** The schedule of days and weeks, by room or channel. */
export default function SchedulePage() {
  const { values, set } = useQueryState();
  const view = VIEWS.some((each) => each.key === values["view"]) ? values["view"]! : "day";
  const span: Span = view === "day" ? "day" : "week";
  const kind: LaneKind = values["by"] === "channel" ? "channel" : "room";
  const date = /^\d{4}-\d\d-\d\d$/.test(values["date"] ?? "") && !Number.isNaN(Date.parse(`${values["date"]}T00:00:00`)) ? values["date"]! : day(new Date(now.peek()));
  const range = rangeOf(date, span);
  const query: EventQuery = {
    from: new Date(range.from.getTime() - (view === "deleted" || view === "table" ? 0 : BEFORE)).toISOString(),
    to: new Date(range.to.getTime() - 1).toISOString(),
    room: values["room"],
    channel: values["channel"],
    eventType: values["type"],
    category: values["category"] ? [values["category"]] : undefined,
    tags: values["tag"] ? [values["tag"]] : undefined,
    search: values["search"],
  };
  const [opened, setOpened] = useState<string | null>(null);
  const [added, setAdded] = useState<Draft | null>(null);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [imports, setImports] = useState(false);
  const [undo, setUndo] = useState<Undo | null>(null);
  const editable = may("operator");
  const deleted = view === "deleted";
  const choices = useChoices();
  const events = useQuery<Found>(`schedule ${deleted} ${JSON.stringify(query)}`, (signal) => eventsOf(query, { deleted, signal }), {
    changes: { aggregates: ["event"] },
  });

  const move = async (made: Move): Promise<void> => {
    const { event, times, lane } = made;
    if (isOnAir(event.state) && !(await new Promise<boolean>((answer) => setAsked({ made, answer })))) return;
    const place: Fields = laneOf(event, kind) === lane ? {} : kind === "room" ? { roomId: lane || null } : { channelId: lane || null };
    const end: Fields = times.end === null ? {} : { scheduledEnd: new Date(times.end).toISOString() };
    const start: Fields = event.scheduledStart !== null && Date.parse(event.scheduledStart) === times.start ? {} : { scheduledStart: new Date(times.start).toISOString() };
    const fields: Fields = { ...start, ...end, ...place };
    try {
      const made = await change(event.id, fields, await unchanged(event));
      const before = Object.fromEntries(Object.keys(fields).map((name) => [name, event[name as keyof MediaEvent] ?? null])) as Fields;
      const until = times.end === null ? "" : ` to ${clock(new Date(times.end))}`;
      setUndo({ text: `${event.title.slice(0, 80) || "Event"}: ${day(new Date(times.start))} ${clock(new Date(times.start))}${until}`, event: made.event, etag: made.etag, fields: before });
      const shown = events.data.peek();
      if (shown) shown.events = shown.events.map((each) => (each.id === event.id ? made.event : each));
    } catch (thrown) {
      toastFailure("Not moved", thrown);
    }
    events.refresh();
  };
  const takeBack = async (): Promise<void> => {
    if (!undo) return;
    setUndo(null);
    await change(undo.event.id, undo.fields, undo.etag).then(
      () => toast("Moved back"),
      (thrown: unknown) => toastFailure("Not moved back", thrown),
    );
    events.refresh();
  };
  const startNew = (at: number, place: Partial<Draft> = {}): void => setAdded({ ...EMPTY, scheduledStart: localText(at), scheduledEnd: localText(at + HOUR), ...place });
  const open = (event: MediaEvent): void => setOpened(event.id);

  const actions = (
    <>
      <Button icon="down" disabled={!events.data.value} onClick={() => download(events.data.peek()!.events, date)}>
        CSV
      </Button>
      {editable && <Button onClick={() => setImports(true)}>Import</Button>}
      {editable && (
        <Button kind="primary" onClick={() => startNew(newStart(range, date))}>
          Add Event
        </Button>
      )}
    </>
  );
  return (
    <>
      <PageHead title="Schedule" actions={actions} />
      <div class="schedule-bar">
        <Tabs label="View" tabs={VIEWS} chosen={view} onChoose={(next) => set({ view: next })} />
        <div class="page-line">
          {(view === "day" || view === "week") && (
            <select aria-label="Rows" value={kind} onChange={(event) => set({ by: event.currentTarget.value === "room" ? "" : "channel" })}>
              <option value="room">Rooms</option>
              <option value="channel">Channels</option>
            </select>
          )}
          <Button icon="left" label={`Previous ${span}`} onClick={() => set({ date: moved(date, span, -1) })} />
          <Button onClick={() => set({ date: day(new Date(now.peek())) })}>Today</Button>
          <Button icon="right" label={`Next ${span}`} onClick={() => set({ date: moved(date, span, 1) })} />
          <input type="date" aria-label="Date" value={date} onChange={(event) => event.currentTarget.value && set({ date: event.currentTarget.value })} />
        </div>
      </div>
      <Answered query={choices}>
        {(known) => (
          <>
            <FilterBar filters={filtersOf(known)} />
            {undo && (
              <p class="undo" role="status">
                <bdi>{undo.text}</bdi> <Button onClick={() => void takeBack()}>Undo</Button>
              </p>
            )}
            <RunReport run={changing} />
            {!imports && <RunReport run={importing} />}
            <Answered query={events}>
              {(found) => (
                <>
                  {found.total > MOST_EVENTS && <p class="wrong">The first {MOST_EVENTS} of {found.total} Events are shown. Use the filters.</p>}
                  {view === "day" || view === "week" ? (
                    <Grid
                      events={found.events.filter((each) => reaches(each, range.from.getTime()))}
                      lanes={lanesOf((kind === "room" ? known.rooms : known.channels).filter((each) => !values[kind] || each.name === values[kind]), found.events, kind)}
                      {...{ kind, span, range, date }}
                      onOpen={open}
                      {...(editable ? { onMove: move, onAdd: (lane: string, start: number) => startNew(start, kind === "room" ? { roomId: lane } : { channelId: lane }) } : {})}
                      stale={events.stale.value}
                    />
                  ) : (
                    <Table key={view} events={found.events} choices={known} deleted={deleted} editable={editable} list={events.key} stale={events.stale.value} onOpen={open} onDone={events.refresh} />
                  )}
                </>
              )}
            </Answered>
            {added && <EventForm title="New Event" seen={null} begun={added} onClose={() => setAdded(null)} changed={events.refresh} />}
            {opened && <OpenedEvent key={opened} id={opened} editable={editable} onClose={() => setOpened(null)} onDone={events.refresh} />}
            <Confirm
              title="Move the end of an Event on the air?"
              action="Move the end"
              danger
              open={asked !== null}
              onClose={() => {
                asked?.answer(false);
                setAsked(null);
              }}
              onConfirm={async () => asked?.answer(true)}
            >
              {asked && <MovedEnd {...asked.made} />}
            </Confirm>
            {imports && <ImportDialog choices={known} onClose={() => setImports(false)} onDone={events.refresh} />}
          </>
        )}
      </Answered>
      {editable && (view === "day" || view === "week") && (
        <p class="hint">Drag to move, drag an edge to resize. Keys: Alt with arrows moves, Alt with Shift changes the end, Enter saves, Esc cancels.</p>
      )}
    </>
  );
}

function MovedEnd({ event, times }: Move) {
  const words = (at: number | string | null): string => (at === null ? "no end" : clock(new Date(at)));
  return (
    <p>
      <bdi>{event.title.slice(0, 200) || "Without a title"}</bdi> is on the air. Its scheduled end is {words(event.scheduledEnd)}, and would be <strong>{words(times.end)}</strong>
      {event.autoEnd ? ": it stops automatically then." : "."}
    </p>
  );
}

/** The next full hour if it is visible; else noon of the day that is shown. */
function newStart(range: { from: Date; to: Date }, date: string): number {
  const next = Math.ceil(now.peek() / HOUR) * HOUR;
  return next >= range.from.getTime() && next < range.to.getTime() ? next : Date.parse(`${date}T12:00:00`);
}

function reaches(event: MediaEvent, from: number): boolean {
  if (event.scheduledStart === null) return false;
  const start = Date.parse(event.scheduledStart);
  return start >= from || (event.scheduledEnd !== null && Date.parse(event.scheduledEnd) > from);
}

function lanesOf(all: readonly Lane[], events: readonly MediaEvent[], kind: LaneKind): Lane[] {
  const used = new Set(events.map((each) => laneOf(each, kind)));
  const none = { id: NO_LANE, name: kind === "room" ? "No room" : "No channel" };
  return [...(used.has(NO_LANE) || all.length === 0 ? [none] : []), ...all];
}

function filtersOf(choices: Choices): Filter[] {
  const named = (all: readonly { name: string }[]) => [...new Set(all.map((each) => each.name))].map((name) => [name, name] as const);
  return [
    { name: "search", label: "Search", kind: "search" },
    { name: "room", label: "Room", kind: "choice", options: named(choices.rooms) },
    { name: "channel", label: "Channel", kind: "choice", options: named(choices.channels) },
    { name: "type", label: "Type", kind: "choice", options: named(choices.types) },
    { name: "category", label: "Category", kind: "choice", options: named(choices.categories) },
    { name: "tag", label: "Tag", kind: "search" },
  ];
}

function download(events: readonly MediaEvent[], date: string): void {
  const address = URL.createObjectURL(new Blob([csvOf(events)], { type: "text/csv;charset=utf-8" }));
  const link = Object.assign(document.createElement("a"), { href: address, download: `schedule-${date}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
