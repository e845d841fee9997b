import { useState } from "preact/hooks";
import { api, dataOf, type MediaEvent, type Schemas } from "../../kernel/api";
import { useHere } from "../../kernel/here";
import { useQuery } from "../../kernel/query";
import { isOnAir } from "../../kernel/states";
import { toast } from "../../kernel/toasts";
import { Answered, Button, Check, Dialog, EmptyState, Field, FormError, useSubmit } from "../../parts";
import { EventPicker } from "../events/EventPicker";
import { publicationJson, targetOf } from "./targets";

type Kind = "film" | "live";

interface PublishDialogProps {
  /** The Event to publish; null if it is selected here. */
  event: MediaEvent | null;
  /** The preselected kind; by default the kind that the Event has. */
  kind?: Kind;
  onClose: () => void;
  onDone: (publication: { id: string; contentId: string; destinationId: string }, kind: Kind) => void;
}

const TEXT = "publications[0].publicationJson";
const SHOWN = ["publications[0].destinationId", "publications[0].audioInputId", ...["title", "description", "yt_privacyStatus", "yt_categoryId", "yt_madeForKids", "cstm_streamUrl", "cstm_streamName"].map((each) => `${TEXT}.${each}`)];

const usual = (event: MediaEvent): Kind => (isOnAir(event.state) || event.mp4State !== 1 ? "live" : "film");

/** Publishes the film or the live stream of an Event at a destination. */
export function PublishDialog({ event: given, kind: first, onClose, onDone }: PublishDialogProps) {
  const [event, setEvent] = useState(given);
  const [kind, setKind] = useState<Kind>(first ?? (given ? usual(given) : "film"));
  const [destination, setDestination] = useState("");
  const [typed, setTyped] = useState<Record<string, string>>(textsOf(given));
  const [callbacks, setCallbacks] = useState("");
  const [other, setOther] = useState("");
  const [sound, setSound] = useState("");
  const here = useHere();
  const [starts, setStarts] = useState(given !== null && isOnAir(given.state));
  const destinations = useQuery("destinations", (signal) => dataOf(api.GET("/api/media/destination/", { signal })), { changes: { aggregates: ["destination"] } });
  const choose = (next: MediaEvent | null): void => {
    setEvent(next);
    setTyped({ ...typed, ...textsOf(next) });
    setStarts(next !== null && isOnAir(next.state));
  };
  const target = targetOf((destinations.data.value ?? []).find((each) => each.id === destination)?.target ?? -1);
  const isOther = target.number === 1 || target.number === 3;
  const form = useSubmit(async () => {
    const one = { destinationId: destination, publicationJson: publicationJson(typed, target, callbacks, isOther ? other : "") };
    const eventId = event!.id;
    const [made] =
      kind === "film"
        ? await dataOf(api.POST("/api/media/vodpublication/", { body: { eventId, publications: [one] } }))
        : await dataOf(api.POST("/api/media/livepublication/", { body: { eventId, publications: [{ ...one, ...(sound.trim() ? { audioInputId: sound.trim() } : {}) }], startInstantly: starts } }));
    toast("The publication was created", "ok", event!.title.slice(0, 100));
    if (here()) onDone(made!, kind);
  });
  const set = (name: string, value: string): void => setTyped({ ...typed, [name]: value });
  const shared = { failure: form.failure };
  const actions = (
    <>
      <Button onClick={onClose}>Back</Button>
      <Button kind="primary" type="submit" form="publish" busy={form.busy} disabled={destination === "" || event === null}>
        Publish
      </Button>
    </>
  );
  return (
    <Dialog title="Publish" open onClose={onClose} actions={actions}>
      <Answered query={destinations}>
        {(found) =>
          found.length === 0 ? (
            <EmptyState title="There are no destinations">Add a destination first.</EmptyState>
          ) : (
            <form id="publish" class="stack" onSubmit={form.submit}>
              {given === null && <EventPicker chosen={event} onChoose={choose} />}
              <Field label="What" name="kind" value={kind} onInput={(next) => (setKind(next as Kind), setDestination(""))} options={kindsOf(event)} />
              <Field
                label="Destination"
                name="publications[0].destinationId"
                value={destination}
                onInput={setDestination}
                options={[["", "Choose one"], ...found.filter((each) => takes(each, kind)).map((each) => [each.id, wordOf(each)] as const)]}
                hint={`Destinations for ${kind === "film" ? "films" : "live streams"}.`}
                {...shared}
              />
              <Field label="Title" name={`${TEXT}.title`} value={typed["title"] ?? ""} onInput={(value) => set("title", value)} {...shared} />
              <Field label="Description" name={`${TEXT}.description`} lines={3} value={typed["description"] ?? ""} onInput={(value) => set("description", value)} {...shared} />
              {(target.publication ?? []).map((member) => (
                <Field
                  key={member.name}
                  label={member.label}
                  name={`${TEXT}.${member.name}`}
                  type={member.secret ? "password" : "text"}
                  autoComplete={member.secret ? "new-password" : "off"}
                  value={typed[member.name] ?? ""}
                  onInput={(value) => set(member.name, value)}
                  hint={member.hint}
                  {...(member.options ? { options: member.options } : {})}
                  {...shared}
                />
              ))}
              {isOther && <Field label="Other properties" name="other" lines={3} value={other} onInput={setOther} hint="A JSON object for the package of this target." />}
              {kind === "live" && <Field label="Sound" name="publications[0].audioInputId" value={sound} onInput={setSound} hint="The id of an audio input. Empty: the first input." {...shared} />}
              {kind === "live" && <Check label="Start at once" checked={starts} onChange={setStarts} hint="The Event must be live." />}
              <Field label="Callback addresses" name="callbackUrls" lines={2} value={callbacks} onInput={setCallbacks} hint="One per line. They are called for every change of the publication." />
              <FormError failure={form.failure} shown={SHOWN} />
            </form>
          )
        }
      </Answered>
    </Dialog>
  );
}

const textsOf = (event: MediaEvent | null): Record<string, string> => ({ title: event?.title ?? "", description: event?.description ?? "" });

function kindsOf(event: MediaEvent | null): readonly (readonly [Kind, string])[] {
  return [
    ["film", event === null || event.mp4State === 1 ? "The film" : "The film (it has none yet)"],
    ["live", "The live stream"],
  ];
}

const takes = (destination: Schemas["Destination"], kind: Kind): boolean => targetOf(destination.target).takes !== (kind === "film" ? "streams" : "films");

const wordOf = (destination: Schemas["Destination"]): string => `${destination.name.slice(0, 100)} · ${targetOf(destination.target).word}${destination.active ? "" : " (not active)"}`;
