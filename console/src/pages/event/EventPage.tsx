import { api, found, type MediaEvent } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { to } from "../../kernel/router";
import { EVENT_STATES, MP4_STATES, stateWord } from "../../kernel/states";
import { Answered, Badge, CopyButton, Facts, JsonView, PageHead, Panel, Time } from "../../parts";
import type { PageProps } from "..";

/** One Event: what it is, and when. */
export default function EventPage({ params }: PageProps) {
  const id = params["id"] ?? "";
  const event = useQuery(
    `event ${id}`,
    async (signal) => (await found(api.GET("/api/event/{id}", { params: { path: { id } }, signal }))).data,
    { changes: { aggregates: ["event"], ids: [id.toLowerCase()] } },
  );
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={to("/events")}>Events</a>
      </nav>
      <Answered query={event}>{(shown) => <Overview event={shown} />}</Answered>
    </>
  );
}

function Overview({ event }: { event: MediaEvent }) {
  return (
    <>
      <PageHead title={event.title || "Without a title"}>
        <Badge state={stateWord(EVENT_STATES, event.state)} title={event.stateString} />
        <Badge state={stateWord(MP4_STATES, event.mp4State)} title={event.mp4StateString} />
        <span class="faint">changed</span> <Time at={event.dateModified} as="relative" />
      </PageHead>
      <div class="panels">
        <Panel title="Times">
          <Facts
            facts={[
              ["Scheduled start", <Time at={event.scheduledStart} />],
              ["Scheduled end", <Time at={event.scheduledEnd} />],
              ["Was live from", <Time at={event.actualLiveStart} />],
              ["Was live until", <Time at={event.actualLiveEnd} />],
              ["Public from", <Time at={event.publishedStart} />],
              ["Public until", <Time at={event.publishedEnd} />],
              ["Created", <Time at={event.dateCreated} />],
            ]}
          />
        </Panel>
        <Panel title="What it is">
          <Facts
            facts={[
              ["Room", event.room],
              ["Channel", event.channel],
              ["Type", event.eventType],
              ["Category", event.category],
              ["Reference", event.refId && <Text of={event.refId} />],
              ["External id", event.externalId && <Text of={event.externalId} />],
              ["Id", <Text of={event.id} copy />],
              ["Description", event.description && <Text of={event.description} />],
            ]}
          />
        </Panel>
      </div>
      <Panel title="As the API shows it">
        <JsonView value={event} label="Event as JSON" />
      </Panel>
    </>
  );
}

function Text({ of, copy = false }: { of: string; copy?: boolean }) {
  return (
    <span class="text">
      <bdi>{of}</bdi>
      {copy && <CopyButton text={of} />}
    </span>
  );
}
