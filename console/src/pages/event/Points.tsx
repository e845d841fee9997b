import { api, dataOf } from "../../kernel/api";
import { useQuery } from "../../kernel/query";
import { Answered, Badge } from "../../parts";
import { pointWord } from "./signal";

/** Its publishing points, as their servers told in the last seconds. */
export function Points({ id }: { id: string }) {
  const points = useQuery(`points ${id}`, (signal) => dataOf(api.GET("/api/health/live/stream/event/{eventId}", { params: { path: { eventId: id } }, signal })), {
    every: 5000,
  });
  return (
    <Answered query={points}>
      {(found) => {
        const urls = found[id]?.urls ?? [];
        if (urls.length === 0) return <p class="faint">Its channel has none.</p>;
        return (
          <ul class="points">
            {urls.map((each) => (
              <li key={`${each.encoderIndex}/${each.publishingPointIndex}`}>
                <Badge state={pointWord(each)} title={each.state} />
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
