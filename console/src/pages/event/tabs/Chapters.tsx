import { useRef, useState } from "preact/hooks";
import { answered, api, dataOf, found, ifMatch, type Schemas } from "../../../kernel/api";
import { useQuery } from "../../../kernel/query";
import { checkOrder } from "../../../kernel/failure";
import { useHere } from "../../../kernel/here";
import { may } from "../../../kernel/session";
import { clock, day } from "../../../kernel/time";
import { toast, toastFailure } from "../../../kernel/toasts";
import { Answered, Button, Confirm, DataTable, Dialog, EmptyState, Field, FormError, Panel, useSubmit, type Column } from "../../../parts";
import type { TabProps } from "./props";
import { type Playhead, secondsOf } from "../Playhead";

type Chapter = Schemas["ChapterPoint"];
interface Row {
  chapter: Chapter;
  depth: number;
}
/** A chapter in the form; without an id it is new. */
interface Edited {
  chapter: Partial<Chapter>;
  etag: string | null;
}

/** The chapters of an Event, set at the position of the player. */
export default function Chapters({ event, playhead }: TabProps) {
  const [edited, setEdited] = useState<Edited | null>(null);
  const [deleted, setDeleted] = useState<Edited | null>(null);
  const chapters = useQuery(`chapters ${event.id}`, (signal) => dataOf(api.GET("/api/chapterpoint/event/{eventId}", { params: { path: { eventId: event.id } }, signal })), {
    changes: { aggregates: ["chapter_point"] },
  });
  const turn = useRef(0);
  const read = async (id: string, then: (read: Edited) => void): Promise<void> => {
    const mine = ++turn.current;
    const { data, etag } = await found(api.GET("/api/chapterpoint/{id}", { params: { path: { id } } }));
    if (mine === turn.current) then({ chapter: data, etag }); // a chapter opened since then stays
  };
  const open = (id: string, then: (read: Edited) => void): void => void read(id, then).catch((thrown: unknown) => toastFailure("The chapter cannot be read", thrown));
  const columns: Column<Row>[] = [
    { key: "title", title: "Title", cell: ({ chapter, depth }) => <Title chapter={chapter} depth={depth} /> },
    { key: "start", title: "Start", width: "12rem", cell: ({ chapter }) => <Go to={chapter.startTime} playhead={playhead} /> },
    { key: "end", title: "End", width: "12rem", secondary: true, cell: ({ chapter }) => (chapter.endTime ? timeWord(chapter.endTime) : <span class="faint">–</span>) },
    { key: "tag", title: "Tag", width: "8rem", secondary: true, cell: ({ chapter }) => chapter.tag && <bdi>{chapter.tag}</bdi> },
  ];
  if (may("operator")) {
    columns.push({
      key: "actions",
      title: "Change",
      width: "11rem",
      cell: ({ chapter }) => (
        <span class="row-actions">
          <Button kind="quiet" onClick={() => open(chapter.id, setEdited)}>
            Edit
          </Button>
          <Button kind="quiet" onClick={() => open(chapter.id, setDeleted)}>
            Delete
          </Button>
        </span>
      ),
    });
  }
  return (
    <Panel
      title="Chapters"
      actions={
        may("operator") && (
          <Button kind="primary" onClick={() => (turn.current++, setEdited({ chapter: { startTime: playhead.text ?? "" }, etag: null }))}>
            {playhead.seconds.value === null ? "Add a chapter" : "Chapter at the playhead"}
          </Button>
        )
      }
    >
      <Answered query={chapters}>
        {(list) => (
          <DataTable
            caption="Chapters"
            columns={columns}
            rows={flat(list)}
            rowKey={({ chapter }) => chapter.id}
            stale={chapters.stale.value}
            empty={<EmptyState title="No chapters">A chapter is a named position in the stream, such as the beginning of a speech.</EmptyState>}
          />
        )}
      </Answered>
      {edited && <ChapterDialog key={edited.chapter.id ?? "new"} edited={edited} eventId={event.id} playhead={playhead} onClose={() => setEdited(null)} done={chapters.refresh} />}
      <Confirm
        title="Delete the chapter"
        action="Delete"
        danger
        open={deleted !== null}
        onClose={() => setDeleted(null)}
        onConfirm={async () => {
          await answered(api.DELETE("/api/chapterpoint/{id}", { params: { path: { id: deleted!.chapter.id! } }, headers: ifMatch(deleted!.etag) }));
          chapters.refresh();
        }}
      >
        <p>
          <bdi>{deleted?.chapter.title || "Without a title"}</bdi>. Chapters below it move up.
        </p>
      </Confirm>
    </Panel>
  );
}

