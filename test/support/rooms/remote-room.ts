import {
  buildEvent,
  getRoomVersion,
  type JsonObject,
  type JsonValue,
  parseJson,
  type RoomEvent,
  type RoomVersion,
  referenceHash,
  type SigningKey,
  selectAuthEventKeys,
  serverOfUser,
  stateMapKey,
} from '../../../src/protocol/index.ts';
import { newSigningKey } from '../inputs/signing-key.ts';

/** The parts of an event in a remote room that a test chooses. */
export interface RemoteDraft {
  readonly type: string;
  readonly sender: string;
  readonly content: JsonObject;
  readonly stateKey?: string;
  /** The prev events; by default the newest event. */
  readonly prev?: readonly string[];
  /** The auth events; by default the auth events that the state before the event requires. */
  readonly auth?: readonly string[];
  /** Milliseconds since the epoch; by default a second after the previous event. */
  readonly ts?: number;
  /** The signing key; by default the key of the sender's server. */
  readonly key?: SigningKey;
  readonly depth?: number;
}

/** An event of a remote room with the states before and after it. */
export interface RemoteEvent {
  readonly event: RoomEvent;
  readonly json: string;
  /** Event ids by `stateMapKey`. */
  readonly stateBefore: ReadonlyMap<string, string>;
  /** Event ids by `stateMapKey`. */
  readonly stateAfter: ReadonlyMap<string, string>;
}

/**
 * A room with real keys, hashes and signatures. A test can build forks and forged events in it. Where branches merge,
 * the state entries of the last prev event win; there is no state resolution.
 */
export class RemoteRoom {
  readonly version: RoomVersion;
  readonly roomId: string;
  /** The signing keys by server name. */
  readonly keys = new Map<string, SigningKey>();
  /** The events by event id. */
  readonly events = new Map<string, RemoteEvent>();
  /** Id of the newest event. */
  newest = '';
  /** Time of the last event, in milliseconds since the epoch. */
  #now: number;
  /** The number in the id of the next event, in room versions 1 and 2. */
  nextEventNumber = 1_000;

  /** Makes a public room with shared history. @param creator creates and joins it */
  constructor(creator: string, { version = '10', now = 1_600_000_000_000 } = {}) {
    const roomVersion = getRoomVersion(version);
    if (!roomVersion) throw new Error(`there is no room version ${version}`);
    this.version = roomVersion;
    this.#now = now;
    const usesCreateEventId = roomVersion.roomId === 'create event';
    this.roomId = usesCreateEventId ? '' : `!remote${Math.abs(hashOf(creator))}:${serverOfUser(creator)}`;
    const content = { room_version: version, ...(roomVersion.creator === 'content' && { creator }) };
    const create = this.add({ type: 'm.room.create', sender: creator, stateKey: '', content, prev: [] });
    if (usesCreateEventId) this.roomId = `!${create.slice(1)}`;
    this.join(creator);
    const users = usesCreateEventId ? {} : { [creator]: 100 };
    this.add({ type: 'm.room.power_levels', sender: creator, stateKey: '', content: { users } });
    const joinRules = { join_rule: 'public' };
    this.add({ type: 'm.room.join_rules', sender: creator, stateKey: '', content: joinRules });
  }

  /** Returns the signing key of a server, made on first use. */
  key(server: string): SigningKey {
    const key = this.keys.get(server) ?? newSigningKey('k');
    this.keys.set(server, key);
    return key;
  }

  join(userId: string, more: Partial<RemoteDraft> = {}): string {
    const content = { membership: 'join' };
    return this.add({ type: 'm.room.member', sender: userId, stateKey: userId, content, ...more });
  }

  say(sender: string, body: string, more: Partial<RemoteDraft> = {}): string {
    return this.add({ type: 'm.room.message', sender, content: { msgtype: 'm.text', body }, ...more });
  }

