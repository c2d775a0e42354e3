import { RecentlyUsed } from '../kernel/caches/index.ts';
import { LoadOnce } from '../kernel/load-once.ts';
import type { JsonObject } from '../protocol/index.ts';
import type { AccountData } from './account-data.ts';

/** How many users' content is kept in memory. */
const usersInMemory = 20_000;

/** What users have set as one type of account data, in the form in which it is used, in memory for those who are active. */
export class ParsedAccountData<T> {
  readonly #accountData: AccountData;
  readonly #type: string;
  readonly #parse: (content: JsonObject) => T;
  readonly #values = new RecentlyUsed<string, { readonly value: T }>({ max: usersInMemory });
  readonly #loading = new LoadOnce<string, T>();

  /** @param parse must take any content; gets an empty one where nothing was set */
  constructor(accountData: AccountData, type: string, parse: (content: JsonObject) => T) {
    this.#accountData = accountData;
    this.#type = type;
    this.#parse = parse;
    accountData.accountDataStream.subscribe((fact) => {
      if (fact.type !== type || fact.roomId !== undefined) return;
      this.#values.delete(fact.userId);
      // A running load may have read the content from before this change.
      this.#loading.forget(fact.userId);
    });
  }

  async of(userId: string): Promise<T> {
    const known = this.#values.get(userId);
    if (known) return known.value;
    const keep = (value: T) => this.#values.set(userId, { value });
    return this.#loading.run(userId, () => this.#load(userId), keep);
  }

  /** `of` when it is in memory. */
  peek(userId: string): T | undefined {
    return this.#values.get(userId)?.value;
  }

  async #load(userId: string): Promise<T> {
    const key = { userId, roomId: undefined, type: this.#type };
    return this.#parse((await this.#accountData.find(key)) ?? {});
  }
}
