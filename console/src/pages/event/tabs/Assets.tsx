import { useState } from "preact/hooks";
import { answered, api, dataOf, ifMatch, type Schemas } from "../../../kernel/api";
import { useQuery } from "../../../kernel/query";
import { jobPath } from "../../../kernel/router";
import { checkOrder } from "../../../kernel/failure";
import { useHere } from "../../../kernel/here";
import { may } from "../../../kernel/session";
import { ASSET_STATES, stateWord } from "../../../kernel/states";
import { toast } from "../../../kernel/toasts";
import { Answered, Badge, Button, Confirm, Dialog, EmptyState, Field, FormError, Panel, Progress, Time, useSubmit } from "../../../parts";
import type { TabProps } from "./props";
import { mediaPath } from "../player/sources";
import { secondsOf, timeText, type Playhead } from "../Playhead";

type Asset = Schemas["Asset"];
type Kind = "still" | "gif" | "clip";
const KINDS: Readonly<Record<Kind, string>> = { still: "Still", gif: "GIF", clip: "Clip" };
const TYPES: Readonly<Record<number, string>> = { 0: "File of the system", 1: "Still", 2: "Clip", 3: "GIF" };
const PICTURES = new Set([".jpg", ".jpeg", ".png", ".webp", ".gif"]);

/** Stills, GIFs and clips of the film: cut out where the player is. */
export default function Assets({ event, playhead }: TabProps) {
  const [kind, setKind] = useState<Kind | null>(null);
  const [marks, setMarks] = useState({ from: "", to: "" });
  const [deleted, setDeleted] = useState<Asset | null>(null);
  const assets = useQuery(`assets ${event.id}`, (signal) => dataOf(api.GET("/api/asset/", { params: { query: { eventId: event.id } }, signal })), {
    changes: { aggregates: ["asset"] },
  });
  const hasFilm = event.mp4State === 1;
  const mark = (name: "from" | "to"): void => setMarks({ ...marks, [name]: playhead.isLive.value ? "" : timeText(playhead.seconds.value ?? 0) });
  return (
    <>
      {may("operator") &&
        (hasFilm ? (
          <div class="cut" role="group" aria-label="Cut out of the film">
            <Button onClick={() => mark("from")} disabled={playhead.seconds.value === null}>
              In point {marks.from}
            </Button>
            <Button onClick={() => mark("to")} disabled={playhead.seconds.value === null}>
              Out point {marks.to}
            </Button>
            <span class="stretch" />
            {(["still", "gif", "clip"] as const).map((each) => (
              <Button key={each} onClick={() => setKind(each)}>
                {KINDS[each]}
              </Button>
            ))}
          </div>
        ) : (
          <p class="faint">Stills, GIFs and clips are cut out of the film of the Event. It has none yet.</p>
        ))}
      <Panel title="Assets">
        <Answered query={assets}>
          {(found) => {
            const own = found.filter((each) => each.type !== 0).reverse();
            const files = found.filter((each) => each.type === 0);
            return (
              <>
                {own.length === 0 && <EmptyState title="Nothing has been cut out yet" />}
                <ul class="cards">
                  {own.map((each) => (
                    <Card key={each.id} asset={each} isProtected={event.vodDrm} onDelete={() => setDeleted(each)} />
                  ))}
                </ul>
                {files.length > 0 && (
                  <details>
                    <summary>
                      {files.length} {files.length === 1 ? "file" : "files"} of the system
                    </summary>
                    <ul class="files">
                      {files.map((each) => (
                        <li key={each.id}>
                          <a href={mediaPath(each.path)} target="_blank" rel="noreferrer">
                            <bdi>{each.path.slice(each.contentId.length + 1)}</bdi>
                          </a>
                        </li>
                      ))}
                    </ul>
                  </details>
                )}
              </>
            );
          }}
        </Answered>
      </Panel>
      {kind && <CutDialog kind={kind} eventId={event.id} marks={marks} playhead={playhead} onClose={() => setKind(null)} done={assets.refresh} />}
      <Confirm
        title="Delete the asset"
        action="Delete"
        danger
        open={deleted !== null}
        onClose={() => setDeleted(null)}
        onConfirm={async () => {
          await answered(api.DELETE("/api/asset/{id}", { params: { path: { id: deleted!.id } }, headers: ifMatch(null) }));
          assets.refresh();
        }}
      >
        <p>
          <bdi>{deleted?.name}</bdi>. Its file is deleted within seconds; a job that is producing it is cancelled.
        </p>
      </Confirm>
    </>
  );
}

