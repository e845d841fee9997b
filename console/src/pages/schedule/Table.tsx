import { useState } from "preact/hooks";
import type { MediaEvent } from "../../kernel/api";
import type { Step } from "../../kernel/runs";
import { EVENT_STATES, isOnAir, stateWord } from "../../kernel/states";
import { toast, toastFailure } from "../../kernel/toasts";
import { Badge, Button, Confirm, DataTable, EmptyState, Field, Panel, Time, type Column } from "../../parts";
import type { Fields } from "./csv";
import { type Choices, optionsOf } from "../event/choices";
import { change, remove, restore, unchanged } from "./events";
import { changing } from "./running";
import { MINUTE, placed, shifted, timesOf } from "./timeline";

interface TableProps {
  events: readonly MediaEvent[];
  choices: Choices;
  deleted: boolean;
  editable: boolean;
  /** The key of the list of Events. */
  list: string | null;
  stale: boolean;
  onOpen: (event: MediaEvent) => void;
  onDone: () => void;
}

/** The schedule as a list; several Events can be changed at once. Deleted ones can be restored. */
export function Table({ events, choices, deleted, editable, list, stale, onOpen, onDone }: TableProps) {
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  const chosen = events.filter((each) => marked.has(each.id));
  const mark = (id: string): void => {
    const next = new Set(marked);
    if (!next.delete(id)) next.add(id);
    setMarked(next);
  };
  const all = events.length > 0 && chosen.length === events.length;
  const overlapping = conflictsOf(events);
  const columns: Column<MediaEvent>[] = [
    { key: "title", title: "Title", value: (event) => event.title, cell: (event) => <bdi title={event.title.slice(0, 300)}>{event.title.slice(0, 300) || "Without a title"}</bdi> },
    { key: "start", title: "Start", width: "8.5rem", value: (event) => event.scheduledStart, cell: (event) => <Time at={event.scheduledStart} as="absolute" /> },
    { key: "end", title: "End", width: "8.5rem", value: (event) => event.scheduledEnd, cell: (event) => <Time at={event.scheduledEnd} as="absolute" />, secondary: true },
    { key: "room", title: "Room", width: "9rem", value: (event) => event.room, cell: (event) => event.room, secondary: true },
    { key: "channel", title: "Channel", width: "9rem", value: (event) => event.channel, cell: (event) => event.channel, secondary: true },
    { key: "state", title: "State", width: "10rem", value: (event) => event.state, cell: (event) => <Badge state={stateWord(EVENT_STATES, event.state)} /> },
    { key: "conflict", title: "Conflict", width: "6rem", value: (event) => (overlapping.has(event.id) ? 0 : 1), cell: (event) => overlapping.has(event.id) && <span class="wrong">Overlap</span> },
  ];
  if (editable && !deleted) {
    columns.push({
      key: "mark",
      title: "Choose",
      width: "5rem",
      cell: (event) => <input type="checkbox" aria-label={`Choose ${event.title.slice(0, 100) || event.id}`} checked={marked.has(event.id)} onChange={() => mark(event.id)} />,
    });
  }
  if (deleted) columns.push({ key: "restore", title: "Restore", width: "7rem", cell: (event) => editable && <Restore event={event} onDone={onDone} /> });
  return (
    <>
      {editable && !deleted && events.length > 0 && (
        <div class="page-line">
          <Button onClick={() => setMarked(all ? new Set() : new Set(events.map((each) => each.id)))}>{all ? "Choose none" : `Choose all ${events.length}`}</Button>
          <span class="faint" role="status">
            {chosen.length} chosen
          </span>
        </div>
      )}
      {editable && chosen.length > 0 && <Bulk chosen={chosen} choices={choices} onDone={onDone} />}
      <DataTable
        caption={deleted ? "Deleted Events" : "Scheduled Events"}
        columns={columns}
        rows={events}
        rowKey={(event) => event.id}
        {...(deleted ? {} : { onRow: onOpen })}
        list={list}
        stale={stale}
        empty={<EmptyState title={deleted ? "No deleted Events" : "No Events"}>None match the days and filters.</EmptyState>}
      />
    </>
  );
}

function Restore({ event, onDone }: { event: MediaEvent; onDone: () => void }) {
  const act = (): void =>
    void restore(event.id).then(
      () => (toast("Event restored"), onDone()),
      (thrown: unknown) => toastFailure("Not restored", thrown),
    );
  return (
    <Button label={`Restore ${event.title.slice(0, 100)}`} onClick={act}>
      Restore
    </Button>
  );
}

