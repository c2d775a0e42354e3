import { invalidParam, isJsonObject, type JsonObject } from '../protocol/index.ts';
import type { AccountData } from './account-data.ts';

/** Maximum bytes of a tag. */
const maxTagBytes = 255;

/**
 * The tags of a room for a user: account data of the type `m.tag`. Source: client-server API, "Room Tagging".
 */
export class Tags {
  readonly #accountData: AccountData;

  constructor(accountData: AccountData) {
    this.#accountData = accountData;
  }

  /** Returns tags with their content, for instance `order`. */
  async list(userId: string, roomId: string): Promise<JsonObject> {
    return tagsOf(await this.#accountData.find({ userId, roomId, type: 'm.tag' }));
  }

  /**
   * Adds a tag or replaces its content.
   * @throws MatrixError M_INVALID_PARAM for an invalid tag, M_TOO_LARGE in the same cases as
   * `AccountData.updateByClient`
   */
  async set(userId: string, roomId: string, tag: string, info: JsonObject): Promise<void> {
    if (tag === '' || Buffer.byteLength(tag) > maxTagBytes) {
      throw invalidParam(`A tag has between 1 and ${maxTagBytes} bytes`);
    }
    if (tag === '__proto__') throw invalidParam('A tag must not be named __proto__');
    await this.#accountData.updateByClient({ userId, roomId, type: 'm.tag' }, (content) => ({
      tags: { ...tagsOf(content), [tag]: info },
    }));
  }

  /** Removes a tag if it exists. */
  async delete(userId: string, roomId: string, tag: string): Promise<void> {
    await this.#accountData.update({ userId, roomId, type: 'm.tag' }, (content) => {
      const tags = tagsOf(content);
      if (!Object.hasOwn(tags, tag)) return undefined;
      const { [tag]: _, ...otherTags } = tags;
      return { tags: otherTags };
    });
  }
}

function tagsOf(content: JsonObject | undefined): JsonObject {
  const tags = content?.['tags'];
  return isJsonObject(tags) ? tags : {};
}
