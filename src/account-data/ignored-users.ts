import { type CacheRegistry, MiB } from '../kernel/caches/index.ts';
import { whenReady } from '../kernel/when-ready.ts';
import { isJsonObject, type JsonObject } from '../protocol/index.ts';
import type { AccountData } from './account-data.ts';
import { ParsedAccountData } from './parsed-account-data.ts';

/** Maximum bytes of the cached lists of ignored users. For a message, the push rules need the lists of all local members of a room. */
const maxBytes = 5 * MiB;

/**
 * The users whom each user ignores: their account data `m.ignored_user_list`. Source: client-server API,
 * "Ignoring Users".
 */
export class IgnoredUsers {
  readonly #lists: ParsedAccountData<ReadonlySet<string>>;

  constructor(accountData: AccountData, caches: CacheRegistry) {
    this.#lists = new ParsedAccountData(accountData, caches, 'm.ignored_user_list', ignoredIn, maxBytes);
  }

  /**
   * Returns the ignored users without the user themselves, because users always see their own events. Returns at once
   * when they are cached.
   */
  of(userId: string): ReadonlySet<string> | Promise<ReadonlySet<string>> {
    return whenReady(this.#lists.of(userId), (list) => withoutSelf(list, userId));
  }

  /** Returns the stream position at which the user's list changed last, 0 if never; at once when it is cached. */
  changedAt(userId: string): number | Promise<number> {
    return this.#lists.changedAt(userId);
  }
}

function ignoredIn({ ignored_users: users }: JsonObject): ReadonlySet<string> {
  return new Set(isJsonObject(users) ? Object.keys(users) : []);
}

function withoutSelf(list: ReadonlySet<string>, userId: string): ReadonlySet<string> {
  return list.has(userId) ? new Set([...list].filter((one) => one !== userId)) : list;
}
