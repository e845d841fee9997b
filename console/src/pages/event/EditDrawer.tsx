import { useState } from "preact/hooks";
import { answered, api, dataOf, ifMatch } from "../../kernel/api";
import { asFailure, type Failure } from "../../kernel/failure";
import { useQuery } from "../../kernel/query";
import { useHere } from "../../kernel/here";
import { toast } from "../../kernel/toasts";
import { zone } from "../../kernel/time";
import { Button, Check, Drawer, Field, FormError, useSubmit } from "../../parts";
import { atFields, type Draft, draftOf, patchOf } from "./draft";
import type { Seen } from "./GuardedConfirm";
import { overtaken, type Overtaken, OvertakenNote } from "./Overtaken";

type Options = readonly (readonly [value: string, word: string])[];
interface Choices {
  rooms: Options;
  channels: Options;
  types: Options;
  categories: Options;
}

const SHOWN = ["title", "description", "scheduledStart", "scheduledEnd", "roomId", "channelId", "eventTypeId", "categoryId", "tags", "refId", "externalId", "dvrLength"];
const FLAGS = [
  ["autoStart", "Start at the scheduled start"],
  ["autoPublish", "Public when it starts by itself"],
  ["autoEnd", "Stop at the scheduled end"],
  ["autoStartPublications", "Start its publications when it goes live"],
  ["vodEnableDrm", "Protect its film with DRM"],
] as const;

/** Edits the data of an Event. Sends what was changed, and nothing else. */
export function EditDrawer({ seen, tags, onClose, changed }: { seen: Seen; tags: readonly string[]; onClose: () => void; changed: () => void }) {
  const [begun] = useState(() => draftOf(seen.event, tags));
  const [draft, setDraft] = useState<Draft>(begun);
  const [faster, setFaster] = useState<Overtaken | null>(null);
  const [quit, setQuit] = useState(false);
  const here = useHere();
  const choices = useQuery("choices of events", readChoices);
  const steps = patchOf(begun, draft);
  const set = (changed: Partial<Draft>): void => setDraft({ ...draft, ...changed });
  const form = useSubmit(async () => {
    if (steps.length === 0) return onClose();
    const etag = faster ? faster.now.etag : seen.etag;
    try {
      const headers = { ...ifMatch(etag), "Content-Type": "application/json-patch+json" };
      await answered(api.PATCH("/api/event/{id}", { params: { path: { id: seen.event.id } }, body: steps, headers }));
    } catch (thrown) {
      const failure = asFailure(thrown);
      if (!failure.wasOvertaken) throw atFields(failure, steps);
      setFaster(await overtaken(faster?.now.data ?? seen.event));
      return;
    }
    toast("Saved", "ok", draft.title.slice(0, 100));
    changed();
    if (here()) onClose();
  });
  const close = (): void => (steps.length > 0 && !quit ? setQuit(true) : onClose());
  const shared = { failure: form.failure };
  const actions = (
    <>
      {quit && <span class="warn-text">What you changed is not saved.</span>}
      <Button onClick={close}>{quit ? "Leave it" : "Back"}</Button>
      <Button kind="primary" type="submit" form="edit-event" busy={form.busy} disabled={steps.length === 0}>
        {faster ? "Save all the same" : "Save"}
      </Button>
    </>
  );
  const hint = `Local time, ${zone(new Date())}`;
  return (
    <Drawer title="Edit the Event" open onClose={close} actions={actions}>
      <form id="edit-event" class="stack" onSubmit={form.submit} noValidate>
        <Field label="Title" name="title" value={draft.title} onInput={(title) => set({ title })} {...shared} />
        <Field label="Description" name="description" lines={3} value={draft.description} onInput={(description) => set({ description })} {...shared} />
        <div class="pair">
          <Field label="Scheduled start" name="scheduledStart" type="datetime-local" value={draft.scheduledStart} onInput={(scheduledStart) => set({ scheduledStart })} hint={hint} {...shared} />
          <Field label="Scheduled end" name="scheduledEnd" type="datetime-local" value={draft.scheduledEnd} onInput={(scheduledEnd) => set({ scheduledEnd })} hint={hint} {...shared} />
        </div>
        <div class="pair">
          <Choice label="Room" name="roomId" options={choices.data.value?.rooms} draft={draft} word={seen.event.room} set={set} {...shared} />
          <Choice label="Channel" name="channelId" options={choices.data.value?.channels} draft={draft} word={seen.event.channel} set={set} {...shared} />
          <Choice label="Type" name="eventTypeId" options={choices.data.value?.types} draft={draft} word={seen.event.eventType} set={set} {...shared} />
          <Choice label="Category" name="categoryId" options={choices.data.value?.categories} draft={draft} word={seen.event.category} set={set} {...shared} />
        </div>
        <Field label="Tags" name="tags" value={draft.tags} onInput={(text) => set({ tags: text })} hint="Separated by commas. A new name makes a new tag." {...shared} />
        <div class="pair">
          <Field label="Reference" name="refId" value={draft.refId} onInput={(refId) => set({ refId })} {...shared} />
          <Field label="External id" name="externalId" value={draft.externalId} onInput={(externalId) => set({ externalId })} {...shared} />
          <Field label="DVR window in seconds" name="dvrLength" type="number" value={draft.dvrLength} onInput={(dvrLength) => set({ dvrLength })} hint="0: none" {...shared} />
        </div>
        <fieldset class="flags">
          <legend>What happens by itself</legend>
          {FLAGS.map(([name, label]) => (
            <Check key={name} label={label} checked={draft[name]} onChange={(checked) => set({ [name]: checked })} />
          ))}
        </fieldset>
        {faster && <OvertakenNote of={faster} />}
        <FormError failure={form.failure} shown={SHOWN} />
      </form>
    </Drawer>
  );
}

interface ChoiceProps {
  label: string;
  name: "roomId" | "channelId" | "eventTypeId" | "categoryId";
  options: Options | undefined;
  draft: Draft;
  /** The name of what is chosen, as long as the others are not read. */
  word: string | null;
  set: (changed: Partial<Draft>) => void;
  failure: Failure | null;
}

function Choice({ label, name, options, draft, word, set, failure }: ChoiceProps) {
  const known = options ?? (draft[name] ? [[draft[name], word ?? draft[name]] as const] : []);
  return <Field label={label} name={name} value={draft[name]} onInput={(value) => set({ [name]: value })} options={[["", "None"], ...known]} failure={failure} />;
}

async function readChoices(signal: AbortSignal): Promise<Choices> {
  const [rooms, channels, types, categories] = await Promise.all([
    dataOf(api.GET("/api/room/", { signal })),
    dataOf(api.GET("/api/channel/", { signal })),
    dataOf(api.GET("/api/eventtype/", { signal })),
    dataOf(api.GET("/api/category/", { signal })),
  ]);
  return {
    rooms: rooms.map((each) => [each.Id, each.Name.slice(0, 100)]),
    channels: channels.map((each) => [each.id, each.name.slice(0, 100)]),
    types: types.map((each) => [each.id, each.name.slice(0, 100)]),
    categories: categories.map((each) => [each.id, (each.label || each.name).slice(0, 100)]),
  };
}

