import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { LongText } from '../../kernel/http/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { TimeSlices } from '../../kernel/time-slices.ts';
import type { RoomHead, RoomReader, StateEntry, StoredEvent } from '../../room-engine/index.ts';
import { erasedEvents, visibleContent } from '../../room-engine/index.ts';
import type { EventTexts } from './event-texts.ts';
import { type TextOrStream, textOrStream } from './long-answers.ts';
import { type StateText, StateTextBuilder } from './state-text.ts';

/** A part of the current state of a room, and the JSON around its entries. */
export interface StatePart {
  /** Identifies the part among the few parts of a room. */
  readonly name: string;
  /** The text before the first entry. */
  readonly start: string;
  /** The text after the last entry. */
  readonly end: string;
  readonly includes: (entry: StateEntry) => boolean;
}

/** The texts of the current state of a room. */
interface RoomTexts {
  /**
   * The `state` of the head's `StateMark`, which identifies the current state, when the texts were made. The reference
   * is weak, so that the texts do not keep the head in memory.
   */
  readonly state: WeakRef<object>;
  /** `changes` of the same `StateMark`. */
  readonly changes: number;
  /** Number of erased users when the texts were made. */
  readonly erasedUsers: number;
  /** By name of the part. */
  readonly texts: Map<string, RenderedPart>;
  readonly loading: LoadOnce<string, RenderedPart>;
}

/** The text of a part; `null` where members may see different events, `too long` where the cache cannot hold it. */
type RenderedPart = StateText | null | 'too long';

export interface StateTextsDeps {
  readonly engine: RoomReader;
  readonly events: EventTexts;
  readonly caches: CacheRegistry;
  readonly clock: Clock;
}

/** Maximum bytes of all cached texts at cache factor 1. */
const maxBytes = 12 * MiB;

/** Maximum share of the cache that one text may have. */
const maxShare = 0.5;

/**
 * Minimum bytes of the text of one event. A part with so many events that its text must be too long is not rendered.
 */
const minEventBytes = 300;

/** Number of events that are in memory together while a long text is made. */
const eventsAtOnce = 100;

/**
 * The current state of rooms as JSON text, as all joined users see it. A text is rendered once, and again when the
 * state has changed.
 */
export class StateTexts {
  readonly #engine: RoomReader;
  readonly #events: EventTexts;
  readonly #clock: Clock;
  readonly #slices: TimeSlices;
  readonly #rooms: Cache<string, RoomTexts>;

  constructor({ engine, events, caches, clock }: StateTextsDeps) {
    this.#engine = engine;
    this.#events = events;
    this.#clock = clock;
    this.#slices = new TimeSlices(clock);
    this.#rooms = caches.create('state_texts', { maxBytes, sizeOf });
    engine.stream.subscribe(({ roomId, stateChanges, redacts, end }) => {
      if (stateChanges.length > 0 || redacts !== undefined || end === undefined) this.#rooms.delete(roomId);
    });
    engine.removals.subscribe((removal) => {
      if (removal.kind === 'purged') this.#rooms.delete(removal.roomId);
    });
  }