function conflictsOf(events: readonly MediaEvent[]): ReadonlySet<string> {
  const found = new Set<string>();
  for (const key of ["roomId", "channelId"] as const) {
    const lanes = new Map<string, MediaEvent[]>();
    for (const event of events) {
      const lane = event[key];
      if (lane !== null) lanes.get(lane)?.push(event) ?? lanes.set(lane, [event]);
    }
    for (const lane of lanes.values()) for (const each of placed(lane, true)) if (each.overlaps.length > 0) found.add(each.event.id);
  }
  return found;
}

const WHATS = [
  ["shift", "Shift in time"],
  ["roomId", "Set the room"],
  ["channelId", "Set the channel"],
  ["eventTypeId", "Set the type"],
  ["categoryId", "Set the category"],
  ["delete", "Delete"],
] as const;

/** A change of many Events. Each is written separately if it still has the version that was shown. */
function Bulk({ chosen, choices, onDone }: { chosen: readonly MediaEvent[]; choices: Choices; onDone: () => void }) {
  const [what, setWhat] = useState<string>("shift");
  const [minutes, setMinutes] = useState("15");
  const [id, setId] = useState("");
  const [asks, setAsks] = useState(false);
  const { running } = changing.state;
  const options = { roomId: choices.rooms, channelId: choices.channels, eventTypeId: choices.types, categoryId: choices.categories }[what];
  const shift = Number(minutes);
  const live = what === "shift" ? chosen.filter((each) => isOnAir(each.state)).length : 0;
  const valid = what !== "shift" || (Number.isInteger(shift) && shift !== 0 && Math.abs(shift) <= 527_040);
  const start = (): void =>
    void changing.start(`Change of ${chosen.length} ${chosen.length === 1 ? "Event" : "Events"}`, chosen.map((event) => stepOf(event, { what, shift, id }))).then(onDone);
  return (
    <Panel title={`Change ${chosen.length} ${chosen.length === 1 ? "Event" : "Events"}`}>
      <div class="bulk">
        <Field label="Change" name="what" value={what} options={WHATS} onInput={(next) => (setWhat(next), setId(""))} disabled={running} />
        {what === "shift" && <Field label="Minutes (− earlier)" name="minutes" type="number" value={minutes} onInput={setMinutes} disabled={running} />}
        {options && <Field label="To" name={what} value={id} options={optionsOf(options)} onInput={setId} disabled={running} />}
        <Button kind={what === "delete" ? "danger" : "primary"} disabled={!valid || running} onClick={() => (what === "delete" || live > 0 ? setAsks(true) : start())}>
          Apply
        </Button>
      </div>
      <Confirm title={what === "delete" ? `Delete ${chosen.length} Events?` : "Move the end of Events on the air?"} action={what === "delete" ? "Delete" : "Move"} danger open={asks} onClose={() => setAsks(false)} onConfirm={async () => start()}>
        <p>{chosen.slice(0, 5).map((each) => each.title.slice(0, 60) || "Without a title").join(", ")}{chosen.length > 5 ? ` and ${chosen.length - 5} more` : ""}</p>
        <p class="faint">{what === "delete" ? "They keep their history and can be restored." : `On the air: ${live}. Events on the air keep their start, and end later or earlier.`}</p>
      </Confirm>
    </Panel>
  );
}

function stepOf(event: MediaEvent, { what, shift, id }: { what: string; shift: number; id: string }): Step {
  const act = async (): Promise<string> => {
    if (what === "delete") return remove(event).then(() => "deleted");
    const fields = what === "shift" ? shiftOf(event, shift) : ({ [what]: id || null } as Fields);
    await change(event.id, fields, await unchanged(event));
    return "changed";
  };
  return { what: event.title || event.id, act };
}

function shiftOf(event: MediaEvent, minutes: number): Fields {
  const times = timesOf(event);
  if (times === null) throw new Error("It has no start.");
  const { start, end } = shifted(times, minutes * MINUTE, { edge: isOnAir(event.state) ? "end" : "both", step: MINUTE });
  return { scheduledStart: new Date(start).toISOString(), ...(end === null ? {} : { scheduledEnd: new Date(end).toISOString() }) };
}
