import { useState } from "preact/hooks";
import { answered, api, type MediaEvent } from "../../kernel/api";
import { useHere } from "../../kernel/here";
import { eventPath, useGo } from "../../kernel/router";
import { zone } from "../../kernel/time";
import { toast } from "../../kernel/toasts";
import { Button, Dialog, Field, FormError, useSubmit } from "../../parts";
import { localTime } from "./draft";

/** Makes another Event like this one, at another time. Its files, chapters and publications are not taken. */
export function CloneDialog({ event, tags, onClose }: { event: MediaEvent; tags: readonly string[]; onClose: () => void }) {
  const [title, setTitle] = useState(event.title);
  const [start, setStart] = useState(localTime(event.scheduledStart));
  const go = useGo();
  const here = useHere();
  const form = useSubmit(async () => {
    const made = await answered(api.POST("/api/event/", { body: cloned(event, { title, start, tags }) }));
    toast("Cloned", "ok", title.slice(0, 100));
    if (!here()) return;
    onClose();
    go(eventPath(made.data.id));
  });
  const actions = (
    <>
      <Button onClick={onClose}>Back</Button>
      <Button kind="primary" type="submit" form="clone-event" busy={form.busy}>
        Clone
      </Button>
    </>
  );
  return (
    <Dialog title="Clone the Event" open onClose={onClose} actions={actions}>
      <form id="clone-event" class="stack" onSubmit={form.submit}>
        <Field label="Title" name="title" value={title} onInput={setTitle} failure={form.failure} />
        <Field
          label="Scheduled start"
          name="scheduledStart"
          type="datetime-local"
          value={start}
          onInput={setStart}
          failure={form.failure}
          hint={`Local time, ${zone(new Date())}. It is as long as this one. Room, channel, type, category, tags and flags are taken; the references are not.`}
        />
        <FormError failure={form.failure} shown={["title", "scheduledStart"]} />
      </form>
    </Dialog>
  );
}

function cloned(event: MediaEvent, { title, start, tags }: { title: string; start: string; tags: readonly string[] }) {
  const from = start === "" ? null : start === localTime(event.scheduledStart) ? Date.parse(event.scheduledStart!) : Date.parse(start);
  const long = event.scheduledStart && event.scheduledEnd ? Date.parse(event.scheduledEnd) - Date.parse(event.scheduledStart) : null;
  const iso = (at: number | null): string | null => (at === null || Number.isNaN(at) ? null : new Date(at).toISOString());
  return {
    title,
    description: event.description,
    scheduledStart: iso(from),
    scheduledEnd: from === null || long === null ? null : iso(from + long),
    roomId: event.roomId,
    channelId: event.channelId,
    eventTypeId: event.eventTypeId,
    categoryId: event.categoryId,
    flowId: event.flowId,
    infrastructureProfileId: event.infrastructureProfileId,
    tags: tags.map((name) => ({ name })),
    autoStart: event.autoStart,
    autoEnd: event.autoEnd,
    autoPublish: event.autoPublish,
    autoStartPublications: event.autoStartPublications,
    vodEnableDrm: event.vodDrm,
    dvrLength: event.dvrLength,
    additionalStreamingOptions: event.additionalStreamingOptions,
  };
}
