import { type Cache, type CacheRegistry, MiB } from '../../../kernel/caches/index.ts';
import { stateMapKey } from '../../../protocol/index.ts';
import { type RoomReader, type UserRoom, visibleContent } from '../../../room-engine/index.ts';

/** The properties of a room that filters use. */
export interface RoomTraits {
  readonly isEncrypted: boolean;
  /** The `type` of the room's `m.room.create`. */
  readonly type: string | undefined;
  /** The name of the room, or else its alias. */
  readonly name: string | undefined;
}

const keys = {
  create: stateMapKey('m.room.create', ''),
  encryption: stateMapKey('m.room.encryption', ''),
  name: stateMapKey('m.room.name', ''),
  alias: stateMapKey('m.room.canonical_alias', ''),
} as const;

type Key = keyof typeof keys;

/** Maximum number of rooms in each cache. */
const maxRooms = 20_000;

const cacheBounds = {
  size: maxRooms,
  maxBytes: 3 * MiB,
  sizeOf: ({ name = '' }: RoomTraits) => 100 + name.length,
};

/** Reads the properties of rooms that filters use, and caches them until they change. */
export class RoomTraitsReader {
  readonly #engine: RoomReader;
  /** Current traits by room nid. */
  readonly #current: Cache<number, RoomTraits>;
  /** Traits at the end of a user's membership or in stripped state, by the nid of the membership event. */
  readonly #past: Cache<number, RoomTraits>;

  /** Number of invalidations. Traits must not be cached if this number changed while they were loaded. */
  #invalidations = 0;

  constructor(engine: RoomReader, caches: CacheRegistry) {
    this.#current = caches.create('room_traits', { ...cacheBounds });
    this.#past = caches.create('former_room_traits', { ...cacheBounds });
    this.#engine = engine;
    const relevant = new Set<string>(Object.values(keys));
    engine.stream.subscribe(({ stored, stateChanges }) => {
      const isRelevant = stateChanges.some(({ type, stateKey }) => relevant.has(stateMapKey(type, stateKey)));
      if (!isRelevant && stored.event.type !== 'm.room.redaction') return;
      this.#current.delete(stored.roomNid);
      this.#invalidations++;
    });
  }

  /**
   * Returns the traits that the user may know: the current traits, or the traits at the end of the user's membership.
   */
  async of(room: UserRoom): Promise<RoomTraits> {
    if (room.membership === 'leave' || room.membership === 'ban') return this.#ofPast(room);
    if (room.membership !== 'join') {
      const traits = await this.#ofStripped(room);
      if (traits) return traits;
    }
    const cached = this.#current.get(room.roomNid);
    if (cached) return cached;
    const invalidationsBefore = this.#invalidations;
    const head = await this.#engine.heads.get(room.roomId);
    const traits = await this.#read((key) => head?.state.get(keys[key])?.nid);
    if (invalidationsBefore === this.#invalidations) this.#current.set(room.roomNid, traits);
    return traits;
  }

  /** Returns the traits in the stripped state that another server has sent; `undefined` without stripped state. */
  async #ofStripped(room: UserRoom): Promise<RoomTraits | undefined> {
    const cached = this.#past.get(room.eventNid);
    if (cached) return cached;
    const { events } = this.#engine;
    const membershipEvent = await events.get(room.eventNid);
    const stripped = await this.#engine.strippedState(membershipEvent?.event.stateKey ?? '', room);
    if (!stripped) return undefined;
    const text = (key: Key, field: string) => {
      const entry = stripped.find(({ type, state_key }) => stateMapKey(type, state_key) === keys[key]);
      const value = entry?.content[field];
      return typeof value === 'string' && value !== '' ? value : undefined;
    };
    const isEncrypted = stripped.some(
      ({ type, state_key }) => stateMapKey(type, state_key) === keys.encryption,
    );
    const name = text('name', 'name') ?? text('alias', 'alias');
    const traits = { isEncrypted, type: text('create', 'type'), name };
    this.#past.set(room.eventNid, traits);
    return traits;
  }

  /** Returns the traits at the end of the user's membership. */
  async #ofPast({ eventNid }: UserRoom): Promise<RoomTraits> {
    const cached = this.#past.get(eventNid);
    if (cached) return cached;
    const { events, groups, stateKeys } = this.#engine;
    const group = (await events.get(eventNid))?.stateGroup;
    const names = Object.keys(keys) as Key[];
    const nids = await Promise.all(names.map((key) => stateKeys.find(keys[key])));
    const wanted = nids.filter((nid) => nid !== undefined);
    const state = group === undefined ? undefined : (await groups.entries([group], wanted)).get(group);
    const traits = await this.#read((key) => state?.get(nids[names.indexOf(key)] ?? 0));
    this.#past.set(eventNid, traits);
    return traits;
  }

  async #read(nidOf: (key: Key) => number | undefined): Promise<RoomTraits> {
    const text = async (key: Key, field: string) => {
      const nid = nidOf(key);
      const stored = nid === undefined ? undefined : await this.#engine.events.get(nid);
      const value = stored && visibleContent(stored)[field];
      return typeof value === 'string' && value !== '' ? value : undefined;
    };
    const [type, name, alias] = await Promise.all([
      text('create', 'type'),
      text('name', 'name'),
      text('alias', 'alias'),
    ]);
    return { isEncrypted: nidOf('encryption') !== undefined, type, name: name ?? alias };
  }
}