  /** Adds an event as the newest event. @returns the event id */
  add(draft: RemoteDraft): string {
    const prev = draft.prev ?? [this.newest];
    const [first, ...others] = prev.map((id) => this.events.get(id)?.stateAfter ?? new Map<string, string>());
    // Shares the state where possible, because a room of thousands of events would copy it for each event.
    const stateBefore =
      first && others.length === 0 ? first : new Map([first ?? [], ...others].flatMap((state) => [...state]));
    const { stateKey } = draft;
    const subject = { ...draft, stateKey };
    const auth =
      draft.auth ??
      selectAuthEventKeys(subject, this.version)
        .map((key) => stateBefore.get(key))
        .filter((id) => id !== undefined);
    const deepest = Math.max(0, ...prev.map((id) => this.events.get(id)?.event.depth ?? 0));
    const serverName = serverOfUser(draft.sender);
    const isFirst = draft.type === 'm.room.create';
    this.#now += 1_000;
    const built = buildEvent(
      {
        type: draft.type,
        sender: draft.sender,
        content: draft.content,
        stateKey,
        roomId: isFirst && this.version.roomId === 'create event' ? undefined : this.roomId,
        depth: draft.depth ?? deepest + 1,
        originServerTs: draft.ts ?? this.#now,
        authEventIds: auth,
        prevEventIds: prev,
        ...(this.version.eventId === 'origin' && {
          eventId: `$${String(this.nextEventNumber++).padStart(4, '0')}:${serverName}`,
          referenceHash: (id: string) => {
            const referenced = this.events.get(id);
            return referenced ? referenceHash(referenced.event.pdu, this.version) : 'AAAA';
          },
        }),
      },
      this.version,
      { serverName, key: draft.key ?? this.key(serverName) },
    );
    const { eventId } = built.event;
    const stateAfter =
      stateKey === undefined
        ? stateBefore
        : new Map(stateBefore).set(stateMapKey(draft.type, stateKey), eventId);
    this.events.set(eventId, { ...built, stateBefore, stateAfter });
    this.newest = eventId;
    return eventId;
  }

  /** Returns the auth events of a message by `sender` after an event. */
  authEventsFor(eventId: string, sender: string): string[] {
    const state = this.get(eventId).stateAfter;
    const message = { type: 'm.room.message', sender, stateKey: undefined, content: {} };
    return selectAuthEventKeys(message, this.version)
      .map((key) => state.get(key))
      .filter((id) => id !== undefined);
  }

  get(eventId: string): RemoteEvent {
    const event = this.events.get(eventId);
    if (!event) throw new Error(`the remote room has no event ${eventId}`);
    return event;
  }

  /** Returns the PDU in the format of the federation API. */
  pdu(eventId: string): JsonObject {
    return parseJson(this.get(eventId).json, { numbers: 'as written' }) as JsonObject;
  }

  pdus(eventIds: Iterable<string>): JsonValue[] {
    return [...eventIds].map((id) => this.pdu(id));
  }

  /** Returns the auth chain of the events, without the events themselves. */
  authChain(eventIds: Iterable<string>): Set<string> {
    const chain = new Set<string>();
    const pending = [...eventIds].flatMap((id) => this.get(id).event.authEventIds);
    for (const id of pending) {
      if (chain.has(id)) continue;
      chain.add(id);
      pending.push(...this.get(id).event.authEventIds);
    }
    return chain;
  }

  /** Returns up to `limit` ancestors of the events, nearest first, skipping `known` ones. */
  before(eventIds: readonly string[], limit: number, known: ReadonlySet<string> = new Set()): string[] {
    const ancestors = new Set<string>();
    const pending = eventIds.flatMap((id) => this.get(id).event.prevEventIds);
    for (const id of pending) {
      if (ancestors.size === limit) break;
      if (ancestors.has(id) || known.has(id) || !this.events.has(id)) continue;
      ancestors.add(id);
      pending.push(...this.get(id).event.prevEventIds);
    }
    return [...ancestors];
  }
}

function hashOf(text: string): number {
  return [...text].reduce((hash, letter) => (hash * 31 + (letter.codePointAt(0) ?? 0)) | 0, 7);
}
