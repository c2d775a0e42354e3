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

/** Selects the rooms of a list. Source: MSC4186, `SlidingRoomFilter`. */
export class ListFilter {
  readonly #deps: ListFilterDeps;

  constructor(deps: ListFilterDeps) {
    this.#deps = deps;
  }

  /** Returns the rooms that pass, in the same order. */
  async select(
    rooms: readonly UserRoom[],
    filters: FiltersJson | null | undefined,
    marks: Marks,
  ): Promise<readonly UserRoom[]> {
    if (!filters) return rooms;
    const children = filters.spaces ? await this.#childrenOf(rooms, filters.spaces) : undefined;
    const marked = rooms.filter((room) =>
      markConditions(filters, marks, children).every((condition) => condition(room)),
    );
    const conditions = traitConditions(filters);
    if (conditions.length === 0) return marked;
    const passing: UserRoom[] = [];
    for (let start = 0; start < marked.length; start += roomsAtOnce) {
      const some = marked.slice(start, start + roomsAtOnce);
      const traits = await Promise.all(some.map((room) => this.#deps.traits.of(room)));
      passing.push(
        ...some.filter((room, index) => conditions.every((passes) => passes(room, traits[index]!))),
      );
    }
    return passing;
  }

  /** Returns the children of the spaces that the user is joined to. */
  async #childrenOf(rooms: readonly UserRoom[], spaces: readonly string[]): Promise<Set<string>> {
    const { engine } = this.#deps;
    const children = new Set<string>();
    for (const { roomId, membership } of rooms) {
      if (membership !== 'join' || !spaces.includes(roomId)) continue;
      const head = await engine.heads.get(roomId);
      const entries = [...(head?.state ?? [])].filter(
        ([key]) => splitStateMapKey(key)[0] === 'm.space.child',
      );
      const events = await engine.events.getMany(entries.map(([, { nid }]) => nid));
      for (const stored of events.values()) {
        // A child without `via` was removed from the space.
        if (Array.isArray(visibleContent(stored)['via'])) children.add(stored.event.stateKey ?? '');
      }
    }
    return children;
  }
}

/** Conditions that need no room traits. */
function markConditions(
  filters: FiltersJson,
  { direct, tags }: Marks,
  children: ReadonlySet<string> | undefined,
): ((room: UserRoom) => boolean)[] {
  const { is_dm, is_invite, tags: wanted, not_tags } = filters;
  const conditions: ((room: UserRoom) => boolean)[] = [];
  const hasTag = (roomId: string, list: readonly string[]) => list.some((tag) => tags.get(roomId)?.has(tag));
  if (typeof is_dm === 'boolean') conditions.push(({ roomId }) => direct.has(roomId) === is_dm);
  if (typeof is_invite === 'boolean')
    conditions.push(({ membership }) => (membership === 'invite') === is_invite);
  if (children) conditions.push(({ roomId }) => children.has(roomId));
  if (wanted) conditions.push(({ roomId }) => hasTag(roomId, wanted));
  if (not_tags) conditions.push(({ roomId }) => !hasTag(roomId, not_tags));
  return conditions;
}

function traitConditions(filters: FiltersJson): Condition[] {
  const { is_encrypted, room_types, not_room_types, room_name_like } = filters;
  const conditions: Condition[] = [];
  if (typeof is_encrypted === 'boolean')
    conditions.push((_, { isEncrypted }) => isEncrypted === is_encrypted);
  if (room_types) conditions.push((_, { type }) => room_types.includes(type ?? null));
  if (not_room_types) conditions.push((_, { type }) => !not_room_types.includes(type ?? null));
  if (room_name_like) {
    const part = room_name_like.toLowerCase();
    conditions.push((_, { name }) => name?.toLowerCase().includes(part) ?? false);
  }
  return conditions;
}
