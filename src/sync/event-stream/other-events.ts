import { noFilter } from '../../filters/index.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../protocol/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';
import type { EphemeralSection, Range } from '../../sync-contract/index.ts';
import type { Changes } from '../feeds/feed.ts';
import type { SourceList } from '../sources/source-list.ts';

/**
 * The events that are on no timeline and that the older endpoints return: receipts, typing, presence, tags and account
 * data. Events of a room have its id.
 */
export class OtherEvents {
  readonly #engine: RoomReader;
  readonly #sources: SourceList;

  constructor(engine: RoomReader, sources: SourceList) {
    this.#engine = engine;
    this.#sources = sources;
  }

  /**
   * Returns the events of a range.
   * @param changes the user's changes in the range; `undefined` when they are not known
   */
  async since(userId: string, range: Range, changes: Changes | undefined): Promise<JsonObject[]> {
    const [ephemeral, presence, accountData] = await Promise.all([
      this.#ephemeral(userId, range, changes),
      this.#presence(userId, range, changes),
      this.#accountData(userId, range, changes),
    ]);
    return [...ephemeral, ...presence, ...accountData];
  }

  /** Returns the receipts of rooms, one event for each room that has some. */
  async receipts(userId: string, roomIds: readonly string[]): Promise<JsonObject[]> {
    const events: JsonObject[] = [];
    for (const { section } of this.#sources.ephemeral) {
      if (section.type !== 'm.receipt') continue;
      for (const [roomId, texts] of await section.initial(userId, roomIds)) {
        events.push(...texts.map((text) => inRoom(text, roomId)));
      }
    }
    return events;
  }

  /** Returns the presence of users who share a room with the user. */
  async presence(userId: string, upTo: number): Promise<JsonObject[]> {
    const request = { userId, after: undefined, upTo, filter: noFilter.presence };
    const sections = this.#sources.presence.map(({ section }) => section.events(request));
    return (await Promise.all(sections)).flat();
  }

  async #ephemeral(userId: string, range: Range, changes: Changes | undefined): Promise<JsonObject[]> {
    const events: JsonObject[] = [];
    for (const { bit, section } of this.#sources.ephemeral) {
      for (const roomId of await this.#roomsWith(userId, section, bit, range, changes)) {
        const texts = await section.since(userId, roomId, range);
        events.push(...texts.map((text) => inRoom(text, roomId)));
      }
    }
    return events;
  }

  /** Returns the ids of joined rooms in which the ephemeral events of a section may have changed. */
  async #roomsWith(
    userId: string,
    section: EphemeralSection,
    bit: number,
    { after }: Range,
    changes: Changes | undefined,
  ): Promise<string[]> {
    const rooms = await this.#engine.userRooms.of(userId);
    const isJoined = (roomId: string) => rooms.get(roomId)?.membership === 'join';
    if (!changes) {
      return [...rooms.keys()].filter((id) => isJoined(id) && section.mayHaveChanged(id, after));
    }
    return [...changes.rooms].filter(([id, bits]) => bits & bit && isJoined(id)).map(([id]) => id);
  }

  async #presence(userId: string, range: Range, changes: Changes | undefined): Promise<JsonObject[]> {
    const { presence, presenceBits } = this.#sources;
    if (changes && !(changes.user & presenceBits)) return [];
    const request = { userId, ...range, filter: noFilter.presence };
    return (await Promise.all(presence.map(({ section }) => section.events(request)))).flat();
  }

  async #accountData(userId: string, range: Range, changes: Changes | undefined): Promise<JsonObject[]> {
    const bits =
      changes && [...changes.rooms.values()].reduce((bits, changedBits) => bits | changedBits, changes.user);
    const events: JsonObject[] = [];
    for (const { bit, section } of this.#sources.accountData) {
      if (!section.isSetByClients || (bits !== undefined && !(bits & bit))) continue;
      for (const { roomId, type, content } of await section.since(userId, range)) {
        events.push({ type, ...(roomId === undefined ? undefined : { room_id: roomId }), content });
      }
    }
    return events;
  }
}

function inRoom(text: string, roomId: string): JsonObject {
  const event: JsonValue = JSON.parse(text);
  return { ...(isJsonObject(event) ? event : {}), room_id: roomId };
}
