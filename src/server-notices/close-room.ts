import type { Rooms } from '../rooms/index.ts';

/** The parts of rooms that closing one needs. */
export type ClosingDeps = Pick<Rooms, 'engine' | 'memberships'>;

/** Lets the creator of a notice room leave and forget it, since its user has left. */
export async function closeRoom({ engine, memberships }: ClosingDeps, roomId: string): Promise<void> {
  const head = await engine.heads.get(roomId);
  const creation = head?.entry('m.room.create', '');
  // Not always the configured notices user: operators may have changed it.
  const maker = creation && (await engine.events.get(creation.nid))?.event.sender;
  if (!maker || head?.membership(maker) !== 'join') return;
  await memberships.leave(maker, roomId);
  await memberships.forget(maker, roomId);
}