  /**
   * Returns the events of a part of the current state, as joined users who have sent no delayed events see them.
   * Returns `undefined` for a text that is too long, and when a sender was erased: members may then see different
   * events.
   */
  async events(head: RoomHead, part: StatePart): Promise<LongText | undefined> {
    const erased = await this.#engine.erased.positions();
    const text = await this.#read(head, erased.size, part.name, () => this.#renderEvents(head, part, erased));
    return text === null || text === 'too long' ? undefined : text.at(this.#clock.now());
  }

  /** Returns `{"joined":{…}}` with the profiles of joined members by user id; unset profile fields are null. */
  async joinedMembers(head: RoomHead): Promise<TextOrStream> {
    const { size } = await this.#engine.erased.positions();
    const text = await this.#read(head, size, 'joined members', () => this.#renderProfiles(head));
    if (text === 'too long') return textOrStream(this.#profiles(head));
    if (!text) throw new Error('the profiles of members were not rendered');
    return text.at(this.#clock.now());
  }

  async #read(
    head: RoomHead,
    erasedUsers: number,
    name: string,
    render: () => Promise<RenderedPart>,
  ): Promise<RenderedPart> {
    const room = this.#textsOf(head, erasedUsers);
    const cached = room.texts.get(name);
    if (cached !== undefined) return cached;
    return room.loading.run(name, render, (text) => this.#keep(head.roomId, room, name, text));
  }

  #textsOf(head: RoomHead, erasedUsers: number): RoomTexts {
    const cached = this.#rooms.get(head.roomId);
    const state = cached?.state.deref();
    if (cached && state && head.isUnchanged({ state, changes: cached.changes })) {
      if (cached.erasedUsers === erasedUsers) return cached;
    }
    const { stateMark } = head;
    const room: RoomTexts = {
      state: new WeakRef(stateMark.state),
      changes: stateMark.changes,
      erasedUsers,
      texts: new Map(),
      loading: new LoadOnce(),
    };
    this.#rooms.set(head.roomId, room);
    return room;
  }

  #keep(roomId: string, room: RoomTexts, name: string, text: RenderedPart): void {
    if (this.#rooms.peek(roomId) !== room) return;
    room.texts.set(name, text);
    this.#rooms.remeasure(roomId);
  }

  async #renderEvents(
    head: RoomHead,
    { start, end, includes }: StatePart,
    erased: ReadonlyMap<string, number>,
  ): Promise<RenderedPart> {
    const count = [...head.state.values()].filter(includes).length;
    if (count * minEventBytes > this.#rooms.maxBytes * maxShare) return 'too long';
    const builder = new StateTextBuilder();
    builder.add(start);
    let eventStart = `{"room_id":${JSON.stringify(head.roomId)},`;
    for await (const events of this.#eventsOf(head, includes)) {
      if (erasedEvents(events, erased).size > 0) return null;
      await this.#slices.each(await this.#events.shared(events), (text) => {
        builder.addEvent(text, eventStart);
        if (!eventStart.startsWith(',')) eventStart = `,${eventStart}`;
      });
      if (this.#isTooLong(builder)) return 'too long';
    }
    builder.add(end);
    return builder.finish();
  }

  async #renderProfiles(head: RoomHead): Promise<RenderedPart> {
    const builder = new StateTextBuilder();
    for await (const piece of this.#profiles(head)) {
      builder.add(piece);
      if (this.#isTooLong(builder)) return 'too long';
    }
    return builder.finish();
  }

  #isTooLong({ bytes }: StateTextBuilder): boolean {
    return bytes > this.#rooms.maxBytes * maxShare;
  }

  async *#profiles(head: RoomHead): AsyncGenerator<string> {
    let start = '{"joined":{';
    for await (const events of this.#eventsOf(head, ({ membership }) => membership === 'join')) {
      let piece = '';
      await this.#slices.each(events, (stored) => {
        const { displayname, avatar_url } = visibleContent(stored);
        const profile = {
          display_name: typeof displayname === 'string' ? displayname : null,
          avatar_url: typeof avatar_url === 'string' ? avatar_url : null,
        };
        piece += `${start}${JSON.stringify(stored.event.stateKey)}:${JSON.stringify(profile)}`;
        start = ',';
      });
      yield piece;
    }
    yield start === ',' ? '}}' : `${start}}}`;
  }

  /** Reads the events of entries, some at a time. */
  async *#eventsOf(
    head: RoomHead,
    includes: (entry: StateEntry) => boolean,
  ): AsyncGenerator<readonly StoredEvent[]> {
    const nids = [...head.state.values()].filter(includes).map(({ nid }) => nid);
    for (let start = 0; start < nids.length; start += eventsAtOnce)
      yield await this.#engine.events.list(nids.slice(start, start + eventsAtOnce));
  }
}

function sizeOf({ texts }: RoomTexts): number {
  let bytes = 400;
  for (const text of texts.values()) bytes += 100 + (typeof text === 'object' && text ? text.bytes : 0);
  return bytes;
}
