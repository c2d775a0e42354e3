import { ReferenceRoom } from './reference-room.ts';
import type { RoomsUnderTest } from './rooms.ts';

/** A room of another server whose members are not known after the join (`omit_members`). */
export interface RoomWithoutMembers {
  readonly room: ReferenceRoom;
  /** Completes the state: the room then has seven members besides the user, among them `ann` and `ben`. */
  readonly complete: () => Promise<void>;
}

/** Joins a local user to a room whose other members stay unknown until `complete` is called. */
export async function joinWithoutMembers(
  { engine: { placement } }: RoomsUnderTest,
  userId: string,
): Promise<RoomWithoutMembers> {
  const room = new ReferenceRoom();
  for (let index = 0; index < 5; index++) room.member(`@user${index}:s.example`, 'join');
  const { event, state, authChain } = room.join(userId);
  const essential = state.filter(({ event }) => event.type !== 'm.room.member');
  const authEventIds = [event, ...essential].flatMap((verified) => verified.event.authEventIds);
  const chain = room.stateAndAuthChain(new Map(authEventIds.map((id) => [id, id])));
  await placement.enter(room.room, {
    event,
    state: essential,
    authChain: [...chain.state, ...chain.authChain],
    partial: { servers: ['a.example'], from: 'a.example' },
  });
  await placement.addOutliers(room.room, [...authChain, ...state]);
  const stateBefore = state.map((verified) => verified.event.eventId);
  return { room, complete: () => placement.completeState(room.roomId, { stateBefore }) };
}
