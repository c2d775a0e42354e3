import { isJsonObject, type JsonObject, parseMxcUri } from '../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../room-engine/index.ts';

/** The parts of an `mxc:` URI. */
interface MediaAddress {
  readonly serverName: string;
  readonly mediaId: string;
}

/** Number of events that one statement reads. */
const eventsAtOnce = 500;

/** Default maximum number of files in the result. */
const defaultMaxFiles = 50_000;

/**
 * Finds the media that the events of a room link to. Links inside encrypted events are not found, and avatars of members are
 * left out: they belong to the members, who show them in all their rooms.
 */
export class RoomMedia {
  readonly #engine: Pick<RoomReader, 'events'>;
  readonly #maxFiles: number;

  constructor(engine: Pick<RoomReader, 'events'>, maxFiles: number = defaultMaxFiles) {
    this.#engine = engine;
    this.#maxFiles = maxFiles;
  }

  /** Returns each file once, at most 50,000 files by default, beginning with the files of the newest events. */
  async of({ roomNid }: RoomHead): Promise<MediaAddress[]> {
    const addresses = new Map<string, MediaAddress>();
    let place = { depth: Number.MAX_SAFE_INTEGER, stream: Number.MAX_SAFE_INTEGER };
    while (addresses.size < this.#maxFiles) {
      const events = await this.#engine.events.history(roomNid, place, {
        limit: eventsAtOnce,
        direction: 'backward',
      });
      for (const { event } of events) {
        for (const uri of urisIn(event.content)) {
          const address = parseMxcUri(uri);
          if (address && addresses.size < this.#maxFiles) addresses.set(uri, address);
        }
      }
      const last = events.at(-1);
      if (!last || events.length < eventsAtOnce) break;
      place = { depth: last.event.depth, stream: (last.stream ?? 0) - 1 };
    }
    return [...addresses.values()];
  }
}

/**
 * Returns the `mxc:` URIs in the content of an event, except avatars of members.
 * Sources: client-server API, `m.image` and the other messages with files, `m.sticker`, `m.room.avatar`.
 */
function urisIn(content: JsonObject): string[] {
  const info = isJsonObject(content['info']) ? content['info'] : {};
  const candidates = [content['url'], info['thumbnail_url']];
  return candidates.filter((uri): uri is string => typeof uri === 'string' && uri.startsWith('mxc://'));
}
