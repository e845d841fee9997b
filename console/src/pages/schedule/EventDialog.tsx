import { useState } from "preact/hooks";
import type { MediaEvent } from "../../kernel/api";
import { eventPath } from "../../kernel/router";
import { EVENT_STATES, stateWord } from "../../kernel/states";
import { zone } from "../../kernel/time";
import { useHere } from "../../kernel/here";
import { toast } from "../../kernel/toasts";
import { Badge, Button, Confirm, Drawer, Field, FormError, useSubmit } from "../../parts";
import type { Fields } from "./csv";
import { add, change, remove, unchanged, type Choices } from "./events";
import { instantOf, localText } from "./timeline";

/** What is being edited: an Event, or the beginnings of a new one. */
export interface Edited {
  event: MediaEvent | null;
  fields: Fields;
}

interface EventDialogProps {
  edited: Edited;
  choices: Choices;
  editable: boolean;
  onClose: () => void;
  onDone: () => void;
  onClone: (event: MediaEvent) => void;
}

const SHOWN = ["title", "refId", "description", "scheduledStart", "scheduledEnd", "roomId", "channelId", "eventTypeId", "categoryId"];

export const fieldsOf = (event: MediaEvent): Fields => ({
  title: event.title,
  refId: event.refId,
  description: event.description ?? "",
  scheduledStart: event.scheduledStart,
  scheduledEnd: event.scheduledEnd,
  roomId: event.roomId,
  channelId: event.channelId,
  eventTypeId: event.eventTypeId,
  categoryId: event.categoryId,
});

/** Adds an Event or changes what stands in the schedule of one. */
export function EventDialog({ edited, choices, editable, onClose, onDone, onClone }: EventDialogProps) {
  const { event } = edited;
  const [values, setValues] = useState<Record<string, string>>(() => textsOf(edited.fields));
  const [asks, setAsks] = useState(false);
  const here = useHere();
  const first = textsOf(edited.fields);
  const form = useSubmit(async () => {
    const changed = Object.entries(values).filter(([name, value]) => event === null || value !== first[name]);
    const fields = Object.fromEntries(changed.map(([name, value]) => [name, wire(name, value)])) as Fields;
    if (event === null) await add(fields);
    else if (changed.length > 0) await change(event.id, fields, await unchanged(event));
    toast(event === null ? "Event added" : "Event saved");
    if (here()) onDone();
  });
  const field = (name: string) => ({
    name,
    value: values[name] ?? "",
    onInput: (value: string) => setValues({ ...values, [name]: value }),
    failure: form.failure,
    disabled: !editable,
  });
  const at = values["scheduledStart"] ? new Date(values["scheduledStart"]) : new Date();
  return (
    <Drawer title={event === null ? "New Event" : "Event"} open onClose={onClose}>
      <form class="event-form" onSubmit={form.submit}>
        {event && (
          <p class="page-line">
            <Badge state={stateWord(EVENT_STATES, event.state)} />
            <a href={eventPath(event.id)}>Open its page</a>
          </p>
        )}
        <Field label="Title" {...field("title")} autoFocus required={event === null} />
        <div class="two">
          <Field label={`Start (${zone(at)})`} type="datetime-local" {...field("scheduledStart")} />
          <Field label={`End (${zone(at)})`} type="datetime-local" {...field("scheduledEnd")} />
          <Field label="Room" options={optionsOf(choices.rooms)} {...field("roomId")} />
          <Field label="Channel" options={optionsOf(choices.channels)} {...field("channelId")} />
          <Field label="Type" options={optionsOf(choices.types)} {...field("eventTypeId")} />
          <Field label="Category" options={optionsOf(choices.categories)} {...field("categoryId")} />
        </div>
        <Field label="Reference" {...field("refId")} hint="The id of the Event in another system." />
        <Field label="Description" lines={3} {...field("description")} />
        <FormError failure={form.failure} shown={SHOWN} />
        {!editable && <p class="hint">To change Events you need the role operator or admin.</p>}
        {editable && (
          <div class="page-actions">
            <Button kind="primary" type="submit" busy={form.busy}>
              {event === null ? "Add" : "Save"}
            </Button>
            {event && <Button onClick={() => onClone(event)}>Clone</Button>}
            {event && <Button onClick={() => setAsks(true)}>Delete</Button>}
          </div>
        )}
      </form>
      {event && (
        <Confirm title="Delete this Event?" action="Delete" danger open={asks} onClose={() => setAsks(false)} onConfirm={async () => {
          await remove(event);
          toast("Event deleted. It can be restored in the tab Deleted.");
          if (here()) onDone();
        }}>
          <p>
            <bdi>{event.title.slice(0, 200) || "An Event without a title"}</bdi>
          </p>
          <p class="faint">It keeps its history and can be restored. Its infrastructure is terminated.</p>
        </Confirm>
      )}
    </Drawer>
  );
}

function textsOf(fields: Fields): Record<string, string> {
  return Object.fromEntries(SHOWN.map((name) => {
    const value = fields[name as keyof Fields] ?? "";
    return [name, name.startsWith("scheduled") ? localText(value) : value];
  }));
}

function wire(name: string, value: string): string | null {
  if (name.startsWith("scheduled")) return instantOf(value);
  return name.endsWith("Id") && name !== "refId" ? value || null : value;
}

export function optionsOf(all: readonly { id: string; name: string }[]): (readonly [string, string])[] {
  return [["", "None"], ...all.map(({ id, name }) => [id, name] as const)];
}
