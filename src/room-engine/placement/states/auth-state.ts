import {
  type AuthEventSubject,
  createEventIdOf,
  type RoomEvent,
  type StateLookup,
  selectAuthEventKeys,
  stateMapKey,
} from '../../../protocol/index.ts';
import { isStorableText } from '../../event-to-send.ts';
import type { StoredEvent } from '../../stored-event.ts';
import type { RoomHead } from '../../timeline/room-head.ts';
import type { PlacementDeps } from '../placement-deps.ts';

type Deps = Pick<PlacementDeps, 'events' | 'states'>;

/** The entries of a state that the authorization of one event depends on: `stateMapKey` to event. */
export type AuthState = ReadonlyMap<string, StoredEvent>;

/** The fields of an event that determine its auth state. */
export type AuthSubject = AuthEventSubject & Pick<RoomEvent, 'version'>;

/**
 * Returns the keys of the state entries that authorize an event, of the entry that it replaces, and always of the
 * create event and the power levels.
 */
function authStateKeys(event: AuthSubject): string[] {
  const keys = new Set(selectAuthEventKeys(event, event.version));
  keys.add(stateMapKey('m.room.create', '')).add(stateMapKey('m.room.power_levels', ''));
  if (event.stateKey !== undefined) keys.add(stateMapKey(event.type, event.stateKey));
  return [...keys];
}

/** Returns the auth state of an event in a state group. */
export async function authStateInGroup(
  { events, states: { groups, stateKeys } }: Deps,
  event: AuthSubject,
  group: number,
): Promise<AuthState> {
  const nids = await stateKeys.findMany(authStateKeys(event));
  const state = (await groups.entries([group], [...nids.values()])).get(group);
  const eventsByNid = await events.getMany(state?.values() ?? []);
  const authState = new Map<string, StoredEvent>();
  for (const [key, keyNid] of nids) {
    const stored = eventsByNid.get(state?.get(keyNid) ?? 0);
    if (stored) authState.set(key, stored);
  }
  return authState;
}

/** Returns the auth state of an event in the current state of a room. */
export async function currentAuthState(
  { events }: Deps,
  event: RoomEvent,
  head: RoomHead,
): Promise<AuthState> {
  const nids = new Map<string, number>();
  for (const key of authStateKeys(event)) {
    const entry = head.state.get(key);
    if (entry) nids.set(key, entry.nid);
  }
  const eventsByNid = await events.getMany(nids.values());
  const authState = new Map<string, StoredEvent>();
  for (const [key, nid] of nids) {
    const stored = eventsByNid.get(nid);
    if (stored) authState.set(key, stored);
  }
  return authState;
}

/**
 * Returns a copy of the auth state with the membership events among an event's auth events that a partial state lacks.
 * Source: server-server API, `PUT /send_join`, `omit_members`.
 */
export function withMembersFromAuthEvents(authState: AuthState, auth: Iterable<StoredEvent>): AuthState {
  const completed = new Map(authState);
  for (const stored of auth) {
    const { type, stateKey } = stored.event;
    if (type !== 'm.room.member' || stateKey === undefined || stored.rejected) continue;
    const key = stateMapKey(type, stateKey);
    if (!completed.has(key)) completed.set(key, stored);
  }
  return completed;
}

/** Returns the state that consists of an event's auth events. */
export function stateOfAuthEvents(auth: Iterable<StoredEvent>): AuthState {
  const authState = new Map<string, StoredEvent>();
  for (const stored of auth) {
    const { type, stateKey } = stored.event;
    if (stateKey !== undefined) authState.set(stateMapKey(type, stateKey), stored);
  }
  return authState;
}

/** Returns the look-up function that the authorization rules use, over an auth state. */
export const stateLookup =
  (authState: AuthState): StateLookup =>
  (type, stateKey) =>
    authState.get(stateMapKey(type, stateKey))?.event;

/**
 * Returns the ids of the events that authorize an event. Since room version 12 the id of the create event is added,
 * because it is not among `auth_events`.
 */
export function authIdsOf(event: RoomEvent): string[] {
  const { version, authEventIds, roomId, type } = event;
  const createIds = version.createInAuthEvents || type === 'm.room.create' ? [] : [createEventIdOf(roomId)];
  return [...new Set([...authEventIds, ...createIds])];
}

/** Returns whether the database can store the type and state key of an event. */
export function hasStorableKey({ type, stateKey }: RoomEvent): boolean {
  return stateKey === undefined || (isStorableText(type) && isStorableText(stateKey));
}
