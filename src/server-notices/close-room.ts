import type { Rooms } from '../rooms/index.ts';

/** What of rooms it takes. */
export type ClosingDeps = Pick<Rooms, 'engine' | 'memberships'>;

/** Who has made a room for notices leaves it and forgets it: there is nobody to talk to any more. */
export async function closeRoom({ engine, memberships }: ClosingDeps, roomId: string): Promise<void> {
  const head = await engine.heads.get(roomId);
  const creation = head?.entry('m.room.create', '');
  // Not always the present notices user: operators may name another.
  const maker = creation && (await engine.events.get(creation.nid))?.event.sender;
  if (!maker || head?.membership(maker) !== 'join') return;
  await memberships.leave(maker, roomId);
  await memberships.forget(maker, roomId);
}
