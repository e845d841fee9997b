import { useState } from "preact/hooks";
import { answered, api, ifMatch, type Schemas } from "../../kernel/api";
import { may } from "../../kernel/session";
import { canBeForced, EVENT_STATES, isOnAir, nextStates, type NextState, stateWord } from "../../kernel/states";
import { Button, Field } from "../../parts";
import { GuardedConfirm, type Seen } from "./GuardedConfirm";
import { Preflight } from "./Preflight";
import "./event.css";

type State = Schemas["EventState"];
const ALL = Object.entries(EVENT_STATES).map(([number, { word }]) => [number, word] as const);

interface StateActionsProps extends Seen {
  /** Also offers rarely needed actions: any other state. */
  all?: boolean;
  /** Called after a change. */
  changed: () => void;
}

/** Buttons for the usual next states of an Event. Each asks for confirmation, and reports a concurrent change. */
export function StateActions({ event, etag, all = false, changed }: StateActionsProps) {
  const [asked, setAsked] = useState<{ next: NextState; seen: Seen } | null>(null);
  const [forced, setForced] = useState<Seen | null>(null);
  const [other, setOther] = useState<Seen | null>(null);
  const [state, setState] = useState("0");
  if (!may("operator")) return <p class="faint">To change its state you need the role operator.</p>;
  const seen = { event, etag };
  const put = (to: number) => (shown: Seen) => sendState(shown, to).then(changed);
  return (
    <div class="state-actions">
      {nextStates(event.state).map((next) => (
        <Button key={next.state} kind={next.kind} onClick={() => setAsked({ next, seen })}>
          {next.action}
        </Button>
      ))}
      {canBeForced(event.state) && (
        <Button kind="quiet" onClick={() => setForced(seen)}>
          Force stop
        </Button>
      )}
      {all && (
        <Button kind="quiet" onClick={() => (setState(String(event.state)), setOther(seen))}>
          Other state
        </Button>
      )}
      <GuardedConfirm
        title={asked?.next.action ?? ""}
        action={asked?.next.action ?? ""}
        danger={asked?.next.kind === "danger"}
        seen={asked?.seen ?? null}
        onClose={() => setAsked(null)}
        send={put(asked?.next.state ?? 0)}
        done={`Now: ${stateWord(EVENT_STATES, asked?.next.state ?? 0).word}`}
      >
        {asked && startsEncoders(asked.seen.event.state, asked.next.state) && <Preflight event={asked.seen.event} />}
        {(asked?.seen.event.channelId !== null || !startsEncoders(asked.seen.event.state, asked.next.state)) && <p>{asked?.next.about}</p>}
      </GuardedConfirm>
      <GuardedConfirm title="Force stop" action="Force stop" danger seen={forced} onClose={() => setForced(null)} send={(shown) => sendForcedStop(shown).then(changed)} done="Stopped by force">
        <p>It is stopped whatever its state, and the order is recorded in its history even if it is already stopped.</p>
      </GuardedConfirm>
      <GuardedConfirm
        title="Set another state"
        action="Set the state"
        seen={other}
        onClose={() => setOther(null)}
        send={put(Number(state))}
        done={`Now: ${stateWord(EVENT_STATES, state).word}`}
      >
        {other && startsEncoders(other.event.state, Number(state)) && <Preflight event={other.event} />}
        <p>Any state may follow any other. Use this for states that jobs and the schedule do not set automatically.</p>
        <Field label="State" name="state" value={state} onInput={setState} options={ALL} />
      </GuardedConfirm>
    </div>
  );
}

const startsEncoders = (from: number, to: number): boolean => isOnAir(to) && !isOnAir(from);

async function sendState({ event, etag }: Seen, state: number): Promise<void> {
  const params = { path: { id: event.id } };
  await answered(api.PUT("/api/event/state/{id}", { params, body: { state: state as State }, headers: ifMatch(etag) }));
}

async function sendForcedStop({ event, etag }: Seen): Promise<void> {
  await answered(api.PUT("/api/event/forcestop/{id}", { params: { path: { id: event.id } }, headers: ifMatch(etag) }));
}
