import {
  buildEvent,
  type JsonObject,
  type RoomEvent,
  type RoomVersion,
  type StateLookup,
  type StateMap,
  type StateResolutionSource,
  selectAuthEventKeys,
  stateMapKey,
} from '../../src/protocol/index.ts';
import { newSigningKey } from '../../test/support/inputs/signing-key.ts';

/** Fields of an event to build. */
export interface EventFields {
  readonly type: string;
  readonly sender: string;
  readonly stateKey?: string;
  readonly content: JsonObject;
}

/** A room in memory with real events: hashed, signed and with the required auth events. */
export class Room implements StateResolutionSource {
  readonly #version: RoomVersion;
  readonly #signer = { serverName: 'example.org', key: newSigningKey('a_bench') };
  readonly #events = new Map<string, RoomEvent>();
  #roomId = '!room:example.org';
  #last = '';
  #time = 1_760_000_000_000;

  constructor(version: RoomVersion) {
    this.#version = version;
  }

  event(eventId: string): RoomEvent | undefined {
    return this.#events.get(eventId);
  }

  events(): Iterable<RoomEvent> {
    return this.#events.values();
  }

  /** Builds an event that follows the last event of the room. Its auth events are those of `state`. */
  build(eventFields: EventFields, state: StateMap<string>): RoomEvent {
    const keys = selectAuthEventKeys({ ...eventFields, stateKey: eventFields.stateKey }, this.#version);
    const isCreate = eventFields.type === 'm.room.create';
    const roomId = isCreate && this.#version.roomId === 'create event' ? undefined : this.#roomId;
    const draft = {
      ...eventFields,
      roomId,
      depth: this.#events.size + 1,
      originServerTs: ++this.#time,
      authEventIds: keys.map((key) => state.get(key)).filter((id) => id !== undefined),
      prevEventIds: isCreate ? [] : [this.#last],
    };
    return buildEvent(draft, this.#version, this.#signer).event;
  }

  /** Adds a state event to the room, and updates `state`. */
  send(eventFields: EventFields & { readonly stateKey: string }, state: Map<string, string>): void {
    const event = this.build(eventFields, state);
    this.#roomId = event.roomId;
    this.#last = event.eventId;
    this.#events.set(event.eventId, event);
    state.set(stateMapKey(event.type, eventFields.stateKey), event.eventId);
  }

  /** Returns a function that finds the events of a state. */
  lookupIn(state: StateMap<string>): StateLookup {
    return (type, stateKey) => {
      const id = state.get(stateMapKey(type, stateKey));
      return id === undefined ? undefined : this.#events.get(id);
    };
  }
}

export const admin = '@admin:example.org';

/**
 * Builds a public room with an administrator and `members` other members. Every second one of the first 1,000 has a
 * power level.
 * @returns the room and its state
 */
export function publicRoom(
  version: RoomVersion,
  members: number,
): { room: Room; state: Map<string, string> } {
  const room = new Room(version);
  const state = new Map<string, string>();
  const levelOfAdmin = version.privilegedCreators ? {} : { [admin]: 100 };
  const users: Record<string, number> = { ...levelOfAdmin };
  for (let i = 0; i < Math.min(members, 1000); i += 2) users[userOf(i)] = 50;
  room.send({ type: 'm.room.create', sender: admin, stateKey: '', content: { creator: admin } }, state);
  join(room, state, admin);
  room.send({ type: 'm.room.power_levels', sender: admin, stateKey: '', content: { users } }, state);
  room.send(
    { type: 'm.room.join_rules', sender: admin, stateKey: '', content: { join_rule: 'public' } },
    state,
  );
  for (let i = 0; i < members; i++) join(room, state, userOf(i));
  return { room, state };
}

/** Returns the id of the member with this index. */
export function userOf(index: number): string {
  return `@user${index}:example.org`;
}

/** Adds a join, or a change of the display name of a joined user. */
export function join(room: Room, state: Map<string, string>, user: string, displayname = user): void {
  const content = { membership: 'join', displayname };
  room.send({ type: 'm.room.member', sender: user, stateKey: user, content }, state);
}
