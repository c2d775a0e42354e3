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

/** What an event of a remote room says; the rest follows from where it stands. */
export interface RemoteDraft {
  readonly type: string;
  readonly sender: string;
  readonly content: JsonObject;
  readonly stateKey?: string;
  /** Absent: the newest event. */
  readonly prev?: readonly string[];
  /** Absent: what the state before the event wants. */
  readonly auth?: readonly string[];
  /** Milliseconds since the epoch; absent: a second after the event before. */
  readonly ts?: number;
  /** Whose key signs; absent: that of the sender's server. */
  readonly key?: SigningKey;
  readonly depth?: number;
}

/** An event of a remote room, and where it stands. */
export interface RemoteEvent {
  readonly event: RoomEvent;
  readonly json: string;
  readonly stateBefore: ReadonlyMap<string, string>;
  readonly stateAfter: ReadonlyMap<string, string>;
}

/**
 * The events of a room as servers make them, with real keys, hashes and signatures: linear, forked or forged, as a
 * test wants. Where branches meet, entries of the later named branch win, which is enough for tests that do not
 * disagree.
 */
export class RemoteRoom {
  readonly version: RoomVersion;
  readonly roomId: string;
  readonly keys = new Map<string, SigningKey>();
  readonly events = new Map<string, RemoteEvent>();
  /** The newest event. */
  newest = '';
  #now: number;
  /** The number in the id of the next event, in room versions 1 and 2. */
  nextEventNumber = 1_000;

  /** @param creator who makes the room and joins it, public and with shared history */
  constructor(creator: string, { version = '10', now = 1_600_000_000_000 } = {}) {
    const found = getRoomVersion(version);
    if (!found) throw new Error(`there is no room version ${version}`);
    this.version = found;
    this.#now = now;
    const makesId = found.roomId === 'create event';
    this.roomId = makesId ? '' : `!remote${Math.abs(hashOf(creator))}:${serverOfUser(creator)}`;
    const content = { room_version: version, ...(found.creator === 'content' && { creator }) };
    const create = this.add({ type: 'm.room.create', sender: creator, stateKey: '', content, prev: [] });
    if (makesId) this.roomId = `!${create.slice(1)}`;
    this.join(creator);
    const users = makesId ? {} : { [creator]: 100 };
    this.add({ type: 'm.room.power_levels', sender: creator, stateKey: '', content: { users } });
    const content2 = { join_rule: 'public' };
    this.add({ type: 'm.room.join_rules', sender: creator, stateKey: '', content: content2 });
  }

  /** The key of a server, made when it is first needed. */
  key(server: string): SigningKey {
    const known = this.keys.get(server) ?? newSigningKey('k');
    this.keys.set(server, known);
    return known;
  }

  join(userId: string, more: Partial<RemoteDraft> = {}): string {
    const content = { membership: 'join' };
    return this.add({ type: 'm.room.member', sender: userId, stateKey: userId, content, ...more });
  }

  say(sender: string, body: string, more: Partial<RemoteDraft> = {}): string {
    return this.add({ type: 'm.room.message', sender, content: { msgtype: 'm.text', body }, ...more });
  }

  /** Adds an event; it becomes the newest. @returns its id */
  add(draft: RemoteDraft): string {
    const prev = draft.prev ?? [this.newest];
    const before = new Map(prev.flatMap((id) => [...(this.events.get(id)?.stateAfter ?? [])]));
    const { stateKey } = draft;
    const subject = { ...draft, stateKey };
    const auth =
      draft.auth ??
      selectAuthEventKeys(subject, this.version)
        .map((key) => before.get(key))
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
            const named = this.events.get(id);
            return named ? referenceHash(named.event.pdu, this.version) : 'AAAA';
          },
        }),
      },
      this.version,
      { serverName, key: draft.key ?? this.key(serverName) },
    );
    const after = new Map(before);
    const { eventId } = built.event;
    if (stateKey !== undefined) after.set(stateMapKey(draft.type, stateKey), eventId);
    this.events.set(eventId, { ...built, stateBefore: before, stateAfter: after });
    this.newest = eventId;
    return eventId;
  }

  /** What a message of the user names as its auth events, after an event. */
  authEventsFor(eventId: string, sender: string): string[] {
    const state = this.get(eventId).stateAfter;
    const message = { type: 'm.room.message', sender, stateKey: undefined, content: {} };
    return selectAuthEventKeys(message, this.version)
      .map((key) => state.get(key))
      .filter((id) => id !== undefined);
  }

  get(eventId: string): RemoteEvent {
    const found = this.events.get(eventId);
    if (!found) throw new Error(`the room has no event ${eventId}`);
    return found;
  }

  /** An event as another server sends it. */
  pdu(eventId: string): JsonObject {
    return parseJson(this.get(eventId).json, { numbers: 'as written' }) as JsonObject;
  }

  pdus(eventIds: Iterable<string>): JsonValue[] {
    return [...eventIds].map((id) => this.pdu(id));
  }

  /** The auth events of events, theirs, and so on. */
  authChain(eventIds: Iterable<string>): Set<string> {
    const chain = new Set<string>();
    const wanted = [...eventIds].flatMap((id) => this.get(id).event.authEventIds);
    for (const id of wanted) {
      if (chain.has(id)) continue;
      chain.add(id);
      wanted.push(...this.get(id).event.authEventIds);
    }
    return chain;
  }

  /** The events before some, nearest first. */
  before(eventIds: readonly string[], limit: number, known: ReadonlySet<string> = new Set()): string[] {
    const found = new Set<string>();
    const wanted = eventIds.flatMap((id) => this.get(id).event.prevEventIds);
    for (const id of wanted) {
      if (found.size === limit) break;
      if (found.has(id) || known.has(id) || !this.events.has(id)) continue;
      found.add(id);
      wanted.push(...this.get(id).event.prevEventIds);
    }
    return [...found];
  }
}

function hashOf(text: string): number {
  return [...text].reduce((hash, letter) => (hash * 31 + (letter.codePointAt(0) ?? 0)) | 0, 7);
}
