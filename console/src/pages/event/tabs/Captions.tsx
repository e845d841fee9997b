import { useId, useState } from "preact/hooks";
import { answered, api, dataOf, ifMatch, type Schemas } from "../../../kernel/api";
import { Failure } from "../../../kernel/failure";
import { useHere } from "../../../kernel/here";
import { useQuery } from "../../../kernel/query";
import { jobPath } from "../../../kernel/router";
import { may } from "../../../kernel/session";
import { ASSET_STATES, stateWord } from "../../../kernel/states";
import { toast } from "../../../kernel/toasts";
import { Answered, Badge, Button, Confirm, DataTable, Dialog, EmptyState, Field, FormError, Panel, useSubmit, type Column } from "../../../parts";
import { mediaPath } from "../player/sources";
import { CAPTION_KINDS, captionsQuery, languageWord } from "../captions";
import type { TabProps } from "./props";

type Caption = Schemas["Asset"];
const FILES = ".vtt,.srt,.ttml,.dfxp,.xml,.scc,text/vtt";
const LARGEST = 5 * 1024 * 1024;

/** Captions and subtitles of the film. The player above shows them. */
export default function Captions({ event }: TabProps) {
  const [edited, setEdited] = useState<Caption | "new" | null>(null);
  const [deleted, setDeleted] = useState<Caption | null>(null);
  const captions = useQuery(`captions ${event.id}`, (signal) => dataOf(captionsQuery(event.id, signal)), { changes: { aggregates: ["asset"] } });
  const hasFilm = event.mp4State === 1;
  const columns: Column<Caption>[] = [
    { key: "name", title: "Language and name", cell: (caption) => <Name caption={caption} isProtected={event.vodDrm} />, value: ({ language, name }) => `${languageWord(language)} ${name}` },
    { key: "kind", title: "Kind", width: "9rem", secondary: true, cell: ({ kind }) => CAPTION_KINDS[kind ?? ""]?.word, value: ({ kind }) => kind },
    {
      key: "state",
      title: "State",
      width: "12rem",
      cell: ({ state, jobId }) => (
        <>
          <Badge state={stateWord(ASSET_STATES, state)} /> {state !== 1 && jobId && <a href={jobPath(jobId)}>Job {jobId}</a>}
        </>
      ),
      value: ({ state }) => state,
    },
  ];
  if (may("operator")) {
    columns.push({
      key: "actions",
      title: "Change",
      width: "14rem",
      cell: (caption) => (
        <span class="row-actions">
          {caption.jobId && (
            <Button kind="quiet" label={`Replace ${said(caption)}`} onClick={() => setEdited(caption)}>
              Replace
            </Button>
          )}
          <Button kind="quiet" label={`Delete ${said(caption)}`} onClick={() => setDeleted(caption)}>
            Delete
          </Button>
        </span>
      ),
    });
  }
  return (
    <Panel
      title="Captions"
      actions={
        may("operator") &&
        hasFilm && (
          <Button kind="primary" onClick={() => setEdited("new")}>
            Add captions
          </Button>
        )
      }
    >
      {!hasFilm && <p class="faint">Captions are added to the film of the Event. It has none yet.</p>}
      <Answered query={captions}>
        {(list) => (
          <DataTable
            caption="Captions"
            columns={columns}
            rows={list}
            rowKey={({ id }) => id}
            stale={captions.stale.value}
            empty={<EmptyState title="No captions">Captions and subtitles are texts that players show with the film. Captions of its source are detected automatically.</EmptyState>}
          />
        )}
      </Answered>
      {edited && <CaptionDialog key={edited === "new" ? "new" : edited.id} eventId={event.id} before={edited === "new" ? null : edited} onClose={() => setEdited(null)} done={captions.refresh} />}
      <Confirm
        title="Delete the captions"
        action="Delete"
        danger
        open={deleted !== null}
        onClose={() => setDeleted(null)}
        onConfirm={async () => {
          await answered(api.DELETE("/api/asset/{id}", { params: { path: { id: deleted!.id } }, headers: ifMatch(null) }));
          captions.refresh();
        }}
      >
        <p>
          <bdi>{deleted?.name}</bdi>, {languageWord(deleted?.language)}. Players do not list them any more; their file is deleted within seconds.
        </p>
      </Confirm>
    </Panel>
  );
}

function said({ name, language }: Caption): string {
  return `${name.slice(0, 100)}, ${languageWord(language)}`;
}

