import type { TimeSlices } from '../../../kernel/time-slices.ts';
import { splitStateMapKey } from '../../../protocol/index.ts';
import { type RoomReader, type UserRoom, visibleContent } from '../../../room-engine/index.ts';
import type { FiltersJson } from '../request.ts';
import type { RoomTraits, RoomTraitsReader } from './room-traits.ts';
import type { Marks } from './user-marks.ts';

/** Whether a room passes one condition of a filter. */
type Condition = (room: UserRoom, traits: RoomTraits) => boolean;

/** Number of rooms whose traits are read at the same time. */
const roomsAtOnce = 32;

export interface ListFilterDeps {
  readonly engine: RoomReader;
  readonly traits: RoomTraitsReader;
}

/** Data that the lists of one request share while their rooms are filtered. */
export interface Filtering {
  readonly marks: Marks;
  /** Pauses between rooms, because a user may have thousands of them. */
  readonly slices: TimeSlices;
  /** Room ids of the children of the spaces that lists have requested, by the room id of the space. */
  readonly spaces: Map<string, ReadonlySet<string>>;
}

/** Selects the rooms of a list. Source: MSC4186, `SlidingRoomFilter`. */
export class ListFilter {
  readonly #deps: ListFilterDeps;

  constructor(deps: ListFilterDeps) {
    this.#deps = deps;
  }

  /** Returns the rooms that pass the filters, in the order of `rooms`. */
  async select(
    rooms: readonly UserRoom[],
    filters: FiltersJson | null | undefined,
    filtering: Filtering,
  ): Promise<readonly UserRoom[]> {
    if (!filters) return rooms;
    const { marks, slices } = filtering;
    const children = filters.spaces ? await this.#childrenOf(rooms, filters.spaces, filtering) : undefined;
    const conditionsOnMarks = markConditions(filters, marks, children);
    const marked = rooms.filter((room) => conditionsOnMarks.every((condition) => condition(room)));
    const conditions = traitConditions(filters);
    if (conditions.length === 0) return marked;
    const passing: UserRoom[] = [];
    for (let start = 0; start < marked.length; start += roomsAtOnce) {
      const chunk = marked.slice(start, start + roomsAtOnce);
      const traits = await Promise.all(chunk.map((room) => this.#deps.traits.of(room)));
      passing.push(
        ...chunk.filter((room, index) => conditions.every((passes) => passes(room, traits[index]!))),
      );
      const pause = slices.pauseIfDue();
      if (pause) await pause;
    }
    return passing;
  }

  /** Returns the children of the spaces that the user is joined to. */
  async #childrenOf(
    rooms: readonly UserRoom[],
    spaces: readonly string[],
    { slices, spaces: loadedSpaces }: Filtering,
  ): Promise<Set<string>> {
    const wanted = new Set(spaces);
    const children = new Set<string>();
    for (const { roomId, membership } of rooms) {
      if (membership !== 'join' || !wanted.has(roomId)) continue;
      const childrenOfSpace = loadedSpaces.get(roomId) ?? (await this.#childrenOfSpace(roomId));
      loadedSpaces.set(roomId, childrenOfSpace);
      for (const child of childrenOfSpace) children.add(child);
      const pause = slices.pauseIfDue();
      if (pause) await pause;
    }
    return children;
  }

  async #childrenOfSpace(roomId: string): Promise<Set<string>> {
    const { engine } = this.#deps;
    const children = new Set<string>();
    const head = await engine.heads.get(roomId);
    const entries = [...(head?.state ?? [])].filter(([key]) => splitStateMapKey(key)[0] === 'm.space.child');
    const events = await engine.events.getMany(entries.map(([, { nid }]) => nid));
    for (const stored of events.values()) {
      // A child without `via` was removed from the space.
      if (Array.isArray(visibleContent(stored)['via'])) children.add(stored.event.stateKey ?? '');
    }
    return children;
  }
}

/** Returns the conditions on memberships, direct chats, tags and spaces, which need no data of the room. */
function markConditions(
  filters: FiltersJson,
  { direct, tags }: Marks,
  children: ReadonlySet<string> | undefined,
): ((room: UserRoom) => boolean)[] {
  const { is_dm, is_invite } = filters;
  const wanted = filters.tags && new Set(filters.tags);
  const unwanted = filters.not_tags && new Set(filters.not_tags);
  const conditions: ((room: UserRoom) => boolean)[] = [];
  const hasTag = (roomId: string, tagNames: ReadonlySet<string>) =>
    tags.get(roomId)?.isDisjointFrom(tagNames) === false;
  if (typeof is_dm === 'boolean') conditions.push(({ roomId }) => direct.has(roomId) === is_dm);
  if (typeof is_invite === 'boolean')
    conditions.push(({ membership }) => (membership === 'invite') === is_invite);
  if (children) conditions.push(({ roomId }) => children.has(roomId));
  if (wanted) conditions.push(({ roomId }) => hasTag(roomId, wanted));
  if (unwanted) conditions.push(({ roomId }) => !hasTag(roomId, unwanted));
  return conditions;
}

/** Returns the conditions on encryption, type and name of a room. */
function traitConditions(filters: FiltersJson): Condition[] {
  const { is_encrypted, room_name_like } = filters;
  const types = filters.room_types && new Set(filters.room_types);
  const unwantedTypes = filters.not_room_types && new Set(filters.not_room_types);
  const conditions: Condition[] = [];
  if (typeof is_encrypted === 'boolean')
    conditions.push((_, { isEncrypted }) => isEncrypted === is_encrypted);
  if (types) conditions.push((_, { type }) => types.has(type ?? null));
  if (unwantedTypes) conditions.push((_, { type }) => !unwantedTypes.has(type ?? null));
  if (room_name_like) {
    const part = room_name_like.toLowerCase();
    conditions.push((_, { name }) => name?.toLowerCase().includes(part) ?? false);
  }
  return conditions;
}
