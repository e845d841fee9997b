import { useEffect, useId, useState } from "preact/hooks";
import { api, dataOf, type MediaEvent } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { EVENT_STATES, stateWord } from "../../kernel/states";
import { Answered, Badge, Button, Time } from "../../parts";
import "./picker.css";

const MOST = 8;
const QUIET = 250;

interface EventPickerProps {
  chosen: MediaEvent | null;
  onChoose: (event: MediaEvent | null) => void;
}

/** A form field that selects an Event by a part of its title, reference or id. */
export function EventPicker({ chosen, onChoose }: EventPickerProps) {
  const [typed, setTyped] = useState("");
  const [asked, setAsked] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAsked(typed.trim()), QUIET);
    return () => clearTimeout(timer);
  }, [typed]);
  const id = useId();
  const query = { search: asked, pageSize: MOST, order: "DESC" as const };
  const events = useQuery(chosen ? null : `pick ${asked}`, async (signal) => (await dataOf(api.GET("/api/event/", { params: { query }, signal }))).results);
  if (chosen) {
    return (
      <div class="field">
        <span class="field-name">Event</span>
        <div class="picked">
          <Line event={chosen} />
          <Button kind="quiet" onClick={() => onChoose(null)}>
            Choose another
          </Button>
        </div>
      </div>
    );
  }
  return (
    <div class="field">
      <label for={id}>Event</label>
      <input
        id={id}
        type="search"
        autoFocus
        autoComplete="off"
        spellcheck={false}
        maxLength={200}
        placeholder="A part of its title or reference"
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && event.preventDefault()}
      />
      <Answered query={events}>
        {(found) =>
          found.length === 0 ? (
            <p class="hint" role="status">
              No Event has this in its title, its reference or its description.
            </p>
          ) : (
            <ul class="picks" aria-label="Events that match">
              {found.map((event) => (
                <li key={event.id}>
                  <button type="button" onClick={() => onChoose(event)}>
                    <Line event={event} />
                  </button>
                </li>
              ))}
            </ul>
          )
        }
      </Answered>
    </div>
  );
}

function Line({ event }: { event: MediaEvent }) {
  return (
    <span class="pick" title={event.title.slice(0, 300)}>
      <bdi>{event.title.slice(0, 300) || "Without a title"}</bdi>
      <Badge state={stateWord(EVENT_STATES, event.state)} />
      <span class="faint">
        <Time at={event.scheduledStart} />
      </span>
    </span>
  );
}
