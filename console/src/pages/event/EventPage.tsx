import { useMemo, useState } from "preact/hooks";
import { PAGES, type PageProps } from "..";
import { answered, api, type Answer, dataOf, found, ifMatch, type MediaEvent } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { eventPath, to, useQueryState } from "../../kernel/router";
import { may } from "../../kernel/session";
import { EVENT_STATES, isOnAir, MP4_STATES, stateWord } from "../../kernel/states";
import { now, running } from "../../kernel/time";
import { Answered, Badge, Button, EmptyState, JsonView, PageHead, Panel, Tabs, Time, loaded } from "../../parts";
import { GuardedConfirm, type Seen } from "./GuardedConfirm";
import { Playhead } from "./Playhead";
import { QualityBadge } from "./Quality";
import { StateActions } from "./StateActions";
import type { TabProps } from "./tabs/props";
import "./event.css";

const Player = loaded(() => import("./player/Player"));
const TABS = [
  { key: "overview", title: "Overview", show: loaded(() => import("./tabs/Overview")) },
  { key: "playback", title: "Playback", show: loaded(() => import("./tabs/Playback")) },
  { key: "chapters", title: "Chapters", show: loaded(() => import("./tabs/Chapters")) },
  { key: "assets", title: "Assets", show: loaded(() => import("./tabs/Assets")) },
  { key: "captions", title: "Captions", show: loaded(() => import("./tabs/Captions")) },
  { key: "jobs", title: "Jobs", show: loaded(() => import("./tabs/Jobs")) },
  { key: "sessions", title: "Sessions", show: loaded(() => import("./tabs/Sessions")) },
  { key: "publications", title: "Publications", show: loaded(() => import("./tabs/Publications")) },
  { key: "provisioning", title: "Provisioning", show: loaded(() => import("./tabs/Provisioning")) },
  { key: "deliveries", title: "Deliveries", show: loaded(() => import("./tabs/Deliveries")) },
  { key: "json", title: "JSON", show: Json },
] as const;
/** The tabs below the player, which keeps playing when the tab changes. */
const WITH_PLAYER: ReadonlySet<string> = new Set(["playback", "chapters", "assets", "captions"]);

/** An Event: its state and next actions, and its details in tabs. */
export default function EventPage({ params }: PageProps) {
  const id = params["id"] ?? "";
  const event = useQuery(`event ${id}`, (signal) => found(api.GET("/api/event/{id}", { params: { path: { id } }, signal })), {
    changes: { aggregates: ["event"], ids: [id.toLowerCase()] },
  });
  const absent = event.failure.value?.isAbsent ?? false;
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={to("/events")}>Events</a>
      </nav>
      {absent ? <Absent id={id} restored={event.refresh} /> : <Answered query={event}>{(answer) => <Shown answer={answer} refresh={event.refresh} />}</Answered>}
    </>
  );
}

function Shown({ answer: { data: event, etag }, refresh }: { answer: Answer<MediaEvent>; refresh: () => void }) {
  const { values, set } = useQueryState();
  const playhead = useMemo(() => new Playhead(), [event.id]);
  const tab = TABS.find((each) => each.key === values["tab"]) ?? TABS[0];
  const Tab = tab.show;
  const history = may(...(PAGES.find((page) => page.path === "/events/:id/history")?.roles ?? []));
  return (
    <>
      <PageHead title={event.title || "Without a title"} actions={<StateActions event={event} etag={etag} all changed={refresh} />}>
        <Badge state={stateWord(EVENT_STATES, event.state)} title={event.stateString} />
        {isOnAir(event.state) && event.actualLiveStart && <Running since={event.actualLiveStart} />}
        {event.mp4State !== 0 && <Badge state={stateWord(MP4_STATES, event.mp4State)} title={event.mp4StateString} />}
        <QualityBadge event={event} />
        <span class="faint">changed</span> <Time at={event.dateModified} as="relative" />
        {history && <a href={`${eventPath(event.id)}/history`}>History</a>}
      </PageHead>
      <Tabs label="Of this Event" tabs={TABS} chosen={tab.key} onChoose={(key) => set({ tab: key === "overview" ? "" : key })} controls="event-tab" />
      <div id="event-tab" role="tabpanel" aria-label={tab.title} class="stack event-tab" data-tab={tab.key}>
        {WITH_PLAYER.has(tab.key) && <Player key={event.id} event={event} playhead={playhead} />}
        <Tab key={tab.key} event={event} etag={etag} playhead={playhead} changed={refresh} />
      </div>
    </>
  );
}

function Running({ since }: { since: string }) {
  return <span>for {running(now.value - Date.parse(since))}</span>;
}

function Json({ event }: TabProps) {
  return (
    <Panel title="As the API shows it">
      <JsonView value={event} label="Event as JSON" />
    </Panel>
  );
}

/** A missing Event: it never existed, or it is deleted and can be restored. */
function Absent({ id, restored }: { id: string; restored: () => void }) {
  const [asked, setAsked] = useState<Seen | null>(null);
  const deleted = useQuery(`deleted ${id}`, async (signal) => {
    const page = await dataOf(api.GET("/api/event/deleted/", { params: { query: { search: id, pageSize: 100 } }, signal }));
    return page.results.find((each) => each.id.toLowerCase() === id.toLowerCase()) ?? null;
  });
  return (
    <Answered query={deleted}>
      {(event) =>
        event === null ? (
          <>
            <PageHead title="No such Event" />
            <div class="failure" role="alert">
              <p>
                <strong>Not found.</strong> There is no Event with the id <code>{id.slice(0, 100)}</code>.
              </p>
            </div>
          </>
        ) : (
          <>
            <PageHead title={event.title || "Without a title"}>
              <Badge state={{ word: "Deleted", tone: "off" }} /> <Time at={event.dateDeleted} />
            </PageHead>
            <EmptyState
              title="This Event is deleted"
              action={
                may("operator") ? (
                  <Button kind="primary" onClick={() => setAsked({ event, etag: null })}>
                    Restore
                  </Button>
                ) : (
                  <p class="faint">To restore it you need the role operator.</p>
                )
              }
            >
              Its data and history are kept.
            </EmptyState>
            <GuardedConfirm
              title="Restore the Event"
              action="Restore"
              seen={asked}
              onClose={() => setAsked(null)}
              send={async () => {
                await answered(api.PUT("/api/event/restore/{id}", { params: { path: { id: event.id } }, headers: ifMatch(null) }));
                restored();
              }}
              done="Restored"
            >
              <p>It returns to its state before the deletion.</p>
            </GuardedConfirm>
          </>
        )
      }
    </Answered>
  );
}
