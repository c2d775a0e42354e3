import {
  type BuiltEvent,
  buildEvent,
  type EventSigner,
  getRoomVersion,
  type JsonObject,
  type RoomEvent,
  type RoomVersion,
  referenceHash,
  selectAuthEventKeys,
  stateMapKey,
} from '../../../src/protocol/index.ts';

/** Number of ids that were made in this process, so that each is different. */
let madeIds = 0;

/**
 * A room of a server that a test simulates. Its events are correctly hashed and signed; the auth rules are not applied.
 */
export class SignedRoom {
  readonly version: RoomVersion;
  readonly signer: EventSigner;
  readonly creator: string;
  roomId = '';
  /** The events of the room by event id, oldest first. */
  readonly events = new Map<string, BuiltEvent>();
  /** The current state, by `stateMapKey`. */
  readonly state = new Map<string, BuiltEvent>();
  #last: Pick<BuiltEvent, 'event'> | undefined;
  #now: number;

  /** @param now milliseconds since the epoch when the room is created */
  constructor(version: string, signer: EventSigner, now = Date.now()) {
    this.version = getRoomVersion(version)!;
    this.signer = signer;
    this.creator = `@creator:${signer.serverName}`;
    this.#now = now;
    const creatorField = this.version.creator === 'content' ? { creator: this.creator } : {};
    this.roomId = this.version.roomId === 'origin' ? `!made${madeIds++}:${signer.serverName}` : '';
    const create = this.setState('m.room.create', { room_version: version, ...creatorField });
    this.roomId = create.event.roomId;
    this.setState('m.room.member', { membership: 'join' }, this.creator);
    const users = this.version.privilegedCreators ? {} : { users: { [this.creator]: 100 } };
    this.setState('m.room.power_levels', { ...users, invite: 0 });
    this.setState('m.room.join_rules', { join_rule: 'public' });
    this.setState('m.room.history_visibility', { history_visibility: 'shared' });
  }

  /** Adds a state event. */
  setState(type: string, content: JsonObject, stateKey = '', sender = this.creator): BuiltEvent {
    return this.#add({ type, content, stateKey, sender });
  }

  /** Adds a message after these events. */
  merge(body: string, ...prev: readonly BuiltEvent[]): BuiltEvent {
    return this.#add(
      { type: 'm.room.message', content: { msgtype: 'm.text', body }, sender: this.creator },
      prev,
    );
  }

  /** Makes an event of the room the newest one again, so that the next event forks the history. */
  backTo({ event }: Pick<BuiltEvent, 'event'>): void {
    this.#last = this.events.get(event.eventId) ?? { event };
  }

  /** Makes an event of another server that is in the room the newest event of the room. */
  accept(event: RoomEvent): void {
    const built = { event, json: '' };
    if (event.stateKey !== undefined) this.state.set(stateMapKey(event.type, event.stateKey), built);
    this.#last = built;
  }

  say(body: string, sender = this.creator): BuiltEvent {
    return this.#add({ type: 'm.room.message', content: { msgtype: 'm.text', body }, sender });
  }

  /** Builds an event after the newest one, or after others, without adding it to the room. */
  build(
    draft: { type: string; content: JsonObject; stateKey?: string; sender: string },
    prev: readonly Pick<BuiltEvent, 'event'>[] = this.#last ? [this.#last] : [],
  ): BuiltEvent {
    const { version, signer } = this;
    const isCreate = draft.type === 'm.room.create';
    const auth = isCreate ? [] : this.authEventsOf(draft);
    return buildEvent(
      {
        ...draft,
        ...(this.roomId !== '' && { roomId: this.roomId }),
        depth: Math.max(0, ...prev.map(({ event }) => event.depth)) + 1,
        originServerTs: this.#now++,
        authEventIds: auth.map(({ event }) => event.eventId),
        prevEventIds: prev.map(({ event }) => event.eventId),
        ...(version.eventId === 'origin' && {
          eventId: `$made${madeIds++}:${signer.serverName}`,
          referenceHash: (eventId: string) => referenceHash(this.events.get(eventId)!.event.pdu, version),
        }),
      },
      version,
      signer,
    );
  }

  /** Returns the auth events of an event, chosen from the current state. */
  authEventsOf(draft: {
    type: string;
    content: JsonObject;
    stateKey?: string;
    sender: string;
  }): BuiltEvent[] {
    return selectAuthEventKeys({ ...draft, stateKey: draft.stateKey }, this.version)
      .map((key) => this.state.get(key))
      .filter((event) => event !== undefined);
  }

  /** Returns the response to make_join, make_leave or make_knock: the room version and the event template. */
  membershipTemplate(userId: string, membership: string, content: JsonObject = {}): JsonObject {
    const draft = {
      type: 'm.room.member',
      content: { membership, ...content },
      stateKey: userId,
      sender: userId,
    };
    const { hashes: _hashes, signatures: _signatures, ...event } = this.build(draft).event.pdu;
    return { room_version: this.version.id, event: { ...event, origin: this.signer.serverName } };
  }

  /** The PDUs of the current state, which are also returned as the auth chain. */
  stateAndAuthChain(): { readonly state: JsonObject[]; readonly auth_chain: JsonObject[] } {
    const pdus = [...this.state.values()].map(({ event }) => event.pdu);
    return { state: pdus, auth_chain: pdus };
  }

  #add(
    draft: { type: string; content: JsonObject; stateKey?: string; sender: string },
    prev?: readonly BuiltEvent[],
  ): BuiltEvent {
    const built = this.build(draft, prev);
    this.events.set(built.event.eventId, built);
    if (draft.stateKey !== undefined) this.state.set(stateMapKey(draft.type, draft.stateKey), built);
    this.#last = built;
    return built;
  }
}
