import {
  authorize,
  buildEvent,
  checkAuthEvents,
  type EventSigner,
  getRoomVersion,
  type JsonObject,
  type RoomEvent,
  type RoomVersion,
  referenceHash,
  type StateMap,
  selectAuthEventKeys,
  serverOfUser,
  stateMapKey,
} from '../../../src/protocol/index.ts';
import type { VerifiedEvent } from '../../../src/room-engine/index.ts';
import { newSigningKey } from '../inputs/signing-key.ts';
import { resolveState } from './resolve-state.ts';

export const ann = '@ann:a.example';
export const ben = '@ben:b.example';
export const cat = '@cat:c.example';

/** What somebody does in a reference room. */
export interface ReferenceDraft {
  readonly type: string;
  readonly sender: string;
  readonly stateKey?: string;
  readonly content?: JsonObject;
  readonly redacts?: string;
  /** After which events; by default all that nothing comes after. */
  readonly prev?: readonly string[];
  /** Other auth events than those that the state before it asks for. */
  readonly auth?: readonly string[];
  /** Milliseconds since the epoch. */
  readonly ts?: number;
}

let rooms = 0;

/**
 * A room as the specification defines it, worked out the plain way: whole states, and resolution by the protocol
 * alone. What a server makes of the same events is held against it.
 */
export class ReferenceRoom {
  readonly version: RoomVersion;
  readonly roomId: string;
  readonly events = new Map<string, VerifiedEvent>();
  readonly rejected = new Set<string>();
  readonly #after = new Map<string, StateMap<string>>();
  readonly #signers = new Map<string, EventSigner>();
  #ends: readonly string[] = [];
  readonly #number = rooms++;
  /** Also tells rooms apart that have no id of their own. */
  #ts = 1_000_000 + this.#number;
  #ids = 0;

