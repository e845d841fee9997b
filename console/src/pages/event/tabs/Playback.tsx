import type { TabProps } from "./props";
import { isOnAir, isVod } from "../../../kernel/states";

/** The text below the player. */
export default function Playback({ event }: TabProps) {
  const isPublic = [2, 11, 14, 18, 20].includes(event.state);
  if (!isOnAir(event.state) && !isVod(event.state)) return null;
  return (
    <p class="faint">
      {isPublic ? "It is public: anyone who knows its address may watch it." : "It is not public: you watch it with the permissions of your session."}
      {event.vodDrm && isVod(event.state) && " Its film is protected: it plays where the browser has one of the DRM systems for which the Event has a licence server."}
    </p>
  );
}
