import type { RoomsUnderTest } from './rooms.ts';

const allEvents = { limit: 1_000, direction: 'forward' } as const;

/** Returns the first thousand events of a room's timeline, oldest first, as they are on disk. */
export async function timelineOf({ engine }: RoomsUnderTest, roomId: string) {
  const head = await engine.heads.get(roomId);
  return head ? engine.events.timeline(head.roomNid, allEvents) : [];
}

/** Returns the texts of the messages in a room, oldest first, as they are on disk. */
export async function textsIn(fixture: RoomsUnderTest, roomId: string): Promise<unknown[]> {
  const events = await timelineOf(fixture, roomId);
  return events.map(({ event }) => event.content['body']).filter((body) => body !== undefined);
}
