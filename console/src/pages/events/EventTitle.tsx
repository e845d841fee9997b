import type { MediaEvent } from "../../kernel/api";
import { eventPath } from "../../kernel/router";

/** The title of an Event as a link. Its writing direction does not affect the text next to it. */
export function EventTitle({ event }: { event: Pick<MediaEvent, "id" | "title"> }) {
  return (
    <a class="row-link" href={eventPath(event.id)} title={event.title.slice(0, 300)} tabIndex={-1}>
      <bdi>{event.title.slice(0, 300) || "Without a title"}</bdi>
    </a>
  );
}
