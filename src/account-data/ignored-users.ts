import { LRUCache } from 'lru-cache';
import { isJsonObject } from '../protocol/index.ts';
import type { AccountData } from './account-data.ts';

/** How many users' lists are kept in memory. */
const listsInMemory = 20_000;

/** Whom users ignore: their account data `m.ignored_user_list`. Source: client-server API, "Ignoring Users". */
export class IgnoredUsers {
  readonly #accountData: AccountData;
  readonly #lists = new LRUCache<string, ReadonlySet<string>>({ max: listsInMemory });

  constructor(accountData: AccountData) {
    this.#accountData = accountData;
    accountData.accountDataStream.subscribe(({ userId, type }) => {
      if (type === 'm.ignored_user_list') this.#lists.delete(userId);
    });
  }

  async of(userId: string): Promise<ReadonlySet<string>> {
    const known = this.#lists.get(userId);
    if (known) return known;
    const content = await this.#accountData.find({ userId, roomId: undefined, type: 'm.ignored_user_list' });
    const users = content?.['ignored_users'];
    const list = new Set(isJsonObject(users) ? Object.keys(users) : []);
    this.#lists.set(userId, list);
    return list;
  }

  /** `of` when it is in memory. */
  peek(userId: string): ReadonlySet<string> | undefined {
    return this.#lists.get(userId);
  }
}
