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

/** The parts of an event in a reference room that a test chooses. */
export interface ReferenceDraft {
  readonly type: string;
  readonly sender: string;
  readonly stateKey?: string;
  readonly content?: JsonObject;
  readonly redacts?: string;
  /** The prev events; by default the forward extremities. */
  readonly prev?: readonly string[];
  /** Replaces the auth events that the state before the event prescribes. */
  readonly auth?: readonly string[];
  /** Milliseconds since the epoch. */
  readonly ts?: number;
}

let rooms = 0;

/** The signer of each server; all rooms share them, because making a key takes longer than an event. */
const signers = new Map<string, EventSigner>();

function signerOf(serverName: string): EventSigner {
  const signer = signers.get(serverName) ?? { serverName, key: newSigningKey('1') };
  signers.set(serverName, signer);
  return signer;
}

/**
 * A room computed in the simplest way that follows the specification: whole states per event and the
 * protocol's own state resolution. Tests compare the server's results for the same events with it.
 */
export class ReferenceRoom {
  readonly version: RoomVersion;
  readonly roomId: string;
  /** All events, rejected ones included, by event id. */
  readonly events = new Map<string, VerifiedEvent>();
  /** Ids of the rejected events. */
  readonly rejected = new Set<string>();
  /** The state after each event, by event id. */
  readonly #statesAfter = new Map<string, StateMap<string>>();
  #extremities: readonly string[] = [];
  readonly #number = rooms++;
  /** Starts at a different value in each room, so that room ids made from the create event differ. */
  #ts = 1_000_000 + this.#number;
  #ids = 0;

  /** Makes a public room by `ann` that `ben` joins; he has power level 50. */
  constructor(versionId = '10') {
    const version = getRoomVersion(versionId);
    if (!version) throw new Error(`there is no room version ${versionId}`);
    this.version = version;
    this.roomId = version.roomId === 'origin' ? `!reference${this.#number}:a.example` : '';
    const creator = version.creator === 'content' ? { creator: ann } : {};
    const create = this.#build(
      { type: 'm.room.create', sender: ann, stateKey: '', content: { room_version: versionId, ...creator } },
      [],
      new Map(),
    );
    this.roomId = create.event.roomId;
    this.#accept(create);
    this.member(ann, 'join');
    const users = version.privilegedCreators ? { [ben]: 50 } : { [ann]: 100, [ben]: 50 };
    this.add({ type: 'm.room.power_levels', sender: ann, stateKey: '', content: { users } });
    this.add({ type: 'm.room.join_rules', sender: ann, stateKey: '', content: { join_rule: 'public' } });
    this.member(ben, 'join');
  }

  get room() {
    return { roomId: this.roomId, version: this.version };
  }

  get forwardExtremities(): readonly string[] {
    return this.#extremities;
  }

  get(eventId: string): VerifiedEvent {
    const event = this.events.get(eventId);
    if (!event) throw new Error(`the reference room has no event ${eventId}`);
    return event;
  }

  /** Adds an event, allowed or not. @returns the event id */
  add(draft: ReferenceDraft): string {
    const prev = draft.prev ?? this.#extremities;
    return this.#accept(this.#build(draft, prev, this.stateAfter(prev))).event.eventId;
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

  /** Adds an event that was built elsewhere. */
  addExisting(verified: VerifiedEvent): void {
    this.#accept(verified);
  }

  /** Resolves the states after these events. */
  stateAfter(eventIds: readonly string[]): StateMap<string> {
    const states = eventIds.map((eventId) => this.#statesAfter.get(eventId) ?? new Map<string, string>());
    return resolveState(this.version, states, {
      event: (eventId) => this.events.get(eventId)?.event,
      isRejected: (eventId) => this.rejected.has(eventId),
    });
  }

  stateBefore(eventId: string): StateMap<string> {
    return this.stateAfter(this.get(eventId).event.prevEventIds);
  }

  /** Returns the events of a state, and their auth chains without these events. */
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

  /** Adds a join by a user of the server under test and returns it with the response to its send_join. */
  join(userId: string, prev: readonly string[] = this.#extremities) {
    const joinId = this.member(userId, 'join', { prev });
    return { event: this.get(joinId), ...this.stateAndAuthChain(this.stateBefore(joinId)) };
  }

  #accept(verified: VerifiedEvent): VerifiedEvent {
    const { event } = verified;
    this.events.set(event.eventId, verified);
    const stateBefore = this.stateAfter(event.prevEventIds);
    if (!this.#isAllowed(event, stateBefore)) this.rejected.add(event.eventId);
    const changesState = event.stateKey !== undefined && !this.rejected.has(event.eventId);
    const stateAfter = changesState
      ? new Map(stateBefore).set(stateMapKey(event.type, event.stateKey ?? ''), event.eventId)
      : stateBefore;
    this.#statesAfter.set(event.eventId, stateAfter);
    if (!this.rejected.has(event.eventId)) {
      this.#extremities = [
        ...this.#extremities.filter((end) => !event.prevEventIds.includes(end)),
        event.eventId,
      ];
    }
    return verified;
  }

  #isAllowed(event: RoomEvent, stateBefore: StateMap<string>): boolean {
    const find = (eventId: string) => this.events.get(eventId)?.event;
    const isRejected = (eventId: string) => this.rejected.has(eventId);
    if (!checkAuthEvents(event, { event: find, isRejected }).allowed) return false;
    const create = [...this.events.values()][0]?.event;
    const authEvents = event.authEventIds.map(find);
    const inAuth = (type: string, stateKey: string) =>
      authEvents.find((authEvent) => authEvent?.type === type && authEvent.stateKey === stateKey) ??
      (type === 'm.room.create' && !this.version.createInAuthEvents ? create : undefined);
    const inState = (type: string, stateKey: string) => {
      const eventId = stateBefore.get(stateMapKey(type, stateKey));
      return eventId === undefined ? undefined : find(eventId);
    };
    return authorize(event, inAuth).allowed && authorize(event, inState).allowed;
  }

  #build(draft: ReferenceDraft, prev: readonly string[], state: StateMap<string>): VerifiedEvent {
    const content = draft.content ?? {};
    const keys = selectAuthEventKeys({ ...draft, content, stateKey: draft.stateKey }, this.version);
    const authEventIds = draft.auth ?? keys.map((key) => state.get(key)).filter((id) => id !== undefined);
    const depth = 1 + Math.max(0, ...prev.map((eventId) => this.get(eventId).event.depth));
    this.#ts += 1_000;
    return buildEvent(
      {
        type: draft.type,
        sender: draft.sender,
        content,
        stateKey: draft.stateKey,
        redacts: draft.redacts,
        roomId: this.roomId === '' ? undefined : this.roomId,
        depth,
        originServerTs: draft.ts ?? this.#ts,
        authEventIds,
        prevEventIds: prev,
        ...(this.version.eventId === 'origin' && {
          eventId: `$${this.#number}-${this.#ids++}:${serverOfUser(draft.sender)}`,
          referenceHash: (eventId: string) => referenceHash(this.get(eventId).event.pdu, this.version),
        }),
      },
      this.version,
      signerOf(serverOfUser(draft.sender)),
    );
  }
}
