import type { Rooms } from '../rooms/index.ts';

/** The parts of the slice `rooms` that `closeRoom` needs. */
export type ClosingDeps = Pick<Rooms, 'engine' | 'memberships'>;

/** Makes the creator of a notice room leave and forget the room, because no further notices are sent to it. */
export async function closeRoom({ engine, memberships }: ClosingDeps, roomId: string): Promise<void> {
  const head = await engine.heads.get(roomId);
  const creation = head?.entry('m.room.create', '');
  // The creator may differ from the notices user of the configuration, because operators may change the
  // option.
  const creator = creation && (await engine.events.get(creation.nid))?.event.sender;
  if (!creator || head?.membership(creator) !== 'join') return;
  await memberships.leave(creator, roomId);
  await memberships.forget(creator, roomId);
}
