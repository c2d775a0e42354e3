import type { JsonValue, ReceivedEvent, ReferenceLimits, RoomEvent } from '../../protocol/index.ts';
import type { VerifiedEvent } from '../../room-engine/index.ts';
import type { ServerQuery } from '../querying/server-query.ts';
import type { InvalidEvents } from './invalid-events.ts';
import type { KnownEvents } from './known-events.ts';
import { isRefusal, type Verifier } from './verifier.ts';

/** Verifies the events in responses of remote servers. */
export class ResponseVerifier {
  readonly #verifier: Verifier;
  readonly #invalidEvents: InvalidEvents;
  readonly #known: KnownEvents;

  constructor(deps: {
    readonly verifier: Verifier;
    readonly invalidEvents: InvalidEvents;
    readonly known: KnownEvents;
  }) {
    this.#verifier = deps.verifier;
    this.#invalidEvents = deps.invalidEvents;
    this.#known = deps.known;
  }

  /**
   * Verifies events of a response. Leaves out events of other rooms, unwanted events and invalid events, and
   * remembers which server sent an event whose signatures could not be verified.
   * @param isWanted called before signatures are verified, which is the expensive part
   * @param references as in `Verifier.verify`
   * @returns the events by event id, in the order of the response
   */
  async verifyWanted(
    { roomId, version }: Pick<ServerQuery, 'roomId' | 'version'>,
    server: string,
    jsons: readonly JsonValue[],
    isWanted: (event: RoomEvent) => boolean,
    references?: ReferenceLimits,
  ): Promise<Map<string, VerifiedEvent>> {
    const wanted = (await this.#verifier.read(version, jsons, references))
      .filter((result): result is ReceivedEvent => !isRefusal(result))
      .filter(({ event }) => event.roomId === roomId && isWanted(event));
    return this.#check(server, new Map(wanted.map((result) => [result.event.eventId, result])));
  }

  /**
   * Verifies those state events of a response that belong to the room and are not stored yet. Usually most events of an
   * auth chain are stored.
   * @returns the valid events by event id
   */
  async verifyNewState(
    { roomId, version }: Pick<ServerQuery, 'roomId' | 'version'>,
    server: string,
    jsons: readonly JsonValue[],
  ): Promise<Map<string, VerifiedEvent>> {
    const received = (await this.#verifier.read(version, jsons))
      .filter((result): result is ReceivedEvent => !isRefusal(result))
      .filter(({ event }) => event.roomId === roomId && event.stateKey !== undefined);
    const events = new Map(received.map((result) => [result.event.eventId, result]));
    for (const id of (await this.#known.find(events.keys())).keys()) events.delete(id);
    return this.#check(server, events);
  }

  async #check(
    server: string,
    events: ReadonlyMap<string, ReceivedEvent>,
  ): Promise<Map<string, VerifiedEvent>> {
    const ids = [...events.keys()];
    const verified = new Map<string, VerifiedEvent>();
    for (const [index, checked] of (await this.#verifier.check([...events.values()])).entries()) {
      const eventId = ids[index]!;
      if (isRefusal(checked)) this.#invalidEvents.add(server, eventId, checked.isTemporary === true);
      else verified.set(eventId, checked);
    }
    return verified;
  }
}
