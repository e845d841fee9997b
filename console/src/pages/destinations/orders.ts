/** Start and stop of a live publication, for every page that offers them. */

import { api, dataOf, type Schemas } from "../../kernel/api";

export type Order = "start" | "stop";
type Stream = Pick<Schemas["LivePublication"], "id" | "destinationId" | "contentId" | "publicationState">;

export const ORDERS: Readonly<Record<Order, { word: string; done: string; about: string }>> = {
  start: { word: "Start", done: "Started", about: "Its destination receives the stream of the Event." },
  stop: { word: "Stop", done: "Stopped", about: "Its destination receives nothing more. It cannot be started again before it is recreated." },
};

/** The actions that the state allows. */
export const ordersOf = (stream: Stream): readonly Order[] => (stream.publicationState === 1 ? ["start"] : stream.publicationState === 2 ? ["stop"] : []);

/** Starts or stops a live publication. Throws the reason of a refusal, which only the calls for several publications return. */
export async function send(order: Order, { id, destinationId, contentId }: Stream): Promise<void> {
  const body = { eventId: contentId, publications: [{ publicationId: id, destinationId }] };
  const [said] = await dataOf(order === "start" ? api.PUT("/api/media/livepublication/start/all/", { body }) : api.PUT("/api/media/livepublication/stop/all/", { body }));
  check(said);
}

/** Throws the fault in a 200 answer of a publication. */
export function check(said: { isSuccessful: boolean; description: string } | undefined): void {
  if (!said?.isSuccessful) throw new Error(said?.description ?? "The server does not report the result.");
}
