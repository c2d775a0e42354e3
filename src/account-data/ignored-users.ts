import { isJsonObject, type JsonObject } from '../protocol/index.ts';
import type { AccountData } from './account-data.ts';
import { ParsedAccountData } from './parsed-account-data.ts';

/** Whom users ignore: their account data `m.ignored_user_list`. Source: client-server API, "Ignoring Users". */
export class IgnoredUsers {
  readonly #lists: ParsedAccountData<ReadonlySet<string>>;

  constructor(accountData: AccountData) {
    this.#lists = new ParsedAccountData(accountData, 'm.ignored_user_list', ignoredIn);
  }

  /** Those of others: who lists themselves still sees what they say. */
  async of(userId: string): Promise<ReadonlySet<string>> {
    return withoutSelf(await this.#lists.of(userId), userId);
  }

  /** `of` when it is in memory. */
  peek(userId: string): ReadonlySet<string> | undefined {
    const list = this.#lists.peek(userId);
    return list && withoutSelf(list, userId);
  }
}

function ignoredIn({ ignored_users: users }: JsonObject): ReadonlySet<string> {
  return new Set(isJsonObject(users) ? Object.keys(users) : []);
}

function withoutSelf(list: ReadonlySet<string>, userId: string): ReadonlySet<string> {
  return list.has(userId) ? new Set([...list].filter((one) => one !== userId)) : list;
}