function Card({ asset, isProtected, onDelete }: { asset: Asset; isProtected: boolean; onDelete: () => void }) {
  const done = asset.state === 1;
  const address = mediaPath(asset.path);
  const shown = done && !isProtected && PICTURES.has(asset.extension.toLowerCase());
  return (
    <li class="card">
      <div class="card-picture">
        {shown ? <img src={address} alt="" loading="lazy" /> : <span class="faint">{asset.state === 0 ? "Not ready yet" : (TYPES[asset.type] ?? "File")}</span>}
      </div>
      <div class="card-text">
        <p class="card-title" title={asset.name.slice(0, 300)}>
          {done && !isProtected ? (
            <a href={address} target="_blank" rel="noreferrer">
              <bdi>{asset.name.slice(0, 300)}</bdi>
            </a>
          ) : (
            <bdi>{asset.name.slice(0, 300)}</bdi>
          )}
        </p>
        <p class="page-line">
          <Badge state={stateWord(ASSET_STATES, asset.state)} /> <span class="faint">{TYPES[asset.type]}</span> <Time at={asset.dateCreated} as="relative" />
        </p>
        {asset.state === 0 && <Progress label={`The job that makes ${asset.name.slice(0, 100)}`} />}
        <p class="page-line">
          {asset.jobId && <a href={jobPath(asset.jobId)}>Job {asset.jobId}</a>}
          {may("operator") && (
            <Button kind="quiet" onClick={onDelete}>
              Delete
            </Button>
          )}
        </p>
      </div>
    </li>
  );
}

interface CutDialogProps {
  kind: Kind;
  eventId: string;
  marks: { from: string; to: string };
  playhead: Playhead;
  onClose: () => void;
  done: () => void;
}

function CutDialog({ kind, eventId, marks, playhead, onClose, done }: CutDialogProps) {
  const here = playhead.isLive.peek() || playhead.seconds.peek() === null ? "00:00:00.000" : timeText(playhead.seconds.peek()!);
  const [name, setName] = useState(`${KINDS[kind]} at ${here.slice(0, 8)}`);
  const [start, setStart] = useState(marks.from || here);
  const [end, setEnd] = useState(marks.to || timeText((secondsOf(marks.from || here) ?? 0) + 5));
  const [width, setWidth] = useState("480");
  const isHere = useHere();
  const form = useSubmit(async () => {
    if (kind !== "still") checkOrder(secondsOf(start), secondsOf(end), "clip.end");
    const clip = { eventId, start, end };
    if (kind === "still") await answered(api.POST("/api/asset/image/", { body: { eventId, name, time: start } }));
    else if (kind === "gif") await answered(api.POST("/api/asset/gif/", { body: { name, clip, width: width.trim() === "" ? null : Number(width) } }));
    else await answered(api.POST("/api/asset/video/", { body: { name, clip, frameAccurate: true } }));
    toast(`${KINDS[kind]} is being made`, "ok", name.slice(0, 100));
    done();
    if (isHere()) onClose();
  });
  const actions = (
    <>
      <Button onClick={onClose}>Back</Button>
      <Button kind="primary" type="submit" form="cut" busy={form.busy}>
        Make it
      </Button>
    </>
  );
  const hint = "hh:mm:ss.fff from the start";
  return (
    <Dialog title={`New ${kind === "gif" ? "GIF" : kind}`} open onClose={onClose} actions={actions}>
      <form id="cut" class="stack" onSubmit={form.submit}>
        <Field label="Name" name="name" value={name} onInput={setName} failure={form.failure} autoFocus />
        {kind === "still" ? (
          <Field label="Time" name="time" value={start} onInput={setStart} failure={form.failure} hint={hint} />
        ) : (
          <div class="pair">
            <Field label="In" name="clip.start" value={start} onInput={setStart} failure={form.failure} hint={hint} />
            <Field label="Out" name="clip.end" value={end} onInput={setEnd} failure={form.failure} />
          </div>
        )}
        {kind === "gif" && <Field label="Width in pixels" name="width" type="number" value={width} onInput={setWidth} failure={form.failure} hint="Empty: as wide as the film" />}
        <FormError failure={form.failure} shown={["name", "time", "clip.start", "clip.end", "width"]} />
      </form>
    </Dialog>
  );
}
