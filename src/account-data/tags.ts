import { invalidParam, isJsonObject, type JsonObject } from '../protocol/index.ts';
import type { AccountData } from './account-data.ts';

/** Bytes of a tag. */
const longestTag = 255;

/** Tags of one room for one user: account data of the type `m.tag`. Source: client-server API, "Room Tagging". */
export class Tags {
  readonly #accountData: AccountData;

  constructor(accountData: AccountData) {
    this.#accountData = accountData;
  }

  /** Tag to what is said about it, for instance its `order`. */
  async list(userId: string, roomId: string): Promise<JsonObject> {
    return tagsOf(await this.#accountData.find({ userId, roomId, type: 'm.tag' }));
  }

  /** Adds a tag, or replaces what is said about it. Throws MatrixError M_INVALID_PARAM for a name that can be none. */
  async set(userId: string, roomId: string, tag: string, info: JsonObject): Promise<void> {
    if (tag === '' || Buffer.byteLength(tag) > longestTag) {
      throw invalidParam(`A tag has between 1 and ${longestTag} bytes`);
    }
    if (tag === '__proto__') throw invalidParam('A tag must not be named __proto__');
    await this.#accountData.update({ userId, roomId, type: 'm.tag' }, (content) => ({
      tags: { ...tagsOf(content), [tag]: info },
    }));
  }

  /** Removes a tag, if it is there. */
  async delete(userId: string, roomId: string, tag: string): Promise<void> {
    await this.#accountData.update({ userId, roomId, type: 'm.tag' }, (content) => {
      const tags = tagsOf(content);
      if (!Object.hasOwn(tags, tag)) return undefined;
      const { [tag]: _, ...rest } = tags;
      return { tags: rest };
    });
  }
}

function tagsOf(content: JsonObject | undefined): JsonObject {
  const tags = content?.['tags'];
  return isJsonObject(tags) ? tags : {};
}
