import type { AccountData } from '../../../account-data/index.ts';
import { type Cache, type CacheRegistry, MiB } from '../../../kernel/caches/index.ts';
import { isJsonObject, type JsonObject } from '../../../protocol/index.ts';

/** Which rooms a user has marked as direct chats or with tags. */
export interface Marks {
  /** Room ids of direct chats (`m.direct`). */
  readonly direct: ReadonlySet<string>;
  /** Tags by room id. */
  readonly tags: ReadonlyMap<string, ReadonlySet<string>>;
}

interface CachedMarks {
  readonly marks: Promise<Marks>;
  /** Number of direct chats and of rooms with tags; 0 while they are read. */
  rooms: number;
}

/** Estimated bytes of a direct chat, or of the tags of a room. */
const markBytes = 200;

/** The types of account data that mark rooms. */
const markTypes = ['m.direct', 'm.tag'];

/** Maximum number of users in the cache. */
const maxUsers = 20_000;

/** Reads and caches the direct chats and room tags of users who sync. */
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

  /** Returns the direct chats and tags of a user. */
  of(userId: string): Promise<Marks> {
    const cached = this.#users.get(userId);
    if (cached) return cached.marks;
    const newEntry: CachedMarks = { marks: this.#load(userId), rooms: 0 };
    this.#users.set(userId, newEntry);
    newEntry.marks.then(
      ({ direct, tags }) => {
        newEntry.rooms = direct.size + tags.size;
        this.#users.remeasure(userId);
      },
      () => this.#users.delete(userId),
    );
    return newEntry.marks;
  }

  async #load(userId: string): Promise<Marks> {
    const tags = new Map<string, ReadonlySet<string>>();
    let direct: ReadonlySet<string> = new Set();
    for (const { roomId, type, content } of await this.#accountData.ofTypes(userId, markTypes)) {
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
