import type { TabProps } from "./props";
import { EncoderSessions } from "../EncoderSessions";
import { Points } from "../Points";
import { isOnAir } from "../../../kernel/states";
import { EmptyState, Panel } from "../../../parts";

/** The encoder sessions and publishing points of an Event. */
export default function Sessions({ event }: TabProps) {
  return (
    <div class="panels">
      <Panel title="Encoders">
        <EncoderSessions id={event.id} />
      </Panel>
      <Panel title="Publishing points">
        {isOnAir(event.state) ? <Points id={event.id} /> : <EmptyState title="Nothing is sent">Publishing points are watched while the Event is live.</EmptyState>}
      </Panel>
    </div>
  );
}
