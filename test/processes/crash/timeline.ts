import type { ApiClient, ClientEvent, SyncAnswer } from './api-client.ts';

/** The parts of a message event that must not change. */
export interface Message {
  readonly eventId: string;
  readonly sender: string;
  readonly text: unknown;
}

function messagesOf(events: readonly ClientEvent[]): Message[] {
  return events
    .filter(({ type }) => type === 'm.room.message')
    .map(({ event_id, sender, content }) => ({ eventId: event_id, sender, text: content['body'] }));
}

/** Returns all messages of a room, oldest first, by paging forwards through `/messages`. */
export async function wholeTimeline(client: ApiClient, roomId: string): Promise<Message[]> {
  const messages: Message[] = [];
  let from: string | undefined;
  do {
    const { chunk, end } = await client.messages(roomId, 'f', from);
    messages.push(...messagesOf(chunk));
    from = chunk.length === 0 ? undefined : end;
  } while (from !== undefined);
  return messages;
}

/**
 * Returns the new messages of a room in a sync response. Fills the gap of a limited timeline by paging
 * backwards through `/messages`, as clients do.
 * @param isKnown whether the client has the event already: paging ends there
 */
export async function newMessages(
  client: ApiClient,
  roomId: string,
  answer: SyncAnswer,
  isKnown: (eventId: string) => boolean,
): Promise<Message[]> {
  const timeline = answer.rooms?.join?.[roomId]?.timeline;
  if (!timeline) return [];
  const messages = messagesOf(timeline.events);
  let from = timeline.limited ? timeline.prev_batch : undefined;
  while (from !== undefined) {
    const { chunk, end } = await client.messages(roomId, 'b', from);
    const indexOfKnown = chunk.findIndex(({ event_id }) => isKnown(event_id));
    messages.unshift(...messagesOf(indexOfKnown < 0 ? chunk : chunk.slice(0, indexOfKnown)).reverse());
    from = indexOfKnown < 0 && chunk.length > 0 ? end : undefined;
  }
  return messages;
}
