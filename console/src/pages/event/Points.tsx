import { api, dataOf } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { Answered, Badge } from "../../parts";
import { pointWord, UNKNOWN } from "./signal";

/** Reads the reports of the servers of the publishing points. */
export function usePoints(id: string) {
  return useQuery(`points ${id}`, (signal) => dataOf(api.GET("/api/health/live/stream/event/{eventId}", { params: { path: { eventId: id } }, signal })), {
    every: 5000,
  });
}

/** The publishing points of an Event. */
export function Points({ id }: { id: string }) {
  return <PointList id={id} points={usePoints(id)} />;
}

export function PointList({ id, points }: { id: string; points: ReturnType<typeof usePoints> }) {
  const isKnown = points.current.value !== undefined;
  return (
    <Answered query={points}>
      {(found) => {
        const urls = found[id]?.urls ?? [];
        if (urls.length === 0) return <p class="faint">Its channel has no publishing points.</p>;
        return (
          <ul class="points">
            {urls.map((each) => (
              <li key={`${each.encoderIndex}/${each.publishingPointIndex}`}>
                <Badge state={isKnown ? pointWord(each) : UNKNOWN} title={each.state} />
                <span class="point-url">
                  {each.name && (
                    <>
                      <bdi>{each.name}</bdi>{" · "}
                    </>
                  )}
                  {each.publishingPointIndex === 0 ? "primary" : "secondary"} <code>{each.url}</code>
                </span>
              </li>
            ))}
          </ul>
        );
      }}
    </Answered>
  );
}