  /** A public room that `ann` has made; she and `ben` are in it, and he may do less than she. */
  constructor(versionId = '10') {
    const version = getRoomVersion(versionId);
    if (!version) throw new Error(`there is no room version ${versionId}`);
    this.version = version;
    const own = version.roomId === 'origin' ? `!reference${this.#number}:a.example` : '';
    this.roomId = own;
    const creator = version.creator === 'content' ? { creator: ann } : {};
    const create = this.#build(
      { type: 'm.room.create', sender: ann, stateKey: '', content: { room_version: versionId, ...creator } },
      [],
      new Map(),
    );
    this.roomId = create.event.roomId;
    this.#take(create);
    this.member(ann, 'join');
    const users = version.privilegedCreators ? { [ben]: 50 } : { [ann]: 100, [ben]: 50 };
    this.add({ type: 'm.room.power_levels', sender: ann, stateKey: '', content: { users } });
    this.add({ type: 'm.room.join_rules', sender: ann, stateKey: '', content: { join_rule: 'public' } });
    this.member(ben, 'join');
  }

  get room() {
    return { roomId: this.roomId, version: this.version };
  }

  /** The events that nothing comes after. */
  get forwardExtremities(): readonly string[] {
    return this.#ends;
  }

  get(eventId: string): VerifiedEvent {
    const found = this.events.get(eventId);
    if (!found) throw new Error(`there is no event ${eventId}`);
    return found;
  }

  /** Does something, allowed or not. @returns the id of the event */
  add(deed: ReferenceDraft): string {
    const prev = deed.prev ?? this.#ends;
    return this.#take(this.#build(deed, prev, this.stateAfter(prev))).event.eventId;
  }

  say(sender: string, prev?: readonly string[]): string {
    return this.add({ type: 'm.room.message', sender, content: { body: 'hello' }, ...(prev && { prev }) });
  }

  member(
    userId: string,
    membership: string,
    { sender = userId, prev, ...more }: Partial<ReferenceDraft> = {},
  ): string {
    const content = { membership };
    return this.add({
      type: 'm.room.member',
      sender,
      stateKey: userId,
      content,
      ...more,
      ...(prev && { prev }),
    });
  }

  /** Takes an event that was made elsewhere. */
  addExisting(verified: VerifiedEvent): void {
    this.#take(verified);
  }

  /** The state that the room has where all of these have happened. */
  stateAfter(eventIds: readonly string[]): StateMap<string> {
    const states = eventIds.map((eventId) => this.#after.get(eventId) ?? new Map<string, string>());
    return resolveState(this.version, states, {
      event: (eventId) => this.events.get(eventId)?.event,
      isRejected: (eventId) => this.rejected.has(eventId),
    });
  }

  stateBefore(eventId: string): StateMap<string> {
    return this.stateAfter(this.get(eventId).event.prevEventIds);
  }

  /** The events of a state, and those of their auth chains that are not in it. */
  stateAndAuthChain(state: StateMap<string>): { state: VerifiedEvent[]; authChain: VerifiedEvent[] } {
    const inState = new Set(state.values());
    const chain = new Set<string>();
    const pending = [...inState];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      for (const eventId of this.get(next).event.authEventIds) {
        if (chain.has(eventId)) continue;
        chain.add(eventId);
        pending.push(eventId);
      }
    }
    return {
      state: [...inState].map((eventId) => this.get(eventId)),
      authChain: [...chain].filter((eventId) => !inState.has(eventId)).map((eventId) => this.get(eventId)),
    };
  }

  /** A join by somebody of the server under test, with what that server is answered. */
  join(userId: string, prev: readonly string[] = this.#ends) {
    const joinId = this.member(userId, 'join', { prev });
    return { event: this.get(joinId), ...this.stateAndAuthChain(this.stateBefore(joinId)) };
  }

  #take(verified: VerifiedEvent): VerifiedEvent {
    const { event } = verified;
    this.events.set(event.eventId, verified);
    const before = this.stateAfter(event.prevEventIds);
    if (!this.#isAllowed(event, before)) this.rejected.add(event.eventId);
    const changes = event.stateKey !== undefined && !this.rejected.has(event.eventId);
    const after = changes
      ? new Map(before).set(stateMapKey(event.type, event.stateKey ?? ''), event.eventId)
      : before;
    this.#after.set(event.eventId, after);
    if (!this.rejected.has(event.eventId)) {
      this.#ends = [...this.#ends.filter((end) => !event.prevEventIds.includes(end)), event.eventId];
    }
    return verified;
  }

  #isAllowed(event: RoomEvent, before: StateMap<string>): boolean {
    const find = (eventId: string) => this.events.get(eventId)?.event;
    const isRejected = (eventId: string) => this.rejected.has(eventId);
    if (!checkAuthEvents(event, { event: find, isRejected }).allowed) return false;
    const create = [...this.events.values()][0]?.event;
    const named = event.authEventIds.map(find);
    const inAuth = (type: string, stateKey: string) =>
      named.find((one) => one?.type === type && one.stateKey === stateKey) ??
      (type === 'm.room.create' && !this.version.createInAuthEvents ? create : undefined);
    const inState = (type: string, stateKey: string) => {
      const eventId = before.get(stateMapKey(type, stateKey));
      return eventId === undefined ? undefined : find(eventId);
    };
    return authorize(event, inAuth).allowed && authorize(event, inState).allowed;
  }

  #build(deed: ReferenceDraft, prev: readonly string[], state: StateMap<string>): VerifiedEvent {
    const content = deed.content ?? {};
    const keys = selectAuthEventKeys({ ...deed, content, stateKey: deed.stateKey }, this.version);
    const authEventIds = deed.auth ?? keys.map((key) => state.get(key)).filter((id) => id !== undefined);
    const depth = 1 + Math.max(0, ...prev.map((eventId) => this.get(eventId).event.depth));
    this.#ts += 1_000;
    return buildEvent(
      {
        type: deed.type,
        sender: deed.sender,
        content,
        stateKey: deed.stateKey,
        redacts: deed.redacts,
        roomId: this.roomId === '' ? undefined : this.roomId,
        depth,
        originServerTs: deed.ts ?? this.#ts,
        authEventIds,
        prevEventIds: prev,
        ...(this.version.eventId === 'origin' && {
          eventId: `$${this.#number}-${this.#ids++}:${serverOfUser(deed.sender)}`,
          referenceHash: (eventId: string) => referenceHash(this.get(eventId).event.pdu, this.version),
        }),
      },
      this.version,
      this.#signer(serverOfUser(deed.sender)),
    );
  }

  #signer(serverName: string): EventSigner {
    const signer = this.#signers.get(serverName) ?? { serverName, key: newSigningKey('1') };
    this.#signers.set(serverName, signer);
    return signer;
  }
}
