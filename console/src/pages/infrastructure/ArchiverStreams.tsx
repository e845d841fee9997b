import { useState } from "preact/hooks";
import { answered, api, dataOf, found, ifMatch, type Answer, type Schemas } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { useQueryState } from "../../kernel/router";
import { checkOrder } from "../../kernel/failure";
import { useHere } from "../../kernel/here";
import { localText, now } from "../../kernel/time";
import { toast } from "../../kernel/toasts";
import { Answered, Badge, Button, Check, Confirm, DataTable, Drawer, EmptyState, Field, FormError, Time, useSubmit, type Column, TimeField } from "../../parts";

type Stream = Schemas["ArchiverStream"];
type Format = Stream["streamingFormats"][number];

const FORMATS: readonly Format[] = ["HLS", "DASH", "HDS", "SMOOTH"];
const FIELDS = ["profileId", "captureId", "ismUrl", "startTime", "endTime", "expiresAt"];
const isExpired = (stream: Stream): boolean => stream.expiresAt !== null && Date.parse(stream.expiresAt) <= now.value;

const COLUMNS: readonly Column<Stream>[] = [
  { key: "capture", title: "Capture", value: (each) => each.captureId, cell: (each) => <bdi title={each.captureId}>{each.captureId}</bdi> },
  { key: "profile", title: "Profile", secondary: true, value: (each) => each.profileId, cell: (each) => <bdi title={each.profileId}>{each.profileId}</bdi> },
  { key: "state", title: "State", width: "9rem", cell: (each) => <Badge state={isExpired(each) ? { word: "Expired", tone: "off" } : each.uploaded ? { word: "Uploaded", tone: "ok" } : { word: "Recorded", tone: "neutral" }} /> },
  { key: "formats", title: "Formats", width: "10rem", secondary: true, cell: (each) => each.streamingFormats.join(", ") || <span class="faint">–</span> },
  { key: "start", title: "Start", width: "11rem", value: (each) => each.startTime, cell: (each) => <Time at={each.startTime} /> },
  { key: "expires", title: "Expires", width: "11rem", secondary: true, value: (each) => each.expiresAt, cell: (each) => <Time at={each.expiresAt} /> },
];

/** Records of recordings made by archivers. The product stores the records but records nothing itself. */
export function ArchiverStreams({ editable }: { editable: boolean }) {
  const { values, set } = useQueryState();
  const streams = useQuery("archiver streams", (signal) => dataOf(api.GET("/api/archiverstream/", { signal })), { changes: { aggregates: ["archiver_stream"] } });
  const open = values["open"];
  return (
    <>
      <Answered query={streams}>
        {(all) => (
          <DataTable
            caption="Archiver streams"
            columns={COLUMNS}
            rows={all}
            rowKey={(each) => each.id}
            onRow={(each) => set({ open: String(each.id) })}
            stale={streams.stale.value}
            empty={<EmptyState title="No archiver streams">Archivers store a record of each recording here.</EmptyState>}
          />
        )}
      </Answered>
      {open && <StreamDrawer key={open} id={open === "new" ? null : Number(open)} editable={editable} onClose={() => set({ open: "" })} onDone={() => (streams.refresh(), set({ open: "" }))} />}
    </>
  );
}

interface StreamDrawerProps {
  /** The record; null for a new one. */
  id: number | null;
  editable: boolean;
  onClose: () => void;
  onDone: () => void;
}

function StreamDrawer(props: StreamDrawerProps) {
  const [opening] = useState(() => crypto.randomUUID());
  const path = { id: props.id ?? 0 };
  const stream = useQuery(`archiver stream ${opening}`, async (signal) => (props.id === null ? null : found(api.GET("/api/archiverstream/{id}", { params: { path }, signal }))));
  return (
    <Drawer title={props.id === null ? "New archiver stream" : "Archiver stream"} open onClose={props.onClose}>
      <Answered query={stream}>{(seen) => <Form seen={seen} {...props} />}</Answered>
    </Drawer>
  );
}

