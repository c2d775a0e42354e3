import { stateMapKey } from '../event.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import type { RoomVersion } from '../room-versions.ts';

/** The fields of an event that decide the selection of its auth events. */
export interface AuthEventSubject {
  readonly type: string;
  readonly sender: string;
  /** `undefined` for message events. */
  readonly stateKey: string | undefined;
  readonly content: JsonObject;
}

/**
 * Returns the auth events selection of an event as keys of a `StateMap` (see `stateMapKey`), each once. The room may
 * lack events for some of these keys. The keys are in the order of the specification: the create event (up to v11),
 * the power levels and the sender's membership; for `m.room.member` also the target's membership, the join rules (for a join,
 * invite or knock), the third-party invite (for an invite), and the membership of the user who authorised a join (since v8).
 * Source: https://spec.matrix.org/latest/server-server-api/#auth-events-selection
 */
export function selectAuthEventKeys(event: AuthEventSubject, version: RoomVersion): string[] {
  if (event.type === 'm.room.create') return [];
  const keys: string[] = [];
  // Since v12 the room id names the create event.
  if (version.createInAuthEvents) keys.push(stateMapKey('m.room.create', ''));
  keys.push(stateMapKey('m.room.power_levels', ''), stateMapKey('m.room.member', event.sender));
  if (event.type === 'm.room.member') addMembershipKeys(keys, event, version);
  return keys;
}

function addMembershipKeys(keys: string[], event: AuthEventSubject, version: RoomVersion): void {
  const { membership, third_party_invite: invite, join_authorised_via_users_server: via } = event.content;
  if (event.stateKey !== undefined) addMember(keys, event.stateKey);
  if (membership === 'join' || membership === 'invite' || membership === 'knock') {
    keys.push(stateMapKey('m.room.join_rules', ''));
  }
  if (membership === 'invite') {
    const token = ownProperty(ownProperty(invite, 'signed'), 'token');
    if (typeof token === 'string') keys.push(stateMapKey('m.room.third_party_invite', token));
  }
  // Since v8.
  if (membership === 'join' && version.restricted && typeof via === 'string') addMember(keys, via);
}

function addMember(keys: string[], userId: string): void {
  const key = stateMapKey('m.room.member', userId);
  if (!keys.includes(key)) keys.push(key);
}

/** Returns an own property of any value; `undefined` if it has none. */
export function ownProperty(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
