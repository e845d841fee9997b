import type { TabProps } from "../EventPage";
import { Points } from "../Points";
import { isOnAir } from "../../../kernel/states";
import { EmptyState, Panel } from "../../../parts";

/** What runs for an Event while it is on the air. */
export default function Sessions({ event }: TabProps) {
  return (
    <Panel title="Publishing points">
      {isOnAir(event.state) ? <Points id={event.id} /> : <EmptyState title="Nothing runs">Encoders run, and publishing points are watched, while the Event is live.</EmptyState>}
    </Panel>
  );
}
