import { RecentlyUsed } from '../../../kernel/caches/index.ts';
import { stateMapKey } from '../../../protocol/index.ts';
import { type RoomReader, type UserRoom, visibleContent } from '../../../room-engine/index.ts';

/** What filters ask about a room. */
export interface RoomTraits {
  readonly isEncrypted: boolean;
  /** The `type` of its `m.room.create`. */
  readonly type: string | undefined;
  /** Its name, or else its alias. */
  readonly name: string | undefined;
}

const keys = {
  create: stateMapKey('m.room.create', ''),
  encryption: stateMapKey('m.room.encryption', ''),
  name: stateMapKey('m.room.name', ''),
  alias: stateMapKey('m.room.canonical_alias', ''),
} as const;

type Key = keyof typeof keys;

/** How many rooms' traits are kept in memory. */
const roomsInMemory = 100_000;

/** What filters ask about rooms, from memory where nothing has changed. */
export class RoomTraitsReader {
  readonly #engine: RoomReader;
  readonly #current = new RecentlyUsed<number, RoomTraits>({ max: roomsInMemory });
  /** Of rooms as they were when somebody's stay ended, by the event that ended it. */
  readonly #past = new RecentlyUsed<number, RoomTraits>({ max: roomsInMemory });

  /** Counts what was dropped from memory: who began to read before that must not keep what they read. */
  #dropped = 0;

  constructor(engine: RoomReader) {
    this.#engine = engine;
    const relevant = new Set<string>(Object.values(keys));
    engine.stream.subscribe(({ stored, stateChanges }) => {
      const isRelevant = stateChanges.some(({ type, stateKey }) => relevant.has(stateMapKey(type, stateKey)));
      if (!isRelevant && stored.event.type !== 'm.room.redaction') return;
      this.#current.delete(stored.roomNid);
      this.#dropped++;
    });
  }

  /** The room as the user may know it: as it is, or as it was when their stay ended. */
  async of(room: UserRoom): Promise<RoomTraits> {
    if (room.membership === 'leave' || room.membership === 'ban') return this.#ofPast(room);
    if (room.membership !== 'join') {
      const told = await this.#ofStripped(room);
      if (told) return told;
    }
    const known = this.#current.get(room.roomNid);
    if (known) return known;
    const dropped = this.#dropped;
    const head = await this.#engine.heads.get(room.roomId);
    const traits = await this.#read((key) => head?.state.get(keys[key])?.nid);
    if (dropped === this.#dropped) this.#current.set(room.roomNid, traits);
    return traits;
  }

  /** The room as another server has shown it to a user who is not in it; `undefined` when none has. */
  async #ofStripped(room: UserRoom): Promise<RoomTraits | undefined> {
    const known = this.#past.get(room.eventNid);
    if (known) return known;
    const { events } = this.#engine;
    const own = await events.get(room.eventNid);
    const told = await this.#engine.strippedState(own?.event.stateKey ?? '', room);
    if (!told) return undefined;
    const text = (key: Key, field: string) => {
      const entry = told.find(({ type, state_key }) => stateMapKey(type, state_key) === keys[key]);
      const value = entry?.content[field];
      return typeof value === 'string' && value !== '' ? value : undefined;
    };
    const isEncrypted = told.some(({ type, state_key }) => stateMapKey(type, state_key) === keys.encryption);
    const name = text('name', 'name') ?? text('alias', 'alias');
    const traits = { isEncrypted, type: text('create', 'type'), name };
    this.#past.set(room.eventNid, traits);
    return traits;
  }

  async #ofPast({ eventNid }: UserRoom): Promise<RoomTraits> {
    const known = this.#past.get(eventNid);
    if (known) return known;
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
