import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { answered, api, dataOf, ifMatch } from "../../kernel/api";
import { asFailure, Failure } from "../../kernel/failure";
import { useHere } from "../../kernel/here";
import { isOnAir } from "../../kernel/states";
import { toast } from "../../kernel/toasts";
import { Button, Check, Drawer, Field, FormError, NoAnswer, TimeField, useSubmit } from "../../parts";
import { type Choices, optionsOf, useChoices } from "./choices";
import { atFields, bodyOf, type Draft, EMPTY, patchOf, problemsOf, TEXTS, type TextName } from "./draft";
import type { Seen } from "./GuardedConfirm";
import { overtaken, type Overtaken, OvertakenNote } from "./Overtaken";
import "./event.css";

const SHOWN = Object.entries(EMPTY)
  .filter(([, value]) => typeof value === "string")
  .map(([name]) => name);
const LINKS = [
  ["roomId", "Room", "rooms", "room"],
  ["channelId", "Channel", "channels", "channel"],
  ["eventTypeId", "Type", "types", "eventType"],
  ["categoryId", "Category", "categories", "category"],
] as const;
const FLAGS = [
  ["autoStart", "Start at the scheduled start"],
  ["autoPublish", "Public when it starts automatically"],
  ["autoEnd", "Stop at the scheduled end"],
  ["autoStartPublications", "Start its publications when it goes live"],
  ["vodEnableDrm", "Protect its film with DRM"],
] as const;

interface EventFormProps {
  title: string;
  /** The edited Event as it was read; null for a new one. */
  seen: Seen | null;
  /** The initial values of the form. */
  begun: Draft;
  editable?: boolean;
  onClose: () => void;
  /** Called after the Event was saved. */
  changed: () => void;
  /** Above the fields. */
  children?: ComponentChildren;
  /** Further buttons. */
  more?: ComponentChildren;
}

/** The form of an Event for all pages: adds an Event, or sends only the changed fields. */
export function EventForm({ title, seen, begun, editable = true, onClose, changed, children, more }: EventFormProps) {
  const [before] = useState(begun);
  const [draft, setDraft] = useState<Draft>(begun);
  const [faster, setFaster] = useState<Overtaken | null>(null);
  const [quit, setQuit] = useState(false);
  const here = useHere();
  const choices = useChoices();
  const steps = patchOf(before, draft);
  const hasBegun = seen !== null && isOnAir(seen.event.state);
  const set = (part: Partial<Draft>): void => setDraft({ ...draft, ...part });
  const form = useSubmit(async () => {
    if (seen !== null && steps.length === 0) return onClose();
    const problems = problemsOf(draft, seen === null ? null : steps);
    if (problems.length > 0) throw new Failure(400, "It cannot be saved like this.", problems);
    if (seen === null) await dataOf(api.POST("/api/event/", { body: bodyOf(draft) as never }));
    else {
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
    }
    toast(seen === null ? "Event added" : "Event saved", "ok", draft.title.slice(0, 100));
    changed();
    if (here()) onClose();
  });
  const close = (): void => (editable && steps.length > 0 && !quit ? setQuit(true) : onClose());
  const shared = { failure: form.failure, disabled: !editable };
  const text = (name: TextName) => ({
    name,
    value: draft[name],
    onInput: (value: string) => set({ [name]: value }),
    ...shared,
  });
  const actions = (
    <>
      {quit && <span class="warn-text">Your changes are not saved.</span>}
      {!quit && more}
      <Button onClick={close}>{quit ? "Leave it" : "Back"}</Button>
      {editable && (
        <Button kind="primary" type="submit" form="event-form" busy={form.busy} disabled={seen !== null && steps.length === 0}>
          {seen === null ? "Add" : faster ? "Save anyway" : "Save"}
        </Button>
      )}
    </>
  );
  return (
    <Drawer title={title} open onClose={close} actions={actions}>
      <form id="event-form" class="stack" onSubmit={form.submit} noValidate>
        {children}
        <Field label="Title" autoFocus={seen === null} {...text("title")} />
        <Field label="Description" lines={3} {...text("description")} />
        <div class="pair">
          <TimeField label="Scheduled start" {...text("scheduledStart")} {...(hasBegun && { disabled: true, hint: "It has begun." })} />
          <TimeField label="Scheduled end" {...text("scheduledEnd")} />
        </div>
        <div class="pair">
          {LINKS.map(([name, label, kind, word]) => (
            <Field key={name} label={label} name={name} value={draft[name]} onInput={(value) => set({ [name]: value })} options={known(choices.data.value?.[kind], draft[name], seen?.event[word])} {...shared} />
          ))}
        </div>
        <NoAnswer query={choices} />
        <Field label="Tags" hint="Separated by commas. A new name creates a tag." {...text("tags")} />
        <div class="pair">
          {TEXTS.map(({ name, label, ...more }) => (
            <Field key={name} label={label} {...("hint" in more && { hint: more.hint })} {...text(name)} />
          ))}
          <Field label="DVR window in seconds" type="number" hint="0: none" {...text("dvrLength")} />
        </div>
        <div class="pair">
          <TimeField label="Public from" hint="It becomes public at this time." {...text("publishedStart")} />
          <TimeField label="Public until" hint="It becomes private at this time." {...text("publishedEnd")} />
        </div>
        <fieldset class="flags" disabled={!editable}>
          <legend>Automatic actions</legend>
          {FLAGS.map(([name, label]) => (
            <Check key={name} label={label} checked={draft[name]} onChange={(checked) => set({ [name]: checked })} />
          ))}
        </fieldset>
        {faster && <OvertakenNote of={faster} />}
        <FormError failure={form.failure} shown={SHOWN} />
        {!editable && <p class="hint">To change Events you need the role operator or admin.</p>}
      </form>
    </Drawer>
  );
}

/** The options. Until they are read, only the selected one, by its `word`. */
function known(all: Choices[keyof Choices] | undefined, chosen: string, word: string | null | undefined) {
  return optionsOf(all ?? (chosen === "" ? [] : [{ id: chosen, name: word ?? chosen }]));
}