function Name({ caption, isProtected }: { caption: Caption; isProtected: boolean }) {
  const name = <bdi>{caption.name.slice(0, 300)}</bdi>;
  return (
    <span title={caption.language ?? ""}>
      {languageWord(caption.language)}:{" "}
      {caption.state !== 1 || isProtected ? (
        name
      ) : (
        <a href={mediaPath(caption.path)} target="_blank" rel="noreferrer" title="The text as a WebVTT file">
          {name}
        </a>
      )}
    </span>
  );
}

interface CaptionDialogProps {
  eventId: string;
  /** The captions to replace; null for new captions. */
  before: Caption | null;
  onClose: () => void;
  done: () => void;
}

function CaptionDialog({ eventId, before, onClose, done }: CaptionDialogProps) {
  const [language, setLanguage] = useState(before?.language ?? "");
  const [kind, setKind] = useState<string>(before?.kind ?? "subtitles");
  const [name, setName] = useState(before?.name ?? "");
  const [file, setFile] = useState<File | null>(null);
  const isHere = useHere();
  const form = useSubmit(async () => {
    check({ language, name, file });
    const body = new FormData();
    for (const [field, value] of Object.entries({ eventId, language: language.trim(), kind, name: name.trim() })) body.append(field, value);
    body.append("file", file!);
    await answered(api.POST("/api/asset/caption/", { body: body as never, bodySerializer: (each) => each as never }));
    toast(before ? "The captions are being replaced" : "The captions are being read", "ok", name.slice(0, 100));
    done();
    if (isHere()) onClose();
  });
  const actions = (
    <>
      <Button onClick={onClose}>Back</Button>
      <Button kind="primary" type="submit" form="caption" busy={form.busy}>
        {before ? "Replace" : "Add"}
      </Button>
    </>
  );
  const fixed = before !== null;
  return (
    <Dialog title={before ? "Replace the captions" : "Add captions"} open onClose={onClose} actions={actions}>
      <form id="caption" class="stack" onSubmit={form.submit} noValidate>
        {before && <p>The previous text stays until the new one is read. Language, kind and name are unchanged.</p>}
        <FileField label="File" name="file" accept={FILES} onFile={setFile} failure={form.failure} hint="WebVTT, SRT, TTML (IMSC, EBU-TT-D) or SCC, up to 5 MiB" />
        <div class="pair">
          <Field label="Language" name="language" value={language} onInput={setLanguage} failure={form.failure} disabled={fixed} hint={languageHint(language)} autoComplete="off" />
          <Field
            label="Kind"
            name="kind"
            value={kind}
            onInput={setKind}
            failure={form.failure}
            disabled={fixed}
            options={Object.entries(CAPTION_KINDS).map(([value, { word }]) => [value, word] as const)}
            hint={CAPTION_KINDS[kind]?.hint}
          />
        </div>
        <Field label="Name" name="name" value={name} onInput={setName} failure={form.failure} disabled={fixed} hint="The name in players, such as Deutsch" />
        <FormError failure={form.failure} shown={["language", "kind", "name", "file"]} />
      </form>
    </Dialog>
  );
}

/** Throws a `Failure` for input that the API would refuse, before a file is sent. */
function check({ language, name, file }: { language: string; name: string; file: File | null }): void {
  const fields = [
    ...(file === null ? [{ field: "file", message: "Choose a file." }] : []),
    ...(file !== null && file.size > LARGEST ? [{ field: "file", message: "It has more than 5 MiB." }] : []),
    ...(language.trim() === "" ? [{ field: "language", message: "Enter the language, such as de or en-GB." }] : []),
    ...(name.trim() === "" ? [{ field: "name", message: "Enter a name." }] : []),
  ];
  if (fields.length > 0) throw new Failure(400, "They cannot be sent like this.", fields);
}

function languageHint(language: string): string {
  const word = languageWord(language.trim());
  return language.trim() === "" || word === language.trim() ? "A tag such as de, en-GB or zh-Hant" : word;
}

interface FileFieldProps {
  label: string;
  name: string;
  accept: string;
  onFile: (file: File | null) => void;
  failure: Failure | null;
  hint: string;
}

function FileField({ label, name, accept, onFile, failure, hint }: FileFieldProps) {
  const id = useId();
  const wrong = failure?.of(name);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="file"
        name={name}
        accept={accept}
        aria-invalid={wrong ? "true" : undefined}
        aria-describedby={[`${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ")}
        onChange={(event) => onFile(event.currentTarget.files?.[0] ?? null)}
      />
      <p class="hint" id={`${id}-hint`}>
        {hint}
      </p>
      {wrong && (
        <p class="wrong" id={`${id}-wrong`}>
          {wrong}
        </p>
      )}
    </div>
  );
}