function flat(chapters: readonly Chapter[], depth = 0): Row[] {
  return chapters.flatMap((chapter) => [{ chapter, depth }, ...flat(chapter.children, depth + 1)]);
}

function Title({ chapter, depth }: { chapter: Chapter; depth: number }) {
  return (
    <span style={{ paddingInlineStart: `${Math.min(depth, 8)}rem` }} title={chapter.title.slice(0, 300)}>
      {depth > 0 && <span class="unseen">Level {depth + 1}: </span>}
      <bdi>{chapter.title.slice(0, 300) || "Without a title"}</bdi>
    </span>
  );
}

function Go({ to, playhead }: { to: string; playhead: Playhead }) {
  if (playhead.seconds.value === null) return <>{timeWord(to)}</>;
  const go = (): void => void (playhead.goTo(to) || toast("This stream cannot be shown at that time", "warn"));
  return (
    <button type="button" class="link" title="Show this in the player" onClick={go}>
      {timeWord(to)}
    </button>
  );
}

/** Shows a time from the start unchanged, and a time of day in the user's zone. */
function timeWord(text: string): string {
  if (!/^\d{4}-/.test(text)) return text;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? text : `${day(at).slice(5)} ${clock(at, true)}`;
}

interface ChapterDialogProps {
  edited: Edited;
  eventId: string;
  playhead: Playhead;
  onClose: () => void;
  done: () => void;
}

function ChapterDialog({ edited, eventId, playhead, onClose, done }: ChapterDialogProps) {
  const isNew = edited.chapter.id === undefined;
  const [title, setTitle] = useState(edited.chapter.title ?? "");
  const [start, setStart] = useState(edited.chapter.startTime ?? "");
  const [end, setEnd] = useState(edited.chapter.endTime ?? "");
  const [tag, setTag] = useState(edited.chapter.tag ?? "");
  const isHere = useHere();
  const form = useSubmit(async () => {
    checkOrder(secondsOf(start.trim()) ?? Date.parse(start), secondsOf(end.trim()) ?? Date.parse(end), "endTime");
    const body = { eventId, title, startTime: start.trim(), endTime: end.trim() || null, tag: tag.trim() || null, ...(isNew ? {} : { id: edited.chapter.id }) };
    await answered(api.POST("/api/chapterpoint/", { body, headers: isNew ? {} : ifMatch(edited.etag) }));
    toast(isNew ? "Chapter added" : "Chapter changed", "ok", title.slice(0, 100));
    done();
    if (isHere()) onClose();
  });
  const here = (set: (text: string) => void) =>
    playhead.seconds.value !== null && (
      <Button kind="quiet" onClick={() => set(playhead.text ?? "")}>
        At the playhead
      </Button>
    );
  const actions = (
    <>
      <Button onClick={onClose}>Back</Button>
      <Button kind="primary" type="submit" form="chapter" busy={form.busy}>
        {isNew ? "Add" : "Save"}
      </Button>
    </>
  );
  const hint = "hh:mm:ss.fff from the start, or a time of day as ISO 8601";
  return (
    <Dialog title={isNew ? "New chapter" : "Chapter"} open onClose={onClose} actions={actions}>
      <form id="chapter" class="stack" onSubmit={form.submit}>
        <Field label="Title" name="title" value={title} onInput={setTitle} failure={form.failure} autoFocus />
        <div class="with-button">
          <Field label="Start" name="startTime" value={start} onInput={setStart} failure={form.failure} hint={hint} />
          {here(setStart)}
        </div>
        <div class="with-button">
          <Field label="End" name="endTime" value={end} onInput={setEnd} failure={form.failure} />
          {here(setEnd)}
        </div>
        <Field label="Tag" name="tag" value={tag} onInput={setTag} failure={form.failure} />
        <FormError failure={form.failure} shown={["title", "startTime", "endTime", "tag"]} />
      </form>
    </Dialog>
  );
}
