import { type JsonObject, stateMapKey, strippedState } from '../../protocol/index.ts';
import type { PrejoinStateKeys, RoomReader, StoredEvent } from '../../room-engine/index.ts';

export interface PrejoinStateDeps {
  readonly engine: Pick<RoomReader, 'events' | 'heads' | 'userRooms' | 'strippedState'>;
  /** The state that users see before they join (`room_prejoin_state`). */
  readonly prejoinStateKeys: PrejoinStateKeys;
}

/** Names of the member of `unsigned` with the stripped state, by membership. The reference server has the same names. */
const members: Readonly<Record<string, string>> = {
  invite: 'invite_room_state',
  knock: 'knock_room_state',
};

/** Returns the field of `unsigned` that describes the room of an invite or a knock; `undefined` for other events. */
export function prejoinMemberOf({ event: { type, stateKey, content } }: StoredEvent): string | undefined {
  if (type !== 'm.room.member' || stateKey === undefined) return undefined;
  const { membership } = content;
  return typeof membership === 'string' && Object.hasOwn(members, membership)
    ? members[membership]
    : undefined;
}

/**
 * Returns the stripped state that the user of an invite or a knock sees before joining: the state that the remote
 * server has sent, or else a part of the room's current state. Empty when the user's membership has changed after the
 * event.
 */
export async function prejoinStateOf(
  { engine, prejoinStateKeys }: PrejoinStateDeps,
  { nid, event: { roomId, sender, stateKey = '' } }: StoredEvent,
): Promise<readonly JsonObject[]> {
  const room = (await engine.userRooms.of(stateKey)).get(roomId);
  if (room?.eventNid !== nid) return [];
  const received = await engine.strippedState(stateKey, room);
  if (received !== undefined) return received as unknown as readonly JsonObject[];
  const head = await engine.heads.get(roomId);
  if (!head) return [];
  const keys = new Set([...prejoinStateKeys.select(head.state), stateMapKey('m.room.member', sender)]);
  const nids = [...keys].flatMap((key) => head.state.get(key)?.nid ?? []);
  const events = await engine.events.getMany(nids);
  return nids.flatMap((nid) => {
    const stored = events.get(nid);
    return stored ? [strippedState(stored.event) as unknown as JsonObject] : [];
  });
}
