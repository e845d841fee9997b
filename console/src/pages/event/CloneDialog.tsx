import { useState } from "preact/hooks";
import { answered, api, type MediaEvent } from "../../kernel/api";
import { Failure } from "../../kernel/failure";
import { useHere } from "../../kernel/here";
import { now } from "../../kernel/time";
import { toast } from "../../kernel/toasts";
import { Button, Dialog, Field, FormError, TimeField, useSubmit } from "../../parts";
import { cloned, startOfCopy } from "./clone";

interface CloneDialogProps {
  event: MediaEvent;
  /** The current tags, which the copy receives. */
  tags: readonly string[];
  onClose: () => void;
  onCloned: (id: string) => void;
}

/** Clones an Event to another time. Its files, chapters and publications are not copied. */
export function CloneDialog({ event, tags, onClose, onCloned }: CloneDialogProps) {
  const [title, setTitle] = useState(event.title);
  const [start, setStart] = useState(() => startOfCopy(event, now.peek()));
  const here = useHere();
  const form = useSubmit(async () => {
    const copy = cloned(event, { title, start, tags });
    if (start === "" && event.autoStart) throw new Failure(400, "It cannot be cloned like this.", [{ field: "scheduledStart", message: "An automatic start needs a scheduled start." }]);
    const made = await answered(api.POST("/api/event/", { body: copy as never }));
    toast("Cloned", "ok", title.slice(0, 100));
    if (!here()) return;
    onClose();
    onCloned(made.data.id);
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
        <TimeField
          label="Scheduled start"
          name="scheduledStart"
          value={start}
          onInput={setStart}
          failure={form.failure}
          hint="Its other times keep their distance from it. Everything is copied except references, files, chapters and publications."
        />
        <FormError failure={form.failure} shown={["title", "scheduledStart"]} />
      </form>
    </Dialog>
  );
}
