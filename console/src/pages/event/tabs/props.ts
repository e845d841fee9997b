import type { MediaEvent } from "../../../kernel/api";
import type { Playhead } from "../Playhead";

/** The properties of a tab. */
export interface TabProps {
  event: MediaEvent;
  etag: string | null;
  /** The playhead of the player above the tab. */
  playhead: Playhead;
  /** To be called after a change of the Event. */
  changed: () => void;
}
