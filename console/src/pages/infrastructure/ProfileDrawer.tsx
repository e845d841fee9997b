import { useState } from "preact/hooks";
import { answered, api, dataOf, found, ifMatch, type Answer } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { useHere } from "../../kernel/here";
import { toast } from "../../kernel/toasts";
import { Answered, Button, Confirm, Drawer, Field, FormError, useSubmit } from "../../parts";
import { Comparison } from "./Comparison";
import { ProfileFields } from "./ProfileFields";
import { EMPTY, draftOf, written, type Profile, type ProfileDraft } from "./profile";

interface ProfileDrawerProps {
  /** The record; null for a new one. */
  id: string | null;
  editable: boolean;
  onClose: () => void;
  onDone: () => void;
}

const NEW: Answer<Profile> = { data: { id: "", name: "", referenceId: "", configurationJson: EMPTY }, etag: null, response: new Response() };

/** An infrastructure profile: a form, or its configuration as JSON. */
export function ProfileDrawer(props: ProfileDrawerProps) {
  const [opening] = useState(() => crypto.randomUUID()); // a form begins with the current record, never with an earlier answer
  const path = { id: props.id ?? "" };
  const profile = useQuery(`profile ${opening}`, (signal) => (props.id === null ? Promise.resolve(NEW) : found(api.GET("/api/infrastructureprofile/{id}", { params: { path }, signal }))));
  return (
    <Drawer title={props.id === null ? "New infrastructure profile" : "Infrastructure profile"} open onClose={props.onClose}>
      <Answered query={profile}>{(seen) => <Form seen={seen} {...props} />}</Answered>
    </Drawer>
  );
}

function Form({ seen, id, editable, onDone }: ProfileDrawerProps & { seen: Answer<Profile> }) {
  const here = useHere();
  const [name, setName] = useState(seen.data.name);
  const [referenceId, setReferenceId] = useState(seen.data.referenceId);
  const [draft, setDraft] = useState<ProfileDraft | null>(() => draftOf(seen.data.configurationJson));
  const [base, setBase] = useState(seen.data.configurationJson);
  /** The JSON text; null while the form is shown. */
  const [json, setJson] = useState<string | null>(draft === null ? base : null);
  const [asks, setAsks] = useState(false);
  const configuration = (): string => json ?? (draft === null ? base : written(base, draft));
  const form = useSubmit(async () => {
    const body = { ...(id === null ? {} : { id }), name, referenceId, configurationJson: configuration() };
    await dataOf(api.POST("/api/infrastructureprofile/", { body, headers: ifMatch(seen.etag) }));
    toast(id === null ? "Profile added" : "Profile saved", "ok", name.slice(0, 100));
    if (here()) onDone();
  });
  const asForm = (): void => {
    const next = draftOf(json!);
    if (next === null) return;
    setBase(json!);
    setDraft(next);
    setJson(null);
  };
  const shared = { failure: form.failure, disabled: !editable };
  return (
    <form class="infrastructure" onSubmit={form.submit}>
      <Field label="Name" name="name" value={name} onInput={setName} required autoComplete="off" {...shared} />
      <Field label="Reference" name="referenceId" value={referenceId} onInput={setReferenceId} autoComplete="off" hint="A name in other systems, unique among profiles. Empty: no reference." {...shared} />
      {json === null && draft ? (
        <>
          <ProfileFields draft={draft} set={setDraft} editable={editable} failure={form.failure} />
          <p>
            <Button kind="quiet" onClick={() => setJson(JSON.stringify(JSON.parse(configuration()), null, 2))}>
              All of it as JSON
            </Button>
          </p>
        </>
      ) : (
        <>
          <Field label="Configuration" name="configurationJson" lines={18} value={json ?? base} onInput={setJson} hint="A JSON object with request and workflow. It is not secret: every user with read access sees it." {...shared} />
          <p>
            <Button kind="quiet" disabled={draftOf(json ?? base) === null} onClick={asForm}>
              As a form
            </Button>
          </p>
        </>
      )}
      <FormError failure={form.failure} shown={SHOWN} />
      {editable ? (
        <div class="page-actions">
          <Button type="submit" kind="primary" busy={form.busy}>
            {id === null ? "Add" : "Save"}
          </Button>
          {id !== null && <Button onClick={() => setAsks(true)}>Delete</Button>}
        </div>
      ) : (
        <p class="hint">To change profiles you need the role operator or admin.</p>
      )}
      {id !== null && <Comparison profile={id} />}
      <Confirm
        title="Delete this profile?"
        action="Delete"
        danger
        open={asks}
        onClose={() => setAsks(false)}
        onConfirm={async () => {
          await answered(api.DELETE("/api/infrastructureprofile/{id}", { params: { path: { id: id! } }, headers: ifMatch(seen.etag) }));
          toast("Profile deleted");
          if (here()) onDone();
        }}
      >
        <p>
          <bdi>{seen.data.name.slice(0, 200)}</bdi>. Infrastructure that was provisioned with it stays. A profile that an Event uses cannot be deleted.
        </p>
      </Confirm>
    </form>
  );
}

/** Fields that show their own problems; all other problems are shown above the buttons. */
const SHOWN = ["name", "referenceId", "configurationJson", "configurationJson.request.infrastructureKey", "configurationJson.request.settings.template"];
