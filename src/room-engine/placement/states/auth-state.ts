import {
  type AuthEventSubject,
  createEventIdOf,
  type RoomEvent,
  type StateLookup,
  selectAuthEventKeys,
  stateMapKey,
} from '../../../protocol/index.ts';
import type { StoredEvent } from '../../stored-event.ts';
import { isStorableText } from '../../timeline/event-to-send.ts';
import type { RoomHead } from '../../timeline/room-head.ts';
import type { PlacementDeps } from '../placement-deps.ts';

type Deps = Pick<PlacementDeps, 'events' | 'groups' | 'stateKeys'>;

/** Entries of a state, as far as one event depends on them: `stateMapKey` to the event there. */
export type Surrounding = ReadonlyMap<string, StoredEvent>;

/** As much of an event as the entries around it depend on. */
export type Subject = AuthEventSubject & Pick<RoomEvent, 'version'>;

/** The entries that decide about an event, and the one whose place it takes. */
function keysAround(event: Subject): string[] {
  const keys = new Set(selectAuthEventKeys(event, event.version));
  keys.add(stateMapKey('m.room.create', '')).add(stateMapKey('m.room.power_levels', ''));
  if (event.stateKey !== undefined) keys.add(stateMapKey(event.type, event.stateKey));
  return [...keys];
}

/** What is around an event in the state of a group. */
export async function surroundingIn(
  { events, groups, stateKeys }: Deps,
  event: Subject,
  group: number,
): Promise<Surrounding> {
  const nids = await stateKeys.findMany(keysAround(event));
  const state = (await groups.entries([group], [...nids.values()])).get(group);
  const found = await events.getMany(state?.values() ?? []);
  const surrounding = new Map<string, StoredEvent>();
  for (const [key, keyNid] of nids) {
    const stored = found.get(state?.get(keyNid) ?? 0);
    if (stored) surrounding.set(key, stored);
  }
  return surrounding;
}

/** What is around an event in the current state of a room. */
export async function surroundingNow(
  { events }: Deps,
  event: RoomEvent,
  head: RoomHead,
): Promise<Surrounding> {
  const nids = new Map<string, number>();
  for (const key of keysAround(event)) {
    const entry = head.state.get(key);
    if (entry) nids.set(key, entry.nid);
  }
  const found = await events.getMany(nids.values());
  const surrounding = new Map<string, StoredEvent>();
  for (const [key, nid] of nids) {
    const stored = found.get(nid);
    if (stored) surrounding.set(key, stored);
  }
  return surrounding;
}

/**
 * With the members that an event names itself, where a state does not have them because it is not complete.
 * Source: server-server API, "Partial state" of `send_join`: such events are authorized by what is known.
 */
export function withNamedMembers(surrounding: Surrounding, named: Iterable<StoredEvent>): Surrounding {
  const completed = new Map(surrounding);
  for (const stored of named) {
    const { type, stateKey } = stored.event;
    if (type !== 'm.room.member' || stateKey === undefined || stored.rejected) continue;
    const key = stateMapKey(type, stateKey);
    if (!completed.has(key)) completed.set(key, stored);
  }
  return completed;
}

/** What an event itself names as its state. */
export function surroundingNamed(auth: Iterable<StoredEvent>): Surrounding {
  const surrounding = new Map<string, StoredEvent>();
  for (const stored of auth) {
    const { type, stateKey } = stored.event;
    if (stateKey !== undefined) surrounding.set(stateMapKey(type, stateKey), stored);
  }
  return surrounding;
}

export const lookUp =
  (surrounding: Surrounding): StateLookup =>
  (type, stateKey) =>
    surrounding.get(stateMapKey(type, stateKey))?.event;

/** The ids of the events by which an event is authorized, the create event of room version 12 included. */
export function authIdsOf(event: RoomEvent): string[] {
  const { version, authEventIds, roomId, type } = event;
  const named = version.createInAuthEvents || type === 'm.room.create' ? [] : [createEventIdOf(roomId)];
  return [...new Set([...authEventIds, ...named])];
}

/** Whether the database can hold the entry of a state event. */
export function hasStorableKey({ type, stateKey }: RoomEvent): boolean {
  return stateKey === undefined || (isStorableText(type) && isStorableText(stateKey));
}