function Form({ seen, id, editable, onDone }: StreamDrawerProps & { seen: Answer<Stream> | null }) {
  const here = useHere();
  const before = seen?.data;
  const [typed, setTyped] = useState<Record<string, string>>({
    profileId: before?.profileId ?? "",
    captureId: before?.captureId ?? "",
    ismUrl: before?.ismUrl ?? "",
    startTime: localText(before?.startTime ?? null),
    endTime: localText(before?.endTime ?? null),
    expiresAt: localText(before?.expiresAt ?? null),
  });
  const [uploaded, setUploaded] = useState(before?.uploaded ?? false);
  const [formats, setFormats] = useState<readonly Format[]>(before?.streamingFormats ?? []);
  const [asks, setAsks] = useState(false);
  const instant = (name: "startTime" | "endTime" | "expiresAt"): string | null => {
    const text = typed[name]!;
    if (before && text === localText(before[name])) return before[name]; // an unchanged time keeps its seconds
    return text === "" ? null : new Date(text).toISOString();
  };
  const form = useSubmit(async () => {
    checkOrder(Date.parse(typed["startTime"]!), Date.parse(typed["endTime"]!), "endTime");
    const body = {
      ...{ profileId: typed["profileId"]!, captureId: typed["captureId"]!, ismUrl: typed["ismUrl"]! },
      ...{ startTime: instant("startTime")!, endTime: instant("endTime")!, expiresAt: instant("expiresAt") },
      ...{ uploaded, streamingFormats: [...formats] },
    };
    await answered(id === null ? api.POST("/api/archiverstream/", { body }) : api.PUT("/api/archiverstream/{id}", { params: { path: { id } }, body, headers: ifMatch(seen!.etag) }));
    toast(id === null ? "Archiver stream added" : "Archiver stream saved");
    if (here()) onDone();
  });
  const of = (label: string, name: string) => ({
    ...{ label, name, value: typed[name]!, onInput: (value: string) => setTyped({ ...typed, [name]: value }) },
    ...{ required: name !== "expiresAt", disabled: !editable, failure: form.failure, autoComplete: "off" },
  });
  return (
    <form class="infrastructure" onSubmit={form.submit}>
      <Field {...of("Capture", "captureId")} />
      <Field {...of("Profile", "profileId")} />
      <Field {...of("Address of the manifest", "ismUrl")} />
      <div class="pair">
        <TimeField {...of("Start", "startTime")} />
        <TimeField {...of("End", "endTime")} />
        <TimeField {...of("Expires", "expiresAt")} hint="Empty: never. Nothing is deleted then." />
      </div>
      <fieldset class="resource-fields" disabled={!editable}>
        <legend>Formats</legend>
        {FORMATS.map((each) => (
          <Check key={each} label={each} checked={formats.includes(each)} onChange={(on) => setFormats(on ? [...formats, each] : formats.filter((other) => other !== each))} />
        ))}
        <Check label="Uploaded" checked={uploaded} onChange={setUploaded} />
      </fieldset>
      <FormError failure={form.failure} shown={FIELDS} />
      {editable && (
        <div class="page-actions">
          <Button type="submit" kind="primary" busy={form.busy}>
            {id === null ? "Add" : "Save"}
          </Button>
          {id !== null && <Button onClick={() => setAsks(true)}>Delete</Button>}
        </div>
      )}
      <Confirm
        title="Delete this archiver stream?"
        action="Delete"
        danger
        open={asks}
        onClose={() => setAsks(false)}
        onConfirm={async () => {
          await answered(api.DELETE("/api/archiverstream/{id}", { params: { path: { id: id! } }, headers: ifMatch(seen!.etag) }));
          toast("Archiver stream deleted");
          if (here()) onDone();
        }}
      >
        <p>
          Only the record of <bdi>{(before?.captureId ?? "").slice(0, 200)}</bdi> is deleted. The recording stays.
        </p>
      </Confirm>
    </form>
  );
}
