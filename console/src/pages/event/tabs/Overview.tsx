import { useState } from "preact/hooks";
import { api, dataOf, type MediaEvent } from "../../../kernel/api";
import { useQuery } from "../../../kernel/query";
import { eventPath, useGo } from "../../../kernel/router";
import { may } from "../../../kernel/session";
import { Button, CopyButton, Facts, NoAnswer, Panel, Time } from "../../../parts";
import { CloneDialog } from "../CloneDialog";
import { DeleteConfirm } from "../DeleteConfirm";
import { draftOf, TEXTS } from "../draft";
import { EventForm } from "../EventForm";
import { QualityPanel } from "../Quality";
import type { TabProps } from "./props";
import type { Seen } from "../GuardedConfirm";

/** The fields and times of an Event. It is edited, cloned and deleted here. */
export default function Overview({ event, etag, changed }: TabProps) {
  const [edited, setEdited] = useState<Seen | null>(null);
  const [cloned, setCloned] = useState(false);
  const [deleted, setDeleted] = useState<Seen | null>(null);
  const tags = useQuery(`tags of ${event.id}`, (signal) => dataOf(api.GET("/api/tag/event/{id}", { params: { path: { id: event.id } }, signal })), {
    changes: { aggregates: ["event"], ids: [event.id] },
  });
  const known = tags.current.value;
  const names = (tags.data.value ?? []).map((each) => each.name);
  const go = useGo();
  return (
    <>
      {may("operator") && (
        <div class="state-actions">
          <Button disabled={known === undefined} onClick={() => setEdited({ event, etag })}>
            Edit
          </Button>
          <Button disabled={known === undefined} onClick={() => setCloned(true)}>
            Clone
          </Button>
          <Button kind="quiet" onClick={() => setDeleted({ event, etag })}>
            Delete
          </Button>
        </div>
      )}
      <div class="panels">
        <Panel title="Times">
          <Facts facts={times(event)} />
        </Panel>
        <Panel title="Details">
          <Facts facts={[...identity(event), ["Tags", tags.failure.value ? <NoAnswer query={tags} /> : names.length > 0 ? <Tags names={names} /> : null]]} />
        </Panel>
        <Panel title="Automatic actions">
          <Facts facts={flags(event)} />
        </Panel>
        <QualityPanel event={event} />
      </div>
      {edited && <EventForm title="Edit the Event" seen={edited} begun={draftOf(edited.event, names)} onClose={() => setEdited(null)} changed={changed} />}
      {cloned && <CloneDialog event={event} tags={names} onClose={() => setCloned(false)} onCloned={(id) => go(eventPath(id))} />}
      <DeleteConfirm seen={deleted} onClose={() => setDeleted(null)} deleted={changed} />
    </>
  );
}

type Fact = Parameters<typeof Facts>[0]["facts"][number];

function times(event: MediaEvent): Fact[] {
  const more: Fact[] = [
    ["Film of it from", event.captureVodStart && <Time at={event.captureVodStart} />],
    ["Film of it until", event.captureVodEnd && <Time at={event.captureVodEnd} />],
  ];
  return [
    ["Scheduled start", <Time at={event.scheduledStart} />],
    ["Scheduled end", <Time at={event.scheduledEnd} />],
    ["Was live from", <Time at={event.actualLiveStart} />],
    ["Was live until", <Time at={event.actualLiveEnd} />],
    ["Public from", <Time at={event.publishedStart} />],
    ["Public until", <Time at={event.publishedEnd} />],
    ...more.filter(([, value]) => value),
    ["Created", <Time at={event.dateCreated} />],
  ];
}

function identity(event: MediaEvent): Fact[] {
  const text = (value: string | null) => value && <bdi>{value}</bdi>;
  return [
    ["Room", text(event.room)],
    ["Channel", text(event.channel)],
    ["Type", text(event.eventType)],
    ["Category", text(event.category)],
    ["Flow", text(event.flow)],
    ...TEXTS.map(({ name, label }): Fact => [label, text(event[name])]),
    [
      "Id",
      <span class="text">
        <code>{event.id}</code>
        <CopyButton text={event.id} label="Copy the id" />
      </span>,
    ],
    ["Description", event.description && <bdi class="prose">{event.description}</bdi>],
  ];
}

function flags(event: MediaEvent): Fact[] {
  const word = (flag: boolean, yes: string, no: string): string => (flag ? yes : no);
  return [
    ["Start", word(event.autoStart, event.autoPublish ? "At its scheduled start, public" : "At its scheduled start, not public", "Started manually")],
    ["Stop", word(event.autoEnd, "At its scheduled end", "Stopped manually")],
    ["Publications", word(event.autoStartPublications, "Start when it goes live", "Started manually")],
    ["Infrastructure", word(event.autoProvisionInfrastructure, "Provisioned at its time", "Provisioned manually")],
    ["DRM for the film", word(event.vodDrm, "Yes", "No")],
    ["DVR window", event.dvrLength ? `${event.dvrLength} s` : "None"],
  ];
}

function Tags({ names }: { names: readonly string[] }) {
  return (
    <ul class="tags">
      {names.map((each) => (
        <li key={each}>
          <bdi>{each}</bdi>
        </li>
      ))}
    </ul>
  );
}
