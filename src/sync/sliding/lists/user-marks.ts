import type { AccountData } from '../../../account-data/index.ts';
import { type Cache, type CacheRegistry, MiB } from '../../../kernel/caches/index.ts';
import { isJsonObject, type JsonObject } from '../../../protocol/index.ts';

/** How a user has marked rooms. */
export interface Marks {
  /** Direct chats (`m.direct`). */
  readonly direct: ReadonlySet<string>;
  /** Tags by room id. */
  readonly tags: ReadonlyMap<string, ReadonlySet<string>>;
}

interface CachedMarks {
  readonly marks: Promise<Marks>;
  /** Number of marked rooms; 0 while they are read. */
  rooms: number;
}

/** Estimated bytes of the marks of a room. */
const markBytes = 200;

/** Maximum number of users in the cache. */
const maxUsers = 20_000;

/** Reads how users have marked their rooms, and caches it for users who sync. */
export class UserMarks {
  readonly #accountData: AccountData;
  readonly #users: Cache<string, CachedMarks>;

  constructor(accountData: AccountData, caches: CacheRegistry) {
    this.#users = caches.create('room_marks', {
      size: maxUsers,
      maxBytes: 4 * MiB,
      sizeOf: ({ rooms }) => 200 + markBytes * rooms,
    });
    this.#accountData = accountData;
    accountData.accountDataStream.subscribe(({ userId, type }) => {
      if (type === 'm.direct' || type === 'm.tag') this.#users.delete(userId);
    });
  }

  of(userId: string): Promise<Marks> {
    const known = this.#users.get(userId);
    if (known) return known.marks;
    const cached: CachedMarks = { marks: this.#load(userId), rooms: 0 };
    this.#users.set(userId, cached);
    cached.marks.then(
      ({ direct, tags }) => {
        cached.rooms = direct.size + tags.size;
        this.#users.remeasure(userId);
      },
      () => this.#users.delete(userId),
    );
    return cached.marks;
  }

  async #load(userId: string): Promise<Marks> {
    const tags = new Map<string, ReadonlySet<string>>();
    let direct: ReadonlySet<string> = new Set();
    for (const { roomId, type, content } of await this.#accountData.all(userId)) {
      if (roomId === undefined && type === 'm.direct') direct = roomsIn(content);
      if (roomId !== undefined && type === 'm.tag') tags.set(roomId, tagsIn(content));
    }
    return { direct, tags };
  }
}

function roomsIn(direct: JsonObject): Set<string> {
  const rooms = Object.values(direct).flatMap((list) => (Array.isArray(list) ? list : []));
  return new Set(rooms.filter((roomId) => typeof roomId === 'string'));
}

function tagsIn({ tags }: JsonObject): Set<string> {
  return new Set(isJsonObject(tags) ? Object.keys(tags) : []);
}
