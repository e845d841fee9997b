import { useEffect, useState } from "preact/hooks";
import { api, dataOf, found } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { eventPath } from "../../kernel/router";
import { EVENT_STATES, stateWord } from "../../kernel/states";
import { Answered, Badge, Button, Drawer } from "../../parts";
import { CloneDialog } from "../event/CloneDialog";
import { DeleteConfirm } from "../event/DeleteConfirm";
import { draftOf } from "../event/draft";
import { EventForm } from "../event/EventForm";
import type { Seen } from "../event/GuardedConfirm";

interface OpenedEventProps {
  id: string;
  editable: boolean;
  onClose: () => void;
  onDone: () => void;
}

type Opened = Seen & { tags: readonly string[] };

/** The form of an Event of the schedule, with its state when it was opened. It can be cloned and deleted there. */
export function OpenedEvent({ id, editable, onClose, onDone }: OpenedEventProps) {
  const [opened, setOpened] = useState<Opened | null>(null);
  const [asks, setAsks] = useState<"clone" | "delete" | null>(null);
  const query = useQuery(`opened ${id}`, (signal) => readOpened(id, signal));
  const current = query.current.value;
  useEffect(() => {
    if (current) setOpened((before) => before ?? current);
  }, [current]);
  if (opened === null) {
    return (
      <Drawer title="Event" open onClose={onClose}>
        <Answered query={query}>{() => null}</Answered>
      </Drawer>
    );
  }
  const { event, tags } = opened;
  if (asks === "clone") return <CloneDialog event={event} tags={tags} onClose={onClose} onCloned={onDone} />;
  const more = editable && (
    <>
      <Button kind="quiet" onClick={() => setAsks("clone")}>
        Clone
      </Button>
      <Button kind="quiet" onClick={() => setAsks("delete")}>
        Delete
      </Button>
    </>
  );
  return (
    <>
      <EventForm title="Event" seen={opened} begun={draftOf(event, tags)} editable={editable} onClose={onClose} changed={onDone} more={more}>
        <p class="page-line">
          <Badge state={stateWord(EVENT_STATES, event.state)} />
          <a href={eventPath(event.id)}>Open its page</a>
        </p>
      </EventForm>
      <DeleteConfirm
        seen={asks === "delete" ? opened : null}
        onClose={() => setAsks(null)}
        deleted={() => {
          onDone();
          onClose();
        }}
      />
    </>
  );
}

async function readOpened(id: string, signal: AbortSignal): Promise<Opened> {
  const [{ data: event, etag }, tags] = await Promise.all([
    found(api.GET("/api/event/{id}", { params: { path: { id } }, signal })),
    dataOf(api.GET("/api/tag/event/{id}", { params: { path: { id } }, signal })),
  ]);
  return { event, etag, tags: tags.map((each) => each.name) };
}
