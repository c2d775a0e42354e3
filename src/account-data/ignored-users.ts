import { type CacheRegistry, MiB } from '../kernel/caches/index.ts';
import type { AccountData } from './account-data.ts';
import { ignoredIn, ignoredUserListType } from './ignored-user-list.ts';
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
    this.#lists = new ParsedAccountData(accountData, caches, {
      type: ignoredUserListType,
      parse: ignoredIn,
      sizeOf: sizeOfList,
      maxBytes,
    });
  }

  /**
   * Returns the ignored users without the user themselves, because users always see their own events. Returns at once
   * when they are cached.
   */
  of(userId: string): ReadonlySet<string> | Promise<ReadonlySet<string>> {
    return this.#lists.of(userId);
  }

  /**
   * Returns the stream position of the last change of the user's list; 0 if it never changed. Returns at once when the
   * list is cached.
   */
  changedAt(userId: string): number | Promise<number> {
    return this.#lists.changedAt(userId);
  }
}

/** Estimated bytes of a user in a list besides the characters of the id. */
const userBytes = 60;

function sizeOfList(ignored: ReadonlySet<string>): number {
  let bytes = userBytes * ignored.size;
  for (const userId of ignored) bytes += userId.length;
  return bytes;
}
