import { day, duration } from "../../kernel/time";
import { EmptyState, Time } from "../../parts";
import { isEvent, textOf, type Log } from "./records";

const LONG = 2000;

/** The events of the job, without the lines of its steps, and the time between them. */
export function Timeline({ log }: { log: Log }) {
  const events = log.records.value.filter(isEvent);
  if (events.length === 0) return <EmptyState title="Nothing has happened yet" />;
  return (
    <ol class="timeline">
      {events.map((each, index) => {
        const before = events[index - 1];
        const gap = before ? Date.parse(each.created_at) - Date.parse(before.created_at) : 0;
        const isNewDay = !before || day(new Date(before.created_at)) !== day(new Date(each.created_at));
        return (
          <li key={each.id} class={`severity-${each.severity}`}>
            <Time at={each.created_at} as={isNewDay ? "full" : "absolute"} />
            <span class="faint">{gap >= LONG ? `after ${duration(gap)}` : ""}</span>
            <bdi>{textOf(each)}</bdi>
          </li>
        );
      })}
    </ol>
  );
}
